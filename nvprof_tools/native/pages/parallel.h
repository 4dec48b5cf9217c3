// Tasks over threads. The first refusal stops the rest and is thrown again in the calling thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "bytes.h"

namespace nvp {

// Calls `make()` once a thread, and what it returns with each task number below `tasks`, in rising order within a thread.
template <class Make>
void parallel(uint32_t threads, uint64_t tasks, Make make) {
  std::atomic<uint64_t> next{0};
  std::atomic<int> reason{NVP_OK};
  const auto body = [&]() noexcept {
    try {
      auto work = make();
      for (uint64_t task; reason.load(std::memory_order_relaxed) == NVP_OK && (task = next.fetch_add(1)) < tasks;) {
        work(task);
      }
    } catch (const Refusal& refusal) {
      reason = refusal.reason;
    } catch (const std::bad_alloc&) {
      reason = NVP_MEMORY;
    } catch (...) {
      reason = NVP_REQUEST;
    }
  };
  std::vector<std::thread> others;
  try {
    for (uint64_t i = 1; i < threads && i < tasks; ++i) others.emplace_back(body);
  } catch (const std::exception&) {
    // No more threads to be had: the ones there are do it all.
  }
  body();
  for (std::thread& other : others) other.join();
  demand(reason == NVP_OK, reason);
}

}  // namespace nvp
