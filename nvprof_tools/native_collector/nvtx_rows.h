// NVTX calls made rows: pushes find their pops, starts their ends. On the writer only.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nvtx_ring.h"
#include "sink.h"
#include "thread_names.h"

namespace nvcap::nvtx {

class Rows {
 public:
  Rows(Sink& sink, ThreadNames& names) : sink_(sink), names_(names) {}

  // What has come since the last time.
  void take(Rings& rings);
  // At the end: ranges that are still open are written without an end.
  void finish();

  uint64_t dropped = 0, unmatched = 0;

 private:
  struct Open {
    NvtxRangeRow row;
    uint64_t level;
  };
  struct Ended {
    uint64_t time;
    uint32_t tid;
  };
  struct Thread {
    std::unordered_map<const void*, std::vector<Open>> stacks;  // by domain
    uint64_t dropped = 0;
  };

  void one(Ring& ring, Thread& thread, const Entry& entry, const char* text);
  void push(std::vector<Open>& stack, Open open);
  void pop(std::vector<Open>& stack, const Entry& entry, uint32_t tid);
  void close_all(Thread& thread);
  NvtxRangeRow range(const Entry& entry, uint32_t tid, const char* text);
  uint32_t text_id(const Entry& entry, const char* text);
  std::pair<uint32_t, uint32_t> domain_of(const void* handle);  // index, string id
  uint32_t category_id(uint32_t domain_index, uint32_t category);

  Sink& sink_;
  ThreadNames& names_;
  std::unordered_map<const Ring*, Thread> threads_;
  std::unordered_map<uint64_t, NvtxRangeRow> started_;
  std::unordered_map<uint64_t, Ended> ended_early_;  // the other thread's ring came first
  std::unordered_map<const void*, uint32_t> registered_;
  std::unordered_map<const void*, std::pair<uint32_t, uint32_t>> domains_;
  std::unordered_map<uint64_t, uint32_t> categories_;
  uint64_t registry_age_ = 0;
};

}  // namespace nvcap::nvtx
