/* The only file that calls NVTX. Each function returns at once on a thread that is already emitting (the tool itself may
 * lock, write or print), in a forked child, and where no tool listens. errno is kept. */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <nvtx3/nvToolsExt.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

NM_TLS_DEFINE int nm_emitting;

static nvtxDomainHandle_t domain;
static nvtxStringHandle_t names[NM_CATEGORY_COUNT];

/* A forked child keeps our memory but not the tool's threads, and a lock of the tool may be held for ever in there. The
 * kernel empties this page in every child (Linux 4.14); before that the process number is asked for each time. */
static const volatile int *in_parent;
static pid_t owner;

static void remember_process(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int *flag = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    owner = getpid();
    if (flag == MAP_FAILED || madvise(flag, page, MADV_WIPEONFORK) != 0) return;
    *flag = 1;
    in_parent = flag;
}

static bool forked(void) { return in_parent != NULL ? *in_parent == 0 : getpid() != owner; }

static const char *const texts[NM_CATEGORY_COUNT] = {
    [NM_MUTEX_WAIT] = "mutex_wait",       [NM_MUTEX_HELD] = "mutex_held",
    [NM_BARRIER_WAIT] = "barrier_wait",   [NM_DRIVER_LOCK] = "driver_lock",
    [NM_DEVICE_SYNC] = "device_sync",     [NM_POOL_TRIM] = "pool_trim",
    [NM_MEM_INFO] = "mem_info",           [NM_ALLOC] = "alloc",
    [NM_HOST_REGISTER] = "host_register", [NM_HOST_UNREGISTER] = "host_unregister",
    [NM_UPLOAD] = "upload",               [NM_KERNELS] = "kernels",
    [NM_FREE] = "free",                   [NM_LAUNCH] = "launch",
    [NM_SYNTHESIS] = "synthesis",         [NM_SECTION] = "section",
    [NM_TIMELINE] = "timeline",           [NM_SHIM] = "shim",
};

static bool enter(int *saved_errno) {
    if (domain == NULL || nm_emitting != 0) return false;
    if (forked()) return false;
    *saved_errno = errno;
    nm_emitting = 1;
    return true;
}

static void leave(int saved_errno) {
    nm_emitting = 0;
    errno = saved_errno;
}

static nvtxEventAttributes_t attributes(enum nm_category category) {
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.category = (uint32_t)category;
    return event;
}

static nvtxEventAttributes_t named(enum nm_category category, uint64_t payload) {
    nvtxEventAttributes_t event = attributes(category);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = names[category];
    if (payload != 0) {
        event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        event.payload.ullValue = payload;
    }
    return event;
}

static nvtxEventAttributes_t worded(enum nm_category category, const char *text) {
    nvtxEventAttributes_t event = attributes(category);
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text;
    return event;
}

bool nm_emit_start(void) {
    const int saved = errno;
    nm_emitting = 1;
    domain = nvtxDomainCreateA("nvprof_tools");
    if (domain != NULL) {
        remember_process();
        for (int i = 1; i < NM_CATEGORY_COUNT; i++) {
            names[i] = nvtxDomainRegisterStringA(domain, texts[i]);
            nvtxDomainNameCategoryA(domain, (uint32_t)i, texts[i]);
        }
        /* A tool's first range costs it tens of microseconds: better here than at the end of a lock wait. */
        const nvtxEventAttributes_t first = named(NM_SHIM, 0);
        nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &first));
        nvtxDomainRangePushEx(domain, &first);
        nvtxDomainRangePop(domain);
    }
    leave(saved);
    return domain != NULL;
}

bool nm_push(enum nm_category category, uint64_t payload) {
    int saved;
    if (!enter(&saved)) return false;
    const nvtxEventAttributes_t event = named(category, payload);
    nvtxDomainRangePushEx(domain, &event);
    leave(saved);
    return true;
}

void nm_pop(void) {
    int saved;
    if (!enter(&saved)) return;
    nvtxDomainRangePop(domain);
    leave(saved);
}

static uint64_t range_start(const nvtxEventAttributes_t *event) {
    int saved;
    uint64_t id;
    if (!enter(&saved)) return 0;
    id = nvtxDomainRangeStartEx(domain, event);
    leave(saved);
    return id;
}

uint64_t nm_range_start(enum nm_category category, uint64_t payload) {
    const nvtxEventAttributes_t event = named(category, payload);
    return range_start(&event);
}

uint64_t nm_section_start(const char *text) {
    const nvtxEventAttributes_t event = worded(NM_SECTION, text);
    return range_start(&event);
}

void nm_range_end(uint64_t id) {
    int saved;
    if (id == 0 || !enter(&saved)) return;
    nvtxDomainRangeEnd(domain, id);
    leave(saved);
}

void nm_mark(enum nm_category category, const char *text) {
    int saved;
    if (!enter(&saved)) return;
    const nvtxEventAttributes_t event = worded(category, text);
    nvtxDomainMarkEx(domain, &event);
    leave(saved);
}
