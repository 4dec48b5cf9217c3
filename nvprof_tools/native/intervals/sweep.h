// Layers of intervals laid over walls: each instant of a wall goes to the first layer that covers it. Plain C ABI,
// called without the GIL.
#ifndef NVPROF_TOOLS_SWEEP_H
#define NVPROF_TOOLS_SWEEP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Disjoint intervals `[begin[i], end[i])` on the axis, none empty, in order. Interval `i` is of category `kind[i]`, or
// `every_kind` where `kind` is null, and has the sub-key `label[i]`, or -1 where `label` is null.
typedef struct {
  const int64_t* begin;
  const int64_t* end;
  uint64_t count;
  const int32_t* kind;
  const int32_t* label;
  int32_t every_kind;
} nvp_layer;

// Wall `i` is `[base[i], base[i] + length[i])` on the axis and begins at `start[i]` in its own time. In order, disjoint;
// a length may be 0.
typedef struct {
  const int64_t* base;
  const int64_t* length;
  const int64_t* start;
  uint64_t count;
} nvp_walls;

// Where pieces go: their bounds in their wall's own time, and whose they are.
typedef struct {
  int64_t* begin;
  int64_t* end;
  int32_t* wall;
  int32_t* kind;
  int32_t* label;
} nvp_pieces;

enum { NVP_SWEEP_PARTS = 64 };

// Every wall is filled with pieces, in order: an instant is of the first of `layers` that covers it, else of category
// `rest`. A piece ends where its interval ends or an earlier layer's begins. First they are counted: `first` holds
// NVP_SWEEP_PARTS + 1 numbers, the last of which says how many there are. Then they are made, given the same layers, walls
// and `first`. Each is O(pieces * layers + intervals), over up to `threads` threads; the result does not depend on
// their number. Both return 0, or 1 when there is no memory.
__attribute__((visibility("default"))) int nvp_sweep_count(const nvp_layer* layers, uint32_t layer_count,
                                                           const nvp_walls* walls, uint32_t threads, uint64_t* first);
__attribute__((visibility("default"))) int nvp_sweep_fill(const nvp_layer* layers, uint32_t layer_count,
                                                          const nvp_walls* walls, int32_t rest, uint32_t threads,
                                                          const uint64_t* first, const nvp_pieces* pieces);

// Whether pieces fill the walls `[begin, end)` to the ns: each wall from its begin to its end, without a gap, in order.
__attribute__((visibility("default"))) int nvp_filled(const nvp_pieces* pieces, uint64_t count, const int64_t* begin,
                                                      const int64_t* end, uint64_t walls);

#ifdef __cplusplus
}
#endif
#endif
