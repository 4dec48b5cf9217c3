// The clocks of the machine, in ns.
#pragma once

#include <time.h>

#include <cstdint>

namespace nvcap {

inline uint64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t monotonic_ns() { return now_ns(CLOCK_MONOTONIC); }

}  // namespace nvcap
