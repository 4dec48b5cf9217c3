// Samples of the GPU's own counters, where driver and CUPTI permit; where not, a notice says at which call and why.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cupti_api.h"
#include "sink.h"

namespace nvcap {

class PmSampling {
 public:
  PmSampling(const Cupti& cupti, Sink& sink, std::mutex& sink_lock, uint32_t hz)
      : cupti_(cupti), sink_(sink), sink_lock_(sink_lock), hz_(hz) {}

  // Starts the thread, if samples are wanted.
  void start();
  // A device is in use; the first time, sampling starts there, on our thread.
  void device(uint32_t number);
  // Last samples, then the end; waits a little, not for ever.
  void stop();

 private:
  void run(uint32_t tid);

  const Cupti& cupti_;
  Sink& sink_;
  std::mutex& sink_lock_;
  const uint32_t hz_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::set<uint32_t> seen_;
  std::vector<uint32_t> waiting_;
  bool running_ = false, stopping_ = false;
};

}  // namespace nvcap
