// Look-ups in intervals that overlap. Plain C ABI, called without the GIL.
#ifndef NVPROF_TOOLS_COVERING_H
#define NVPROF_TOOLS_COVERING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// For each instant `at[k]` the last interval `[begin[i], end[i])` in the order given that covers it, else -1, into
// `found[k]`. `begin` rises; `end` is anything. O(n + m), and a sort of the instants where they do not rise.
// Returns 0, or 1 when there is no memory.
__attribute__((visibility("default"))) int nvp_covering(const int64_t* begin, const int64_t* end, uint64_t intervals,
                                                        const int64_t* at, uint64_t instants, int64_t* found);

// Labelled intervals flattened: at each instant the last interval in the order given that covers it gives the label.
// `begin` rises, `end > begin`. Pieces are sorted, disjoint and as long as they can be; there are
// at most `2 * intervals` of them, and `pieces` says how many. Returns 0, or 1 when there is no memory.
__attribute__((visibility("default"))) int nvp_innermost(const int64_t* begin, const int64_t* end, const int64_t* label,
                                                         uint64_t intervals, int64_t* piece_begin, int64_t* piece_end,
                                                         int64_t* piece_label, uint64_t* pieces);

// Intervals with ages flattened: at each instant the least age of all that cover it. `begin` rises; an interval that is
// empty or reversed covers nothing. Pieces are as nvp_innermost's, their ages in place of labels. O(n log n). Returns 0, or
// 1 when there is no memory.
__attribute__((visibility("default"))) int nvp_oldest(const int64_t* begin, const int64_t* end, const int64_t* age,
                                                      uint64_t intervals, int64_t* piece_begin, int64_t* piece_end,
                                                      int64_t* piece_age, uint64_t* pieces);

#ifdef __cplusplus
}
#endif
#endif
