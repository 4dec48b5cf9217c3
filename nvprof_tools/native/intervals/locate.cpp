#include "locate.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace {

// What of one slot has begun: `next` is its first interval that has not. Most threads are in one interval at a time, so
// the one on top is kept apart from those below it.
struct Begun {
  uint64_t next;
  int64_t top = -1;
  int64_t last = INT64_MIN;
  std::vector<int64_t> below;
};

}  // namespace

extern "C" int nvp_locate(const uint64_t* first, uint64_t slots, const int64_t* begin, const int64_t* end,
                          const int64_t* slot, const int64_t* at, uint64_t instants, int64_t* found) {
  try {
    std::vector<Begun> begun(slots);
    for (uint64_t s = 0; s < slots; ++s) begun[s].next = first[s];
    for (uint64_t k = 0; k < instants; ++k) {
      if (slot[k] < 0) {
        found[k] = -1;
        continue;
      }
      Begun& own = begun[slot[k]];
      const int64_t now = at[k];
      if (now < own.last) return 2;
      own.last = now;
      for (; own.next < first[slot[k] + 1] && begin[own.next] <= now; ++own.next) {
        if (end[own.next] <= now) continue;
        if (own.top >= 0) own.below.push_back(own.top);
        own.top = static_cast<int64_t>(own.next);
      }
      while (own.top >= 0 && end[own.top] <= now) {
        own.top = own.below.empty() ? -1 : own.below.back();
        if (!own.below.empty()) own.below.pop_back();
      }
      found[k] = own.top;
    }
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

namespace {

// The rows that a stretch meets: none where it is empty or reversed.
std::pair<uint64_t, uint64_t> met(const nvp_cutting& of, uint64_t k) {
  const uint64_t low = of.first[of.lane[k]], high = of.first[of.lane[k] + 1];
  const auto count = [](const int64_t* at, const int64_t* from) { return static_cast<uint64_t>(at - from); };
  const uint64_t from = count(std::upper_bound(of.end + low, of.end + high, of.stretch_begin[k]), of.end);
  const uint64_t to = count(std::lower_bound(of.begin + low, of.begin + high, of.stretch_end[k]), of.begin);
  return {from, of.stretch_begin[k] < of.stretch_end[k] ? std::max(from, to) : from};
}

}  // namespace

extern "C" uint64_t nvp_cut_count(const nvp_cutting* cutting) {
  uint64_t pieces = 0;
  for (uint64_t k = 0; k < cutting->stretches; ++k) {
    const auto [from, to] = met(*cutting, k);
    pieces += to - from;
  }
  return pieces;
}

extern "C" void nvp_cut_fill(const nvp_cutting* cutting, int64_t shift, int64_t* begin, int64_t* end, int32_t* number,
                             int32_t* other) {
  uint64_t piece = 0;
  for (uint64_t k = 0; k < cutting->stretches; ++k) {
    const auto [from, to] = met(*cutting, k);
    for (uint64_t row = from; row < to; ++row, ++piece) {
      begin[piece] = std::max(cutting->begin[row], cutting->stretch_begin[k]) + shift;
      end[piece] = std::min(cutting->end[row], cutting->stretch_end[k]) + shift;
      number[piece] = cutting->number[row];
      other[piece] = cutting->other[row];
    }
  }
}
