#include "locate.h"

#include <algorithm>
#include <new>
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

extern "C" uint64_t nvp_cut(const uint64_t* first, const int64_t* begin, const int64_t* end, const int64_t* lane,
                            const int64_t* stretch_begin, const int64_t* stretch_end, uint64_t stretches,
                            int64_t* begin_of, int64_t* end_of, int64_t* row) {
  uint64_t made = 0;
  for (uint64_t k = 0; k < stretches; ++k) {
    const uint64_t stop = first[lane[k] + 1];
    uint64_t i = static_cast<uint64_t>(std::upper_bound(end + first[lane[k]], end + stop, stretch_begin[k]) - end);
    for (; i < stop && begin[i] < stretch_end[k]; ++i) {
      const int64_t low = std::max(begin[i], stretch_begin[k]), high = std::min(end[i], stretch_end[k]);
      if (low >= high) continue;  // the stretch is reversed or empty
      if (row) {
        begin_of[made] = low;
        end_of[made] = high;
        row[made] = static_cast<int64_t>(i);
      }
      ++made;
    }
  }
  return made;
}
