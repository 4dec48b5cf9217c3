/* Decides once, before main, which parts emit. Until then, and again from exit on, every wrapper only forwards. */
#include "internal.h"
#include "real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Atomic uint32_t nm_parts;
_Atomic uint32_t nm_listening;
NM_TLS_DEFINE int nm_forwarding;

static atomic_flag started = ATOMIC_FLAG_INIT;

uint64_t nm_mono_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t nm_wall_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool nm_list_has(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t item = strcspn(at, ", ;");
        if (item == length && strncmp(at, word, length) == 0) return true;
        at += item;
        at += strspn(at, ", ;");
    }
    return false;
}

/* nsys names what its injected library shall trace. Its rows lack what goes through our wrappers: the reader is told. */
static bool os_tracing(void) {
    const char *proxy = getenv("QUADD_INJECTION_PROXY");
    return proxy != NULL && strstr(proxy, "OSRT") != NULL;
}

static void stop(void) {
    atomic_store(&nm_parts, 0);
    atomic_store(&nm_listening, 0);
}

static const struct {
    const char *name;
    uint32_t part;
} part_names[] = {{"mutex", NM_PART_MUTEX},
                  {"held", NM_PART_HELD},
                  {"driver_lock", NM_PART_DRIVER},
                  {"cuda", NM_PART_CUDA},
                  {"tap", NM_PART_TAP}};
enum { PART_NAMES = sizeof part_names / sizeof *part_names };

static void say_what_is_on(uint32_t wanted) {
    char text[256];
    int used = snprintf(text, sizeof text, "nvtx_markers conventions=1 source=preload");
    for (int i = 0; i < PART_NAMES && used > 0 && (size_t)used < sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %s=%s", part_names[i].name,
                         (wanted & part_names[i].part) != 0 ? "on" : "off");
    if (used > 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, " osrt=%s", os_tracing() ? "on" : "off");
    nm_mark(NM_SHIM, text);
}

/* Goes once through what a lock wait needs, so that the first one does not pay for cold pages. */
static void warm_up(void) {
    static pthread_mutex_t nobodys = PTHREAD_MUTEX_INITIALIZER;
    (void)nm_owner_of((const void *)warm_up);
    (void)nm_wait_worth_marking(&nobodys);
    nm_wait_note(&nobodys, 0);
    nm_held_begin(&nobodys);
    nm_held_end(&nobodys);
}

void nm_start(void) {
    const char *injection = getenv("NVTX_INJECTION64_PATH");
    const char *disable = getenv("NVTX_MARKERS_DISABLE");
    uint32_t wanted = NM_PART_ALL;

    if (atomic_flag_test_and_set(&started)) return;
    if (injection == NULL || *injection == '\0' || nm_list_has(disable, "all")) return;
    for (int i = 0; i < PART_NAMES; i++)
        if (nm_list_has(disable, part_names[i].name)) wanted &= ~part_names[i].part;
    if (!nm_emit_start()) return;
    nm_owner_start();
    if ((wanted & NM_PART_HELD) != 0) nm_held_start();
    warm_up();
    atexit(stop);
    atomic_store(&nm_listening, 1);
    say_what_is_on(wanted);
    atomic_store(&nm_parts, wanted);
}

/* ---- the moment before main ---- */

typedef int (*main_function)(int, char **, char **);
typedef int (*start_function)(main_function, int, char **, int (*)(int, char **, char **), void (*)(void),
                              void (*)(void), void *);
static main_function program_main;

static int main_after_start(int argc, char **argv, char **envp) {
    nm_start();
    return program_main(argc, argv, envp);
}

NM_EXPORT int __libc_start_main(main_function main, int argc, char **argv, int (*init)(int, char **, char **),
                                void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    start_function next = (start_function)nm_next("__libc_start_main");
    if (next == NULL) _Exit(127); /* cannot be: libc itself defines it */
    program_main = main;
    return next(main_after_start, argc, argv, init, fini, rtld_fini, stack_end);
}
