// What the shim costs, in nanoseconds an operation: best of several repeats, one line a figure, `name value`.
//
//   g++ -O2 -std=c++17 -I nvtx_markers/include -I $CUDA/include -o markers_cost benchmarks/markers_cost.cpp -ldl -pthread
//   ./markers_cost                                       nothing attached
//   LD_PRELOAD=libnvtx_markers_preload.so ./markers_cost the preload library, nothing attached
//   nsys profile -t nvtx [-e LD_PRELOAD=...] ./markers_cost --events 100000
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "nvtx_markers.h"

static int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static FILE *results;
static int repeats = 7;

template <class Work> static void measure(const char *name, long count, Work work) {
    double best = 1e18;
    for (int repeat = 0; repeat < repeats; repeat++) {
        const int64_t start = now_ns();
        for (long i = 0; i < count; i++) work();
        const double each = (double)(now_ns() - start) / (double)count;
        if (each < best) best = each;
    }
    fprintf(results, "%s %.2f\n", name, best);
    fflush(results);
}

int main(int argc, char **argv) {
    long events = 1000000, locks = 5000000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--events") == 0) events = atol(argv[i + 1]);
        if (strcmp(argv[i], "--locks") == 0) locks = atol(argv[i + 1]);
        if (strcmp(argv[i], "--repeats") == 0) repeats = atoi(argv[i + 1]);
    }
    // The log lines go nowhere; the figures go where stdout was.
    results = fdopen(dup(1), "w");
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1);
    dup2(nowhere, 2);

    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    measure("lock_unlock", locks, [] {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    });

    static const char line[] = "TIMELINE,301545,GPU_START,0b7f6c1e-6c0e-4a52-9b62-2f0a6f3f9d10,worker=1,partition=7\n";
    measure("write_timeline_line", events, [] {
        if (write(2, line, sizeof line - 1) < 0) abort();
    });
    static const char *const pieces[] = {"TIMELINE,", "301545", ",", "GPU_START", ",", "0b7f6c1e-6c0e-4a52-9b62-2f0a6f3f9d10",
                                         ",", "worker=1,partition=7", "\n"};
    measure("write_timeline_line_in_nine", events / 4, [] {
        for (const char *piece : pieces)
            if (write(2, piece, strlen(piece)) < 0) abort();
    });
    measure("write_other_line", events, [] {
        if (write(2, "CUZK_TIMING: prep_msm_ms=12\n", 28) < 0) abort();
    });
    measure("fprintf_timeline_line", events, [] {
        fprintf(stderr, "TIMELINE,%d,GPU_START,%s,worker=%d,partition=%d\n", 301545,
                "0b7f6c1e-6c0e-4a52-9b62-2f0a6f3f9d10", 1, 7);
    });

    nvtxDomainHandle_t domain = nvtxDomainCreateA("plain");
    static nvtxEventAttributes_t event;
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.category = 11;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "upload");
    measure("plain_nvtx_range", events, [domain] {
        nvtxDomainRangePushEx(domain, &event);
        nvtxDomainRangePop(domain);
    });
    nvtx_markers_on();
    measure("header_range", events, [] { nvtx_markers::range upload(nvtx_markers::category::upload); });
    measure("plain_nvtx_range_again", events, [domain] {
        nvtxDomainRangePushEx(domain, &event);
        nvtxDomainRangePop(domain);
    });
    measure("header_range_again", events, [] { nvtx_markers::range upload(nvtx_markers::category::upload); });
    measure("header_section", events / 4, [] { nvtx_markers::section section("job-1", 3, 0); });
    static std::mutex held;
    measure("header_lock_guard", events, [] { nvtx_markers::lock_guard<std::mutex> lock(held); });
    return 0;
}
