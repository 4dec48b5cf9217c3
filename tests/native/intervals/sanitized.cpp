// Calls every function on intervals with random input and compares it with a loop over all rows, in a build that checks
// every access.
//
//     sanitized ROUNDS THREADS SEED
//
// Prints how often each function was compared. At the first difference it says where and exits with 1. Every array is as
// long as its header says and no longer, so that a step too far is one out of bounds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "covering.h"
#include "locate.h"
#include "sums.h"
#include "sweep.h"

namespace {

using Ints = std::vector<int64_t>;
using Codes = std::vector<int32_t>;

std::map<std::string, int> compared;

void expect(bool holds, const char* function, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "%s: %s\n", function, what);
    std::exit(1);
  }
  ++compared[function];
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  int64_t in(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  size_t size(int64_t most) { return static_cast<size_t>(in(0, most)); }
  int32_t code(int32_t low, int32_t high) { return static_cast<int32_t>(in(low, high)); }
  // Where a case lies on the axis of time: at its ends nothing may overflow.
  int64_t origin() {
    constexpr int64_t kFar = int64_t{1} << 62;
    return std::vector<int64_t>{0, 0, -kFar, kFar}[size(3)];
  }
  Ints ints(size_t count, int64_t low, int64_t high) {
    Ints made(count);
    for (int64_t& one : made) one = in(low, high);
    return made;
  }
  Codes codes(size_t count, int32_t low, int32_t high) {
    Codes made(count);
    for (int32_t& one : made) one = code(low, high);
    return made;
  }

 private:
  std::mt19937_64 engine_;
};

struct Intervals {
  Ints begin, end;
  size_t count() const { return begin.size(); }
  bool covers(size_t row, int64_t at) const { return begin[row] <= at && at < end[row]; }
};

// Disjoint, in order, none empty; some touch.
Intervals disjoint(Random& random, size_t count, int64_t from) {
  Intervals made;
  for (size_t k = 0; k < count; ++k) {
    made.begin.push_back(from += random.in(0, 3));
    made.end.push_back(from += random.in(1, 4));
  }
  return made;
}

// In order of their begins; some are empty or reversed where `least` is not positive.
Intervals overlapping(Random& random, size_t count, int64_t origin, int64_t least) {
  Intervals made{random.ints(count, origin - 20, origin + 20), {}};
  std::sort(made.begin.begin(), made.begin.end());
  for (const int64_t begin : made.begin) made.end.push_back(begin + random.in(least, 15));
  return made;
}

int64_t last_covering(const Intervals& intervals, size_t from, size_t to, int64_t at) {
  for (size_t row = to; row-- > from;) {
    if (intervals.covers(row, at)) return static_cast<int64_t>(row);
  }
  return -1;
}

void check_covering(Random& random) {
  const int64_t origin = random.origin();
  const Intervals owners = overlapping(random, random.size(40), origin, -3);
  Ints at = random.ints(random.size(40), origin - 25, origin + 40);
  if (random.in(0, 1)) std::sort(at.begin(), at.end());
  Ints found(at.size());
  const int failed =
      nvp_covering(owners.begin.data(), owners.end.data(), owners.count(), at.data(), at.size(), found.data());
  expect(failed == 0, "nvp_covering", "failed");
  for (size_t k = 0; k < at.size(); ++k) {
    expect(found[k] == last_covering(owners, 0, owners.count(), at[k]), "nvp_covering", "another interval");
  }
}

using Flatten = int (*)(const int64_t*, const int64_t*, const int64_t*, uint64_t, int64_t*, int64_t*, int64_t*,
                        uint64_t*);

// `number_at(intervals, numbers, at)` says what covers an instant, or -9 for nothing.
template <class NumberAt>
void check_flattened(Random& random, const char* name, Flatten function, int64_t least, NumberAt number_at) {
  const int64_t origin = random.origin();
  const Intervals given = overlapping(random, random.size(40), origin, least);
  const Ints number = random.ints(given.count(), -1, 4);
  const size_t count = given.count();
  Ints begin(2 * count), end(2 * count), shown(2 * count);
  uint64_t pieces = 0;
  const int failed = function(given.begin.data(), given.end.data(), number.data(), count, begin.data(), end.data(),
                              shown.data(), &pieces);
  expect(failed == 0 && pieces <= 2 * count, name, "failed");
  // Maximal runs of one number, instant by instant.
  std::vector<std::tuple<int64_t, int64_t, int64_t>> expected;
  int64_t before = -9;
  for (int64_t at = origin - 21; at <= origin + 40; ++at) {
    const int64_t own = number_at(given, number, at);
    if (own != -9 && own == before) std::get<1>(expected.back()) = at + 1;
    if (own != -9 && own != before) expected.emplace_back(at, at + 1, own);
    before = own;
  }
  expect(expected.size() == pieces, name, "another number of pieces");
  for (size_t k = 0; k < pieces; ++k) {
    expect(expected[k] == std::make_tuple(begin[k], end[k], shown[k]), name, "another piece");
  }
}

void check_innermost(Random& random) {
  check_flattened(random, "nvp_innermost", nvp_innermost, 1, [](const Intervals& given, const Ints& label, int64_t at) {
    const int64_t row = last_covering(given, 0, given.count(), at);
    return row < 0 ? -9 : label[static_cast<size_t>(row)];
  });
}

void check_oldest(Random& random) {
  check_flattened(random, "nvp_oldest", nvp_oldest, -3, [](const Intervals& given, const Ints& age, int64_t at) {
    int64_t least = -9;
    for (size_t row = 0; row < given.count(); ++row) {
      if (given.covers(row, at) && (least == -9 || age[row] < least)) least = age[row];
    }
    return least;
  });
}

void check_locate(Random& random) {
  const int64_t origin = random.origin();
  const size_t slots = random.size(4);
  std::vector<uint64_t> first{0};
  Intervals all;
  for (size_t s = 0; s < slots; ++s) {
    const Intervals own = overlapping(random, random.size(12), origin, -3);
    all.begin.insert(all.begin.end(), own.begin.begin(), own.begin.end());
    all.end.insert(all.end.end(), own.end.begin(), own.end.end());
    first.push_back(all.count());
  }
  Ints at = random.ints(random.size(40), origin - 25, origin + 40);
  if (random.in(0, 3)) std::sort(at.begin(), at.end());
  const Ints slot = random.ints(at.size(), -1, static_cast<int64_t>(slots) - 1);
  bool rise = true;
  for (size_t k = 0; k < at.size(); ++k) {
    for (size_t j = 0; j < k; ++j) rise &= slot[j] < 0 || slot[j] != slot[k] || at[j] <= at[k];
  }
  Ints found(at.size());
  const int failed = nvp_locate(first.data(), slots, all.begin.data(), all.end.data(), slot.data(), at.data(),
                                at.size(), found.data());
  expect(failed == (rise ? 0 : 2), "nvp_locate", "another answer");
  for (size_t k = 0; k < at.size() && rise; ++k) {
    const auto own = static_cast<size_t>(slot[k]);
    const int64_t row = slot[k] < 0 ? -1 : last_covering(all, first[own], first[own + 1], at[k]);
    expect(found[k] == row, "nvp_locate", "another interval");
  }
}

void check_cut(Random& random) {
  const int64_t origin = random.origin(), shift = origin ? -origin : random.in(-100, 100);
  const size_t lanes = 1 + random.size(3);
  std::vector<uint64_t> first{0};
  Intervals all;
  for (size_t l = 0; l < lanes; ++l) {
    const Intervals own = disjoint(random, random.size(12), origin);
    all.begin.insert(all.begin.end(), own.begin.begin(), own.begin.end());
    all.end.insert(all.end.end(), own.end.begin(), own.end.end());
    first.push_back(all.count());
  }
  const Codes number = random.codes(all.count(), 0, 9), other = random.codes(all.count(), -1, 9);
  const size_t stretches = random.size(20);
  const Ints lane = random.ints(stretches, 0, static_cast<int64_t>(lanes) - 1);
  const Ints low = random.ints(stretches, origin - 5, origin + 60), high = random.ints(stretches, origin - 5, origin + 60);
  const nvp_cutting cutting{first.data(), all.begin.data(), all.end.data(), number.data(), other.data(),
                            lane.data(),  low.data(),       high.data(),    stretches};
  const uint64_t count = nvp_cut_count(&cutting);
  Ints begin(count), end(count);
  Codes number_of(count), other_of(count);
  nvp_cut_fill(&cutting, shift, begin.data(), end.data(), number_of.data(), other_of.data());
  size_t piece = 0;
  for (size_t k = 0; k < stretches; ++k) {
    const auto own = static_cast<size_t>(lane[k]);
    for (size_t row = first[own]; row < first[own + 1]; ++row) {
      const int64_t from = std::max(all.begin[row], low[k]), to = std::min(all.end[row], high[k]);
      if (from >= to) continue;
      expect(piece < count, "nvp_cut_count", "too few pieces");
      expect(begin[piece] == from + shift && end[piece] == to + shift, "nvp_cut_fill", "another piece");
      expect(number_of[piece] == number[row] && other_of[piece] == other[row], "nvp_cut_fill", "other numbers");
      ++piece;
    }
  }
  expect(piece == count, "nvp_cut_count", "too many pieces");
}

void check_sums(Random& random) {
  const size_t rows = random.size(60);
  const int64_t origin = random.origin(), codes = 4, width = 3;
  const bool labelled = random.in(0, 1);
  Codes group = random.codes(rows, -2, 5);
  std::sort(group.begin(), group.end());
  const Codes code = random.codes(rows, -1, codes - 1), label = random.codes(rows, -1, width - 1);
  const Ints begin = random.ints(rows, origin - 9, origin + 9), end = random.ints(rows, origin - 9, origin + 9);
  Codes group_of(rows);
  Ints key_of(rows), sum(rows);
  uint64_t found = 0;
  const int failed = nvp_sums(group.data(), code.data(), labelled ? label.data() : nullptr, begin.data(), end.data(),
                              rows, width, static_cast<uint64_t>(labelled ? codes * width : codes), group_of.data(),
                              key_of.data(), sum.data(), &found);
  expect(failed == 0, "nvp_sums", "failed");
  std::map<std::pair<int32_t, int64_t>, int64_t> expected;
  for (size_t row = 0; row < rows; ++row) {
    if (code[row] < 0 || (labelled && label[row] < 0)) continue;
    expected[{group[row], labelled ? code[row] * width + label[row] : code[row]}] += end[row] - begin[row];
  }
  expect(found == expected.size(), "nvp_sums", "another number of sums");
  size_t k = 0;
  for (const auto& [key, total] : expected) {
    expect(group_of[k] == key.first && key_of[k] == key.second && sum[k] == total, "nvp_sums", "another sum");
    ++k;
  }
}

void check_shared(Random& random) {
  const int64_t origin = random.origin();
  const Intervals rows = disjoint(random, random.size(80), origin + random.in(-30, 30));
  // One list is much denser than the other at times, so that far rows are searched for.
  Intervals set = disjoint(random, random.size(random.in(0, 1) ? 80 : 4), origin + random.in(-30, 200));
  if (set.count() && random.in(0, 1)) set.end.back() += random.in(0, 300);
  const Codes code = random.codes(rows.count(), 0, 3);
  Ints sum(4, 7), expected(4, 7);  // sums are added to
  nvp_shared(rows.begin.data(), rows.end.data(), code.data(), rows.count(), set.begin.data(), set.end.data(),
             set.count(), sum.data());
  for (size_t row = 0; row < rows.count(); ++row) {
    for (size_t k = 0; k < set.count(); ++k) {
      const int64_t both = std::min(rows.end[row], set.end[k]) - std::max(rows.begin[row], set.begin[k]);
      expected[static_cast<size_t>(code[row])] += std::max<int64_t>(both, 0);
    }
  }
  expect(sum == expected, "nvp_shared", "another sum");
}

void check_subtract(Random& random) {
  const int64_t origin = random.origin();
  const Intervals rows = disjoint(random, random.size(80), origin + random.in(-30, 30));
  const Intervals set = disjoint(random, random.size(random.in(0, 1) ? 80 : 4), origin + random.in(-30, 200));
  Ints begin(rows.count() + set.count()), end(begin.size()), from, to;
  const uint64_t made = nvp_subtract(rows.begin.data(), rows.end.data(), rows.count(), set.begin.data(), set.end.data(),
                                     set.count(), begin.data(), end.data());
  for (size_t row = 0; row < rows.count(); ++row) {
    int64_t at = rows.begin[row];
    for (size_t k = 0; k < set.count(); ++k) {
      if (set.end[k] <= at || set.begin[k] >= rows.end[row]) continue;
      if (set.begin[k] > at) from.push_back(at), to.push_back(set.begin[k]);
      at = set.end[k];
    }
    if (at < rows.end[row]) from.push_back(at), to.push_back(rows.end[row]);
  }
  begin.resize(made);
  end.resize(made);
  expect(begin == from && end == to, "nvp_subtract", "another rest");
}

struct Swept {
  Ints begin, end;
  Codes wall, kind, label;

  explicit Swept(size_t count = 0) : begin(count), end(count), wall(count), kind(count), label(count) {}
  void add(int64_t from, int64_t to, int32_t own, int32_t own_kind, int32_t own_label) {
    begin.push_back(from), end.push_back(to), wall.push_back(own), kind.push_back(own_kind), label.push_back(own_label);
  }
  nvp_pieces pieces() { return {begin.data(), end.data(), wall.data(), kind.data(), label.data()}; }
  bool operator==(const Swept& other) const {
    return begin == other.begin && end == other.end && wall == other.wall && kind == other.kind && label == other.label;
  }
  Swept with(size_t row) const {  // a row twice
    Swept made = *this;
    made.add(begin[row], end[row], wall[row], kind[row], label[row]);
    return made;
  }
};

bool is_filled(Swept pieces, const Ints& start, const Ints& stop) {
  const nvp_pieces described = pieces.pieces();
  return nvp_filled(&described, pieces.begin.size(), start.data(), stop.data(), start.size());
}

// Every corruption of one row is found.
void check_filled(Random& random, const Swept& good, const Ints& start, const Ints& stop) {
  expect(is_filled(good, start, stop), "nvp_filled", "good pieces refused");
  const size_t count = good.begin.size();
  if (count == 0) return;
  const auto row = static_cast<size_t>(random.in(0, static_cast<int64_t>(count) - 1));
  std::vector<Swept> bad(7, good);
  bad[0].end[row] += 1;
  bad[1].end[row] -= 1;
  bad[2].begin[row] -= 1;
  bad[3].begin[row] += 1;
  bad[4].wall[row] += random.in(0, 1) ? 1 : -1;
  std::swap(bad[5].begin[row], bad[5].end[row]);
  bad[6].end.pop_back(), bad[6].begin.pop_back();
  bad.push_back(good.with(row));
  for (const Swept& one : bad) expect(!is_filled(one, start, stop), "nvp_filled", "bad pieces accepted");
}

void check_sweep(Random& random, size_t wall_count, int64_t longest, const std::vector<size_t>& intervals,
                 uint32_t threads) {
  // A wall of no length may lie right where its neighbour begins.
  Ints base, length, start, stop;
  int64_t axis = 0;
  for (size_t w = 0; w < wall_count; ++w) {
    base.push_back(axis += random.in(0, 2));
    length.push_back(random.in(0, 3) ? random.in(0, longest) : 0);
    start.push_back(random.origin());
    axis += length.back();
    stop.push_back(start.back() + length.back());
  }
  const size_t layer_count = intervals.size();
  std::vector<Intervals> spans;
  std::vector<Codes> kinds, labels;
  std::vector<nvp_layer> layers;
  for (size_t k = 0; k < layer_count; ++k) {
    spans.push_back(disjoint(random, intervals[k], random.in(-5, 5)));
    kinds.push_back(random.codes(spans[k].count(), 0, 4));
    labels.push_back(random.codes(spans[k].count(), -1, 4));
  }
  for (size_t k = 0; k < layer_count; ++k) {
    layers.push_back({spans[k].begin.data(), spans[k].end.data(), spans[k].count(),
                      random.in(0, 1) ? kinds[k].data() : nullptr, random.in(0, 1) ? labels[k].data() : nullptr,
                      random.code(0, 4)});
  }
  // The axis painted ns by ns, the first layer last; a piece is a run of one interval.
  struct Winner {
    size_t layer, row;
    bool operator==(const Winner& other) const { return layer == other.layer && row == other.row; }
  };
  std::vector<Winner> won(static_cast<size_t>(axis), {layer_count, 0});
  for (size_t k = layer_count; k-- > 0;) {
    for (size_t row = 0; row < spans[k].count(); ++row) {
      for (int64_t at = std::max<int64_t>(spans[k].begin[row], 0); at < std::min(spans[k].end[row], axis); ++at) {
        won[static_cast<size_t>(at)] = {k, row};
      }
    }
  }
  const int32_t rest = 5;
  Swept expected;
  for (size_t w = 0; w < wall_count; ++w) {
    for (int64_t at = 0; at < length[w]; ++at) {
      const auto here = static_cast<size_t>(base[w] + at);
      if (at > 0 && won[here] == won[here - 1]) {
        expected.end.back() = start[w] + at + 1;
        continue;
      }
      const auto [k, row] = won[here];
      const bool kinded = k < layer_count && layers[k].kind, labelled = k < layer_count && layers[k].label;
      const int32_t kind = kinded ? kinds[k][row] : k < layer_count ? layers[k].every_kind : rest;
      expected.add(start[w] + at, start[w] + at + 1, static_cast<int32_t>(w), kind, labelled ? labels[k][row] : -1);
    }
  }
  const nvp_walls walls{base.data(), length.data(), start.data(), wall_count};
  std::vector<uint64_t> first(NVP_SWEEP_PARTS + 1);
  const auto count = static_cast<uint32_t>(layer_count);
  expect(nvp_sweep_count(layers.data(), count, &walls, threads, first.data()) == 0, "nvp_sweep_count", "failed");
  expect(first.back() == expected.begin.size(), "nvp_sweep_count", "another number of pieces");
  Swept made(first.back());
  const nvp_pieces pieces = made.pieces();
  expect(nvp_sweep_fill(layers.data(), count, &walls, rest, threads, first.data(), &pieces) == 0, "nvp_sweep_fill",
         "failed");
  expect(made == expected, "nvp_sweep_fill", "other pieces");
  check_filled(random, made, start, stop);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const int rounds = std::atoi(arguments[1]);
  const auto threads = static_cast<uint32_t>(std::atoi(arguments[2]));
  Random random(static_cast<uint32_t>(std::atoi(arguments[3])));
  for (int round = 0; round < rounds; ++round) {
    check_covering(random);
    check_innermost(random);
    check_oldest(random);
    check_locate(random);
    check_cut(random);
    check_sums(random);
    check_shared(random);
    check_subtract(random);
    std::vector<size_t> intervals(random.size(3));
    for (size_t& one : intervals) one = random.size(20);
    check_sweep(random, random.size(5), 15, intervals, threads);
  }
  // Enough intervals for several parts: of many walls, of one, and of both.
  check_sweep(random, 70'000, 3, {400}, threads);
  check_sweep(random, 1, 200'000, {70'000, 40'000}, threads);
  check_sweep(random, 30'000, 8, {50'000, 20'000, 20'000}, threads);
  for (const auto& [function, times] : compared) std::printf("%s %d\n", function.c_str(), times);
  return 0;
}
