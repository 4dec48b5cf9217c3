// CUPTI's activity records made rows. On the writer only.
#pragma once

#include <cstdint>
#include <vector>

#include "cupti_api.h"
#include "own_driver_calls.h"
#include "options.h"
#include "sink.h"
#include "thread_names.h"

namespace nvcap {

class Records {
 public:
  Records(const Cupti& cupti, const Options& options, Sink& sink, ThreadNames& names)
      : cupti_(cupti), options_(options), sink_(sink), names_(names) {}

  // All whole records of one buffer.
  void take(uint8_t* buffer, size_t bytes);
  // Each second, or at the end.
  void sweep(bool all);
  void adapt(uint64_t now_ns) {
    if (options_.driver == DriverCalls::kAuto) driver_calls_.adapt(cupti_, now_ns);
  }
  // What CUPTI's times are short of CLOCK_MONOTONIC; 0 where it takes its times from our clock.
  void set_offset(int64_t monotonic_minus_cupti) { offset_ = monotonic_minus_cupti; }

  uint64_t unknown = 0;
  uint64_t nested() const { return driver_calls_.nested; }
  std::vector<uint32_t>& late() { return driver_calls_.late; }
  uint32_t function_name(CUpti_CallbackDomain domain, uint32_t cbid);

 private:
  uint64_t time(uint64_t cupti) const { return cupti == 0 ? 0 : cupti + static_cast<uint64_t>(offset_); }
  void one(const CUpti_Activity* record);
  void kernel(const CUpti_Activity* record);
  void copy(const CUpti_Activity* record);
  void peer_copy(const CUpti_Activity* record);
  void fill(const CUpti_Activity* record);
  void api(const CUpti_Activity* record, bool of_runtime);
  void synchronization(const CUpti_Activity* record);
  void overhead(const CUpti_Activity* record);
  void memory(const CUpti_Activity* record);
  void memory_pool(const CUpti_Activity* record);
  void graph(const CUpti_Activity* record);
  void context(const CUpti_Activity* record);
  void device(const CUpti_Activity* record);
  void stream(const CUpti_Activity* record);

  const Cupti& cupti_;
  const Options& options_;
  Sink& sink_;
  ThreadNames& names_;
  OwnDriverCalls driver_calls_;
  std::vector<uint32_t> function_names_[2];
  int64_t offset_ = 0;
};

}  // namespace nvcap
