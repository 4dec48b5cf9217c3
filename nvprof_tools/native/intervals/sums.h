// Lengths of intervals summed. Plain C ABI, called without the GIL.
#ifndef NVPROF_TOOLS_SUMS_H
#define NVPROF_TOOLS_SUMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Rows in order of `group`. `end - begin` is summed for each group and key that occur, in order of group and of key. A
// row's key is `code[row] * width + label[row]`, or `code[row]` with `label` null; rows with a negative code or label are
// left out. Keys are below `keys`. The sums go to `group_of`, `key_of` and `sum`, at most `rows` of each, and `found` says how
// many they are. O(rows + keys) and a sort of the keys of each group. Returns 0, or 1 when there is no memory.
__attribute__((visibility("default"))) int nvp_sums(const int32_t* group, const int32_t* code, const int32_t* label,
                                                    const int64_t* begin, const int64_t* end, uint64_t rows,
                                                    int64_t width, uint64_t keys, int32_t* group_of, int64_t* key_of,
                                                    int64_t* sum, uint64_t* found);

// How much of each code lies in a set of time: `begin`/`end` are disjoint intervals in order, each of `code[i]` below
// the length of `sum`; `set_begin`/`set_end` are disjoint and in order too. Adds to `sum`. O(rows + spans).
__attribute__((visibility("default"))) void nvp_shared(const int64_t* begin, const int64_t* end, const int32_t* code,
                                                       uint64_t rows, const int64_t* set_begin, const int64_t* set_end,
                                                       uint64_t spans, int64_t* sum);

// What of `[begin[i], end[i])` lies in none of `[set_begin[j], set_end[j])`; both disjoint and in order, none empty. At most
// `rows + spans` pieces go to `left_begin` and `left_end`; returns how many. O(rows + spans).
__attribute__((visibility("default"))) uint64_t nvp_subtract(const int64_t* begin, const int64_t* end, uint64_t rows,
                                                             const int64_t* set_begin, const int64_t* set_end,
                                                             uint64_t spans, int64_t* left_begin, int64_t* left_end);

#ifdef __cplusplus
}
#endif
#endif
