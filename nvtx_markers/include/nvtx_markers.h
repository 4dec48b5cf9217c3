/* nvtx_markers: ranges and marks that tell a profiler which stage of which partition a thread is in.
 *
 * For C (C11) and C++ (C++11 on), GCC or Clang. Header only: nothing to link (glibc before 2.34: -ldl). Needs NVTX v3 headers,
 * which come with the CUDA toolkit or the nvidia-nvtx package: add their folder with -I.
 * With no tool attached a range costs about a nanosecond. Define NVTX_MARKERS_DISABLE to compile everything away.
 *
 *     nvtx_markers::section section("job-7", partition, worker);       // one partition's stay on a GPU worker
 *     nvtx_markers::lock_guard<std::mutex> lock(gpu_mutex);            // marks the wait and the hold apart
 *     { nvtx_markers::range upload(nvtx_markers::category::upload); ... }
 *     nvtx_markers::timeline_event("GPU_START", "job-7", "worker=0,partition=3");
 *
 * Names, numbers and texts are those of nvtx_markers/conventions.py (docs/markers.md).
 */
#ifndef NVTX_MARKERS_H
#define NVTX_MARKERS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef NVTX_MARKERS_DISABLE
#include <nvtx3/nvToolsExt.h>
#include <sched.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum nvtx_markers_category {
    NVTX_MARKERS_MUTEX_WAIT = 1,
    NVTX_MARKERS_MUTEX_HELD = 2,
    NVTX_MARKERS_BARRIER_WAIT = 3,
    NVTX_MARKERS_DRIVER_LOCK = 4,
    NVTX_MARKERS_DEVICE_SYNC = 5,
    NVTX_MARKERS_POOL_TRIM = 6,
    NVTX_MARKERS_MEM_INFO = 7,
    NVTX_MARKERS_ALLOC = 8,
    NVTX_MARKERS_HOST_REGISTER = 9,
    NVTX_MARKERS_HOST_UNREGISTER = 10,
    NVTX_MARKERS_UPLOAD = 11,
    NVTX_MARKERS_KERNELS = 12,
    NVTX_MARKERS_FREE = 13,
    NVTX_MARKERS_LAUNCH = 14,
    NVTX_MARKERS_SYNTHESIS = 15,
    NVTX_MARKERS_SECTION = 16,
    NVTX_MARKERS_TIMELINE = 17,
    NVTX_MARKERS_SHIM = 18,
    NVTX_MARKERS_CATEGORY_COUNT = 19
};

#define NVTX_MARKERS_CONVENTIONS 1

static inline uint64_t nvtx_markers_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifndef NVTX_MARKERS_DISABLE

/* One of these in each program or shared object, however many files include this header. */
struct nvtx_markers_state {
    int phase; /* 0 not asked yet, 1 asking, 2 a tool listens, 3 none does */
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t names[NVTX_MARKERS_CATEGORY_COUNT];
};
__attribute__((weak, visibility("hidden"))) struct nvtx_markers_state nvtx_markers_state_v1;

static inline nvtxEventAttributes_t nvtx_markers_worded(uint32_t category, const char *text) {
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.category = category;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text;
    return event;
}

static inline nvtxEventAttributes_t nvtx_markers_named(uint32_t category, const void *lock) {
    nvtxEventAttributes_t event = nvtx_markers_worded(category, NULL);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtx_markers_state_v1.names[category];
    if (lock != NULL) {
        event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        event.payload.ullValue = (uint64_t)(uintptr_t)lock;
    }
    return event;
}

__attribute__((cold, noinline, unused)) static int nvtx_markers_begin(void) {
    static const char *const texts[NVTX_MARKERS_CATEGORY_COUNT] = {
        "",           "mutex_wait", "mutex_held",    "barrier_wait",    "driver_lock", "device_sync", "pool_trim",
        "mem_info",   "alloc",      "host_register", "host_unregister", "upload",      "kernels",     "free",
        "launch",     "synthesis",  "section",       "timeline",        "shim"};
    struct nvtx_markers_state *state = &nvtx_markers_state_v1;
    int phase = 0;
    if (__atomic_compare_exchange_n(&state->phase, &phase, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        state->domain = nvtxDomainCreateA("nvprof_tools");
        if (state->domain != NULL) {
            for (uint32_t i = 1; i < NVTX_MARKERS_CATEGORY_COUNT; i++) {
                state->names[i] = nvtxDomainRegisterStringA(state->domain, texts[i]);
                nvtxDomainNameCategoryA(state->domain, i, texts[i]);
            }
            /* A tool's first range costs it tens of microseconds: better here than at the end of a lock wait. */
            nvtxEventAttributes_t first = nvtx_markers_named(NVTX_MARKERS_SHIM, NULL);
            nvtxDomainRangeEnd(state->domain, nvtxDomainRangeStartEx(state->domain, &first));
            nvtxDomainRangePushEx(state->domain, &first);
            nvtxDomainRangePop(state->domain);
            nvtxEventAttributes_t hello = nvtx_markers_worded(NVTX_MARKERS_SHIM, "nvtx_markers conventions=1 source=header");
            nvtxDomainMarkEx(state->domain, &hello);
        }
        __atomic_store_n(&state->phase, state->domain != NULL ? 2 : 3, __ATOMIC_RELEASE);
    }
    while ((phase = __atomic_load_n(&state->phase, __ATOMIC_ACQUIRE)) == 1) sched_yield();
    return phase == 2;
}

/* Whether a tool listens. */
static inline int nvtx_markers_on(void) {
    const int phase = __atomic_load_n(&nvtx_markers_state_v1.phase, __ATOMIC_ACQUIRE);
    if (__builtin_expect(phase == 3, 1)) return 0;
    return phase == 2 || nvtx_markers_begin();
}

/* Ranges that nest on one thread; the lock's address for mutex_wait, else NULL. Returns whether a pop is due. */
static inline int nvtx_markers_range_push(enum nvtx_markers_category category, const void *lock) {
    if (!nvtx_markers_on()) return 0;
    const nvtxEventAttributes_t event = nvtx_markers_named((uint32_t)category, lock);
    nvtxDomainRangePushEx(nvtx_markers_state_v1.domain, &event);
    return 1;
}
static inline void nvtx_markers_range_pop(void) {
    if (nvtx_markers_on()) nvtxDomainRangePop(nvtx_markers_state_v1.domain);
}

/* Ranges that may overlap and end on another thread; 0 is "no range" and may be ended. */
static inline uint64_t nvtx_markers_held_start(const void *lock) {
    if (!nvtx_markers_on()) return 0;
    const nvtxEventAttributes_t event = nvtx_markers_named(NVTX_MARKERS_MUTEX_HELD, lock);
    return nvtxDomainRangeStartEx(nvtx_markers_state_v1.domain, &event);
}
/* A negative partition or worker is "not known". */
static inline uint64_t nvtx_markers_section_start(const char *job, long partition, long worker) {
    char text[512], numbers[2][24] = {"-", "-"};
    if (!nvtx_markers_on()) return 0;
    if (partition >= 0) snprintf(numbers[0], sizeof numbers[0], "%ld", partition);
    if (worker >= 0) snprintf(numbers[1], sizeof numbers[1], "%ld", worker);
    snprintf(text, sizeof text, "section job=%.400s partition=%s worker=%s", job == NULL ? "" : job, numbers[0], numbers[1]);
    const nvtxEventAttributes_t event = nvtx_markers_worded(NVTX_MARKERS_SECTION, text);
    return nvtxDomainRangeStartEx(nvtx_markers_state_v1.domain, &event);
}
static inline void nvtx_markers_range_end(uint64_t range) {
    if (range != 0) nvtxDomainRangeEnd(nvtx_markers_state_v1.domain, range);
}

/* `happened` is the event's own time on CLOCK_MONOTONIC. */
static inline void nvtx_markers_mark_line(const char *line, size_t length, uint64_t happened) {
    char text[1152];
    if (!nvtx_markers_on() || length > 1000) return;
    memcpy(text, line, length);
    const uint64_t wall = nvtx_markers_clock(CLOCK_REALTIME), mono = nvtx_markers_clock(CLOCK_MONOTONIC);
    snprintf(text + length, sizeof text - length, "|wall_ns=%llu|mono_ns=%llu|late_ns=%llu",
             (unsigned long long)wall, (unsigned long long)mono, (unsigned long long)(mono - happened));
    const nvtxEventAttributes_t event = nvtx_markers_worded(NVTX_MARKERS_TIMELINE, text);
    nvtxDomainMarkEx(nvtx_markers_state_v1.domain, &event);
}

#else /* NVTX_MARKERS_DISABLE */

static inline int nvtx_markers_on(void) { return 0; }
static inline int nvtx_markers_range_push(enum nvtx_markers_category category, const void *lock) {
    (void)category, (void)lock;
    return 0;
}
static inline void nvtx_markers_range_pop(void) {}
static inline uint64_t nvtx_markers_held_start(const void *lock) {
    (void)lock;
    return 0;
}
static inline uint64_t nvtx_markers_section_start(const char *job, long partition, long worker) {
    (void)job, (void)partition, (void)worker;
    return 0;
}
static inline void nvtx_markers_range_end(uint64_t range) { (void)range; }
static inline void nvtx_markers_mark_line(const char *line, size_t length, uint64_t happened) {
    (void)line, (void)length, (void)happened;
}

#endif

/* ---- the timeline log: printed whether or not a tool listens ---- */

__attribute__((weak, visibility("hidden"))) uint64_t nvtx_markers_epoch_v1;

/* Sets the zero of the log's milliseconds, once; the first event sets it otherwise. */
static inline uint64_t nvtx_markers_timeline_epoch(void) {
    uint64_t epoch = __atomic_load_n(&nvtx_markers_epoch_v1, __ATOMIC_ACQUIRE);
    if (epoch == 0) {
        const uint64_t now = nvtx_markers_clock(CLOCK_MONOTONIC);
        if (__atomic_compare_exchange_n(&nvtx_markers_epoch_v1, &epoch, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            epoch = now;
    }
    return epoch;
}

/* Prints `TIMELINE,<ms>,<event>,<job>,<details>` to stderr in one piece, and makes the mark of it. */
static inline void nvtx_markers_timeline_event(const char *event, const char *job, const char *details) {
    char line[1001];
    const uint64_t epoch = nvtx_markers_timeline_epoch(), now = nvtx_markers_clock(CLOCK_MONOTONIC);
    const int made = snprintf(line, sizeof line, "TIMELINE,%llu,%s,%s,%s", (unsigned long long)((now - epoch) / 1000000u),
                              event, job, details == NULL ? "" : details);
    if (made < 0) return;
    size_t length = (size_t)made < sizeof line ? (size_t)made : sizeof line - 1;
    nvtx_markers_mark_line(line, length, now);
    line[length++] = '\n';
    /* Straight to the kernel: the preload library's tap, should it be there, would mark the line a second time. */
    for (size_t done = 0; done < length;) {
        const long written = syscall(SYS_write, 2, line + done, length - done);
        if (written <= 0) break;
        done += (size_t)written;
    }
}

#ifdef __cplusplus
} /* extern "C" */

namespace nvtx_markers {

enum class category {
    mutex_wait = NVTX_MARKERS_MUTEX_WAIT,
    mutex_held = NVTX_MARKERS_MUTEX_HELD,
    barrier_wait = NVTX_MARKERS_BARRIER_WAIT,
    driver_lock = NVTX_MARKERS_DRIVER_LOCK,
    device_sync = NVTX_MARKERS_DEVICE_SYNC,
    pool_trim = NVTX_MARKERS_POOL_TRIM,
    mem_info = NVTX_MARKERS_MEM_INFO,
    alloc = NVTX_MARKERS_ALLOC,
    host_register = NVTX_MARKERS_HOST_REGISTER,
    host_unregister = NVTX_MARKERS_HOST_UNREGISTER,
    upload = NVTX_MARKERS_UPLOAD,
    kernels = NVTX_MARKERS_KERNELS,
    free = NVTX_MARKERS_FREE,
    launch = NVTX_MARKERS_LAUNCH,
    synthesis = NVTX_MARKERS_SYNTHESIS
};

/* A range from here to the end of the scope. */
class range {
  public:
    explicit range(category what, const void *lock = nullptr)
        : pushed_(nvtx_markers_range_push(static_cast<nvtx_markers_category>(what), lock) != 0) {}
    ~range() {
        if (pushed_) nvtx_markers_range_pop();
    }
    range(const range &) = delete;
    range &operator=(const range &) = delete;

  private:
    bool pushed_;
};

/* One partition's stay on a GPU worker, from here to the end of the scope. */
class section {
  public:
    section(const char *job, long partition, long worker = -1)
        : range_(nvtx_markers_section_start(job, partition, worker)) {}
    ~section() { nvtx_markers_range_end(range_); }
    section(const section &) = delete;
    section &operator=(const section &) = delete;

  private:
    uint64_t range_;
};

/* Like std::lock_guard; the wait (if any) and the hold are two ranges. May be unlocked early. */
template <class Mutex> class lock_guard {
  public:
    explicit lock_guard(Mutex &mutex) : mutex_(&mutex), held_(0) {
        if (!nvtx_markers_on()) {
            mutex.lock();
            return;
        }
        if (!mutex.try_lock()) {
            range waiting(category::mutex_wait, &mutex);
            mutex.lock();
        }
        held_ = nvtx_markers_held_start(&mutex);
    }
    ~lock_guard() { unlock(); }
    void unlock() {
        if (mutex_ == nullptr) return;
        nvtx_markers_range_end(held_);
        mutex_->unlock();
        mutex_ = nullptr;
    }
    lock_guard(const lock_guard &) = delete;
    lock_guard &operator=(const lock_guard &) = delete;

  private:
    Mutex *mutex_;
    uint64_t held_;
};

inline void timeline_epoch() { nvtx_markers_timeline_epoch(); }
inline void timeline_event(const char *event, const char *job, const char *details = "") {
    nvtx_markers_timeline_event(event, job, details);
}

} // namespace nvtx_markers
#endif

#endif
