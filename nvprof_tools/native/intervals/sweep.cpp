#include "sweep.h"

#include <algorithm>
#include <new>
#include <vector>

#include "../pages/parallel.h"

namespace {

constexpr uint64_t kIntervalsAPart = 1 << 15;  // fewer are not worth a thread

struct Layers {
  const nvp_layer* layer;
  uint32_t count;
};

// Instants that part the axis into stretches no piece crosses: where walls begin, and where intervals of the first layer
// do, which nothing covers. The first is below every wall.
std::vector<int64_t> parted(const Layers& layers, const nvp_walls& walls) {
  uint64_t intervals = walls.count;
  for (uint32_t k = 0; k < layers.count; ++k) intervals += layers.layer[k].count;
  const uint64_t parts = std::clamp<uint64_t>(intervals / kIntervalsAPart, 1, NVP_SWEEP_PARTS);
  std::vector<int64_t> begins{INT64_MIN};
  const bool by_layer = layers.count > 0 && layers.layer[0].count > walls.count;
  const int64_t* instants = by_layer ? layers.layer[0].begin : walls.base;
  const uint64_t count = by_layer ? layers.layer[0].count : walls.count;
  for (uint64_t part = 1; part < parts && count > 0; ++part) {
    const int64_t instant = instants[part * count / parts];
    if (instant > begins.back()) begins.push_back(instant);
  }
  return begins;
}

// One part of the axis, swept from its begin to the next one's.
class Part {
 public:
  Part(const Layers& layers, const nvp_walls& walls, int32_t rest, int64_t begin, int64_t end)
      : layers_(layers), walls_(walls), rest_(rest), begin_(begin), end_(end), at_(layers.count) {
    for (uint32_t k = 0; k < layers.count; ++k) {
      const nvp_layer& one = layers.layer[k];
      at_[k] = std::upper_bound(one.end, one.end + one.count, begin) - one.end;
    }
    // The last wall that begins at or before this part may reach into it.
    wall_ = std::upper_bound(walls.base, walls.base + walls.count, begin) - walls.base;
    if (wall_ > 0) --wall_;
  }

  // Calls `keep(begin, end, wall, kind, label)` for each piece.
  template <class Keep>
  void sweep(Keep keep) {
    for (; wall_ < walls_.count && walls_.base[wall_] < end_; ++wall_) {
      int64_t now = std::max(walls_.base[wall_], begin_);
      const int64_t last = std::min(walls_.base[wall_] + walls_.length[wall_], end_);
      while (now < last) {
        int64_t until = last;
        int32_t kind = rest_, label = -1;
        for (uint32_t k = 0; k < layers_.count; ++k) {
          const nvp_layer& one = layers_.layer[k];
          uint64_t& at = at_[k];
          while (at < one.count && one.end[at] <= now) ++at;
          if (at == one.count) continue;
          if (one.begin[at] <= now) {
            until = std::min(until, one.end[at]);
            kind = one.kind ? one.kind[at] : one.every_kind;
            label = one.label ? one.label[at] : -1;
            break;
          }
          until = std::min(until, one.begin[at]);
        }
        keep(now, until, wall_, kind, label);
        now = until;
      }
    }
  }

 private:
  const Layers& layers_;
  const nvp_walls& walls_;
  int32_t rest_;
  int64_t begin_, end_;
  uint64_t wall_;
  std::vector<uint64_t> at_;
};

// Calls `work(part, number)` for every part; 0, or 1 when there is no memory.
template <class Work>
int over_parts(const Layers& layers, const nvp_walls& walls, int32_t rest, uint32_t threads, Work work) {
  try {
    const std::vector<int64_t> begins = parted(layers, walls);
    nvp::parallel(threads, begins.size(), [&] {
      return [&](uint64_t number) {
        const int64_t end = number + 1 < begins.size() ? begins[number + 1] : INT64_MAX;
        Part part(layers, walls, rest, begins[number], end);
        work(part, number);
      };
    });
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  } catch (const nvp::Refusal&) {
    return 1;
  }
}

int64_t moved(int64_t instant, int64_t from, int64_t to) {  // unsigned: a difference may be beyond 63 bits
  return static_cast<int64_t>(static_cast<uint64_t>(instant) + static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
}

}  // namespace

extern "C" int nvp_sweep_count(const nvp_layer* layer, uint32_t layer_count, const nvp_walls* walls, uint32_t threads,
                               uint64_t* first) {
  std::fill_n(first, NVP_SWEEP_PARTS + 1, 0);
  const int failed = over_parts({layer, layer_count}, *walls, -1, threads, [&](Part& part, uint64_t number) {
    uint64_t count = 0;
    part.sweep([&](int64_t, int64_t, uint64_t, int32_t, int32_t) { ++count; });
    first[number + 1] = count;
  });
  for (int number = 0; number < NVP_SWEEP_PARTS; ++number) first[number + 1] += first[number];
  return failed;
}

extern "C" int nvp_sweep_fill(const nvp_layer* layer, uint32_t layer_count, const nvp_walls* walls, int32_t rest,
                              uint32_t threads, const uint64_t* first, const nvp_pieces* pieces) {
  return over_parts({layer, layer_count}, *walls, rest, threads, [&](Part& part, uint64_t number) {
    uint64_t row = first[number];
    part.sweep([&](int64_t begin, int64_t end, uint64_t wall, int32_t kind, int32_t label) {
      pieces->begin[row] = moved(begin, walls->base[wall], walls->start[wall]);
      pieces->end[row] = moved(end, walls->base[wall], walls->start[wall]);
      pieces->wall[row] = static_cast<int32_t>(wall);
      pieces->kind[row] = kind;
      pieces->label[row] = label;
      ++row;
    });
  });
}

extern "C" int nvp_filled(const nvp_pieces* pieces, uint64_t count, const int64_t* begin, const int64_t* end,
                          uint64_t walls) {
  uint64_t row = 0;
  for (uint64_t wall = 0; wall < walls; ++wall) {
    int64_t at = begin[wall];
    for (; row < count && pieces->wall[row] == static_cast<int64_t>(wall); ++row) {
      if (pieces->begin[row] != at || pieces->end[row] <= at) return 0;
      at = pieces->end[row];
    }
    if (at != end[wall]) return 0;
  }
  return row == count;
}
