// PM sampling on one device. On the sampling thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cupti_api.h"
#include "sink.h"

namespace nvcap {

class PmDevice {
 public:
  PmDevice(const Cupti& cupti, uint32_t number, uint32_t hz);
  ~PmDevice();

  // False: not possible here; `why` says at which call.
  bool start();
  // Samples since the last time; with `last`, sampling ends first. False: it broke off.
  bool collect(bool last);
  // Whether there have been samples.
  bool fetched() const { return collected_ != 0; }
  // Names of the metrics, as rows.
  void describe(Sink& sink);
  // Samples, as rows: once the offset of the GPU's clock is known well enough, or at the end.
  void hand_over(Sink& sink, bool last);

  // A reason for not starting, or for metrics that were left out; may be filled although sampling runs.
  const std::string& why() const { return why_; }
  uint64_t take_overflows();

 private:
  struct Parts;
  struct Sample {
    uint64_t start, end;
    int64_t value;
    uint32_t metric;
  };

  bool ok(const char* call, CUptiResult result);

  const Cupti& cupti_;
  const uint32_t number_, hz_;
  std::unique_ptr<Parts> parts_;
  std::string why_;
  std::vector<Sample> samples_;
  uint64_t overflows_ = 0;
  uint32_t collected_ = 0;
  int64_t offset_ = INT64_MAX;  // CLOCK_MONOTONIC less GPU clock: the least that was seen
};

}  // namespace nvcap
