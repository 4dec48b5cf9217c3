#include "own_driver_calls.h"

#include <algorithm>

#include "cupti_api.h"

namespace nvcap {
namespace {

constexpr uint64_t kSure = 1000;  // nested calls without an own one, before a function is switched off
constexpr uint64_t kSampleEveryNs = 1'000'000'000, kSampleForNs = 20'000'000;

}  // namespace

uint32_t OwnDriverCalls::touch(uint32_t tid) {
  Thread& thread = threads_[tid];
  if (!thread.touched) touched_.push_back(tid);
  thread.touched = true;
  return tid;
}

void OwnDriverCalls::runtime(const RuntimeRow& row) { threads_[touch(row.tid)].calls.push_back({row.start, row.end}); }

void OwnDriverCalls::keep(const DriverRow& row, std::vector<DriverRow>& own) {
  Function& function = functions_[row.cbid];
  if (function.off && function.own == 0) late.push_back(row.cbid);
  function.own++;
  own.push_back(row);
}

void OwnDriverCalls::settle_thread(Thread& thread, std::vector<DriverRow>& own) {
  auto& calls = thread.calls;
  const auto by_start = [](const Call& a, const Call& b) { return a.start < b.start; };
  if (!std::is_sorted(calls.begin(), calls.end(), by_start)) std::sort(calls.begin(), calls.end(), by_start);
  size_t left = 0;
  for (Waiting& waiting : thread.waiting) {
    const DriverRow& row = waiting.row;
    auto after = std::upper_bound(calls.begin(), calls.end(), row.start,
                                  [](uint64_t start, const Call& call) { return start < call.start; });
    bool enclosed = false;
    // Runtime calls hardly nest: two back is deep enough.
    for (int back = 0; back < 3 && after != calls.begin() && !enclosed; back++) {
      --after;
      enclosed = after->end >= row.end && row.end != 0;
    }
    if (enclosed) {
      nested++;
      functions_[row.cbid].nested++;
    } else if (waiting.age >= 1 || (!calls.empty() && calls.back().start > row.end)) {
      keep(row, own);
    } else {
      waiting.age++;
      thread.waiting[left++] = waiting;
    }
  }
  thread.waiting.resize(left);
  // The latest calls may still enclose rows of the next buffer.
  if (calls.size() > 8) calls.erase(calls.begin(), calls.end() - 8);
}

void OwnDriverCalls::settle(std::vector<DriverRow>& own) {
  for (const uint32_t tid : touched_) {
    Thread& thread = threads_[tid];
    thread.touched = false;
    settle_thread(thread, own);
  }
  touched_.clear();
}

void OwnDriverCalls::sweep(std::vector<DriverRow>& own, bool all) {
  settle(own);
  for (auto& entry : threads_) {
    if (entry.second.waiting.empty()) continue;
    settle_thread(entry.second, own);
    if (all) settle_thread(entry.second, own);
  }
}

void OwnDriverCalls::adapt(const Cupti& cupti, uint64_t now_ns) {
  if (cupti.cuptiActivityEnableDriverApi == nullptr) return;
  const bool start = sample_until_ns_ == 0 && now_ns >= sample_at_ns_;
  const bool stop = sample_until_ns_ != 0 && now_ns >= sample_until_ns_;
  for (auto& [cbid, function] : functions_) {
    if (!function.off && function.own == 0 && function.nested >= kSure) {
      function.off = true;
      cupti.cuptiActivityEnableDriverApi(cbid, 0);
    } else if (function.off && function.own > 0) {
      function.off = false;
      cupti.cuptiActivityEnableDriverApi(cbid, 1);
    } else if (function.off && start != stop && (start || function.sampling)) {
      cupti.cuptiActivityEnableDriverApi(cbid, start ? 1 : 0);
      function.sampling = start;
    }
  }
  if (start) sample_until_ns_ = now_ns + kSampleForNs;
  if (stop) {
    sample_until_ns_ = 0;
    sample_at_ns_ = now_ns + kSampleEveryNs;
  }
}

}  // namespace nvcap
