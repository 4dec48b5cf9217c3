// Look-ups by key and time. Plain C ABI, called without the GIL.
#ifndef NVPROF_TOOLS_LOCATE_H
#define NVPROF_TOOLS_LOCATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// For each `(slot[k], at[k])` the last of the intervals of that slot, in the order given, that covers the instant, else -1,
// into `found[k]`. Slot `s` has the intervals `[first[s], first[s + 1])`, whose `begin` rises; a negative slot has none.
// Returns 0; 1 when there is no memory; 2 when the instants of some slot do not rise, and then nothing is found.
__attribute__((visibility("default"))) int nvp_locate(const uint64_t* first, uint64_t slots, const int64_t* begin,
                                                      const int64_t* end, const int64_t* slot, const int64_t* at,
                                                      uint64_t instants, int64_t* found);

// Rows of lanes cut to stretches. Lane `l` has the rows `[first[l], first[l + 1])`, disjoint and in order, each with two
// numbers. Stretch `k` is `[stretch_begin[k], stretch_end[k])` of lane `lane[k]`.
typedef struct {
  const uint64_t* first;
  const int64_t* begin;
  const int64_t* end;
  const int32_t* number;
  const int32_t* other;
  const int64_t* lane;
  const int64_t* stretch_begin;
  const int64_t* stretch_end;
  uint64_t stretches;
} nvp_cutting;

// How many pieces there are.
__attribute__((visibility("default"))) uint64_t nvp_cut_count(const nvp_cutting* cutting);

// What of each row lies in each stretch, moved by `shift`, with its row's numbers; in order of the stretches.
__attribute__((visibility("default"))) void nvp_cut_fill(const nvp_cutting* cutting, int64_t shift, int64_t* begin,
                                                         int64_t* end, int32_t* number, int32_t* other);

#ifdef __cplusplus
}
#endif
#endif
