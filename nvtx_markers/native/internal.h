/* Shared declarations of the preload library. Everything here is hidden; only the wrappers and the C ABI are exported. */
#ifndef NVTX_MARKERS_INTERNAL_H
#define NVTX_MARKERS_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NM_EXPORT __attribute__((visibility("default")))
#define NM_HIDDEN __attribute__((visibility("hidden")))
#define NM_LIKELY(x) __builtin_expect(!!(x), 1)
#define NM_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Static TLS: reachable before any allocator works, and in a library that is loaded with the program. */
#define NM_TLS static __thread __attribute__((tls_model("initial-exec")))
#define NM_TLS_SHARED extern __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))
#define NM_TLS_DEFINE __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))

/* Numbers of nvtx_markers.conventions.CATEGORY_IDS. */
enum nm_category {
    NM_MUTEX_WAIT = 1,
    NM_MUTEX_HELD,
    NM_BARRIER_WAIT,
    NM_DRIVER_LOCK,
    NM_DEVICE_SYNC,
    NM_POOL_TRIM,
    NM_MEM_INFO,
    NM_ALLOC,
    NM_HOST_REGISTER,
    NM_HOST_UNREGISTER,
    NM_UPLOAD,
    NM_KERNELS,
    NM_FREE,
    NM_LAUNCH,
    NM_SYNTHESIS,
    NM_SECTION,
    NM_TIMELINE,
    NM_SHIM,
    NM_CATEGORY_COUNT
};

/* Parts that can be switched off or stand aside, one bit each. */
enum nm_part {
    NM_PART_MUTEX = 1,
    NM_PART_HELD = 2,
    NM_PART_DRIVER = 4,
    NM_PART_CUDA = 8,
    NM_PART_TAP = 16,
    NM_PART_ALL = 31
};

/* ---- start.c: whether anything is emitted, decided once before main ---- */
/* Bits of enum nm_part that emit; 0 until a tool is found, and again from exit on. */
NM_HIDDEN extern _Atomic uint32_t nm_parts;
/* True between a tool's start and exit: what the C ABI asks. */
NM_HIDDEN extern _Atomic uint32_t nm_listening;
NM_HIDDEN void nm_start(void);

static inline bool nm_on(uint32_t part) {
    return NM_UNLIKELY((atomic_load_explicit(&nm_parts, memory_order_relaxed) & part) != 0);
}

/* ---- emit.c: the only file that calls NVTX ---- */
/* False where no tool listens. */
NM_HIDDEN bool nm_emit_start(void);
/* Each returns at once on a thread that is already emitting, and in a forked child. errno is kept. */
NM_HIDDEN bool nm_push(enum nm_category category, uint64_t payload);
NM_HIDDEN void nm_pop(void);
NM_HIDDEN uint64_t nm_range_start(enum nm_category category, uint64_t payload); /* 0: nothing was started */
NM_HIDDEN uint64_t nm_section_start(const char *text);
NM_HIDDEN void nm_range_end(uint64_t id);
NM_HIDDEN void nm_mark(enum nm_category category, const char *text);
/* Tells whether this thread is inside the emitter (and so inside the tool). */
NM_TLS_SHARED int nm_emitting;

/* ---- resolve.c: the function behind ours, without dlsym ---- */
NM_HIDDEN void *nm_next(const char *name);
/* As above among objects loaded later too, for a caller that may prefer one of several versions. */
NM_HIDDEN void *nm_next_for_caller(const char *name, const char *library_prefix, const void *caller);

enum nm_owner { NM_OWNER_APP, NM_OWNER_DRIVER, NM_OWNER_TOOL };
NM_HIDDEN enum nm_owner nm_owner_of(const void *address);
NM_HIDDEN void nm_owner_start(void);

/* ---- held.c: which mutexes get hold ranges ---- */
NM_HIDDEN extern uint8_t nm_hot_filter[256];
NM_TLS_SHARED int nm_held_count;
static inline uint8_t nm_hash8(const void *address) {
    const uint64_t a = (uint64_t)(uintptr_t)address;
    return (uint8_t)((a >> 4) ^ (a >> 12) ^ (a >> 20));
}
static inline bool nm_maybe_hot(const void *mutex) {
    return NM_UNLIKELY(__atomic_load_n(&nm_hot_filter[nm_hash8(mutex)], __ATOMIC_RELAXED) != 0);
}
NM_HIDDEN void nm_held_start(void); /* reads the symbols asked for */
NM_HIDDEN void nm_held_begin(pthread_mutex_t *mutex);
NM_HIDDEN void nm_held_end(pthread_mutex_t *mutex);
/* Around a condition wait: ends the hold, true if there was one to begin again. */
NM_HIDDEN bool nm_held_pause(pthread_mutex_t *mutex);
/* Notes a finished wait; from enough of them on the mutex is held visibly. */
NM_HIDDEN void nm_wait_note(pthread_mutex_t *mutex, uint64_t wait_ns);
/* False for a mutex whose waits are so short that a range would cost more than it tells. */
NM_HIDDEN bool nm_wait_worth_marking(pthread_mutex_t *mutex);

/* ---- symbols.c ---- */
/* Calls found(address, size) for each data symbol of the running program whose name is listed (comma separated). */
NM_HIDDEN void nm_program_symbols(const char *names, void (*found)(uintptr_t address, size_t size));

/* ---- tap.c ---- */
/* Bytes that were written by this thread to fd 1 or 2, and when the writing began. */
NM_HIDDEN void nm_tap_feed(int fd, const char *bytes, size_t length, uint64_t began_ns);
/* A mark for one whole line (without its newline) that begins with the prefix. */
NM_HIDDEN void nm_tap_line(const char *line, size_t length, uint64_t began_ns);
NM_TLS_SHARED int nm_tap_paused;
NM_HIDDEN bool nm_tap_midline(int fd);

/* ---- small things ---- */
NM_HIDDEN uint64_t nm_mono_ns(void);
NM_HIDDEN uint64_t nm_wall_ns(void);
/* True if the comma separated list holds the word. */
NM_HIDDEN bool nm_list_has(const char *list, const char *word);

#endif
