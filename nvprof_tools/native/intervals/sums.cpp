#include "sums.h"

#include <algorithm>
#include <new>
#include <vector>

extern "C" int nvp_sums(const int32_t* group, const int32_t* code, const int32_t* label, const int64_t* begin,
                        const int64_t* end, uint64_t rows, int64_t width, uint64_t keys, int32_t* group_of,
                        int64_t* key_of, int64_t* sum, uint64_t* found) {
  try {
    std::vector<int64_t> sums(keys);
    std::vector<bool> seen(keys);
    std::vector<int64_t> here;
    uint64_t made = 0;
    for (uint64_t row = 0; row < rows;) {
      const int32_t own = group[row];
      for (; row < rows && group[row] == own; ++row) {
        if (code[row] < 0 || (label && label[row] < 0)) continue;
        const int64_t key = label ? code[row] * width + label[row] : code[row];
        if (!seen[key]) {
          seen[key] = true;
          here.push_back(key);
        }
        sums[key] += end[row] - begin[row];
      }
      std::sort(here.begin(), here.end());
      for (const int64_t key : here) {
        group_of[made] = own;
        key_of[made] = key;
        sum[made++] = sums[key];
        sums[key] = 0;
        seen[key] = false;
      }
      here.clear();
    }
    *found = made;
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

namespace {

// The first row from `row` on that ends after `instant`: near rows are looked at first, so that near spans cost little and
// far ones what a search does.
uint64_t first_after(const int64_t* end, uint64_t row, uint64_t rows, int64_t instant) {
  uint64_t step = 1;
  while (row + step < rows && end[row + step - 1] <= instant) {
    row += step;
    step *= 2;
  }
  return static_cast<uint64_t>(std::upper_bound(end + row, end + std::min(row + step, rows), instant) - end);
}

}  // namespace

extern "C" void nvp_shared(const int64_t* begin, const int64_t* end, const int32_t* code, uint64_t rows,
                           const int64_t* set_begin, const int64_t* set_end, uint64_t spans, int64_t* sum) {
  uint64_t row = 0;
  for (uint64_t span = 0; span < spans; ++span) {
    row = first_after(end, row, rows, set_begin[span]);
    for (uint64_t i = row; i < rows && begin[i] < set_end[span]; ++i) {
      sum[code[i]] += std::min(end[i], set_end[span]) - std::max(begin[i], set_begin[span]);
    }
  }
}

extern "C" uint64_t nvp_subtract(const int64_t* begin, const int64_t* end, uint64_t rows, const int64_t* set_begin,
                                 const int64_t* set_end, uint64_t spans, int64_t* left_begin, int64_t* left_end) {
  uint64_t made = 0, span = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    int64_t at = begin[row];
    span = first_after(set_end, span, spans, at);
    for (uint64_t k = span; at < end[row]; ++k) {
      const bool cut = k < spans && set_begin[k] < end[row];
      const int64_t until = cut ? set_begin[k] : end[row];
      if (until > at) {
        left_begin[made] = at;
        left_end[made++] = until;
      }
      at = cut ? set_end[k] : end[row];
    }
  }
  return made;
}
