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

// Rows of lanes cut to stretches. Lane `l` has the rows `[first[l], first[l + 1])`, disjoint and in order. Stretch `k` is
// `[stretch_begin[k], stretch_end[k])` of lane `lane[k]`. With `row` null only counts; else what of each row lies in each
// stretch goes to `begin_of`, `end_of` and `row`, in order of the stretches. Returns how many there are.
__attribute__((visibility("default"))) uint64_t nvp_cut(const uint64_t* first, const int64_t* begin, const int64_t* end,
                                                        const int64_t* lane, const int64_t* stretch_begin,
                                                        const int64_t* stretch_end, uint64_t stretches,
                                                        int64_t* begin_of, int64_t* end_of, int64_t* row);

#ifdef __cplusplus
}
#endif
#endif
