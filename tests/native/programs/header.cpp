// The C++ header as a program uses it; with header_other.c, a second file that includes it.
#include <mutex>
#include <thread>

#include "nvtx_markers.h"

extern "C" int in_c(void);

int main() {
    namespace nm = nvtx_markers;
    nm::timeline_epoch();
    nm::timeline_event("GPU_START", "job-1 [7 7]", "worker=0,partition=3");
    {
        nm::section section("job-1 [7 7]", 3, 0);
        nm::section unknown("job-2", -1);
        nm::range upload(nm::category::upload);
        nm::range free(nm::category::free);
    }
    std::mutex mutex;
    {
        nm::lock_guard<std::mutex> lock(mutex);
        lock.unlock();
        lock.unlock(); // twice is once
    }
    {
        nm::lock_guard<std::mutex> lock(mutex);
        std::thread waiter([&] { nm::lock_guard<std::mutex> mine(mutex); });
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        lock.unlock();
        waiter.join();
    }
    return in_c();
}
