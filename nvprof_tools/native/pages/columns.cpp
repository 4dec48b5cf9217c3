#include "columns.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "bytes.h"
#include "parallel.h"

namespace nvp {
namespace {

constexpr uint64_t kMostOffset = std::numeric_limits<int32_t>::max();

// Bit i of a word is row i of 64, in memory as Arrow wants it.
uint64_t in_memory_order(uint64_t bits) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return bits;
#else
  return __builtin_bswap64(bits);
#endif
}

uint64_t low_bits(uint64_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// Two ranges can share their outermost words.
void set_bits(uint64_t* bitmap, uint64_t word, uint64_t bits, const Range& range) {
  const uint64_t first = range.first_row / 64, last = (range.first_row + range.rows - 1) / 64;
  if (word == first || word == last) {
    __atomic_fetch_or(bitmap + word, in_memory_order(bits), __ATOMIC_RELAXED);
  } else {
    bitmap[word] |= in_memory_order(bits);
  }
}

}  // namespace

Columns::Columns(const Layout& layout, uint64_t rows, uint64_t most_bytes)
    : layout_(layout), rows_(rows), columns_(layout.kinds.size()) {
  uint64_t bytes = 0;
  for (const uint8_t kind : layout.kinds) {
    demand(kind == NVP_INT64 || rows < kMostOffset, NVP_LIMIT);
    bytes += rows * (kind == NVP_INT64 ? 8 : 4);
  }
  demand(bytes <= most_bytes, NVP_LIMIT);
  for (uint32_t slot = 0; slot < columns_.size(); ++slot) {
    Column& column = columns_[slot];
    if (layout.kinds[slot] == NVP_INT64) {
      column.values = Block(rows * 8);
    } else if (layout.kinds[slot] == NVP_DICTIONARY) {
      column.values = Block(rows * 4);
    } else {
      column.offsets = Block((rows + 1) * 4);
    }
    if (layout.nullable >> slot & 1) column.validity = Block((rows + 63) / 64 * 8);
  }
}

void Columns::mark(Range& range, uint64_t row, const uint64_t* nulls, uint32_t count) {
  uint64_t any = 0, all = ~uint64_t{0};
  for (uint32_t i = 0; i < count; ++i) {
    any |= nulls[i];
    all &= nulls[i];
  }
  for (uint64_t left = layout_.nullable; left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(__builtin_ctzll(left));
    if (all >> slot & 1) {
      range.nulls[slot] += count;
      continue;
    }
    auto* bitmap = columns_[slot].validity.as<uint64_t>();
    for (uint32_t i = 0; i < count;) {
      const uint64_t at = row + i, shift = at % 64;
      const auto here = static_cast<uint32_t>(std::min<uint64_t>(64 - shift, count - i));
      uint64_t bits = low_bits(here);
      if (any >> slot & 1) {
        bits = 0;
        for (uint32_t k = 0; k < here; ++k) bits |= (~nulls[i + k] >> slot & 1) << k;
        range.nulls[slot] += here - static_cast<uint32_t>(__builtin_popcountll(bits));
      }
      set_bits(bitmap, at / 64, bits << shift, range);
      i += here;
    }
  }
}

void Columns::finish(std::vector<Range>& ranges, uint32_t threads) {
  for (uint32_t slot = 0; slot < columns_.size(); ++slot) {
    Column& column = columns_[slot];
    for (const Range& range : ranges) column.nulls += range.nulls[slot];
    if (column.nulls == 0) column.validity = Block();
    if (layout_.kinds[slot] == NVP_STRING) finish_strings(slot, ranges, threads);
    if (layout_.kinds[slot] == NVP_DICTIONARY) finish_dictionary(slot, ranges, threads);
  }
}

void Columns::finish_strings(uint32_t slot, std::vector<Range>& ranges, uint32_t threads) {
  std::vector<uint64_t> begin{0};
  for (const Range& range : ranges) begin.push_back(begin.back() + range.strings[slot].size());
  demand(begin.back() <= kMostOffset, NVP_LIMIT);
  Column& column = columns_[slot];
  column.values = Block(begin.back());
  int32_t* offsets = this->offsets(slot);
  parallel(threads, ranges.size(), [&] {
    return [&](uint64_t i) {
      const Range& range = ranges[i];
      const std::vector<uint8_t>& bytes = range.strings[slot];
      if (!bytes.empty()) std::memcpy(column.values.as<uint8_t>() + begin[i], bytes.data(), bytes.size());
      auto at = static_cast<int32_t>(begin[i]);
      for (uint64_t row = range.first_row + 1; row <= range.first_row + range.rows; ++row) {
        at += offsets[row];
        offsets[row] = at;
      }
    };
  });
}

void Columns::finish_dictionary(uint32_t slot, std::vector<Range>& ranges, uint32_t threads) {
  // Words in the order of their first row: ranges are in that order, and within one its words are.
  Column& column = columns_[slot];
  if (ranges.empty()) {
    column.offsets = Block(4);
    return;
  }
  Dictionary& joined = ranges.front().words[slot];
  std::vector<std::vector<int32_t>> renumbered(ranges.size());
  for (size_t i = 1; i < ranges.size(); ++i) {
    const Strings& words = ranges[i].words[slot].words();
    for (uint32_t k = 0; k < words.size(); ++k) {
      const uint64_t begin = words.begin(k);
      renumbered[i].push_back(joined.number(words.bytes.data() + begin, words.ends[k] - begin));
    }
  }
  parallel(threads, ranges.size() - 1, [&] {
    return [&](uint64_t before) {
      const Range& range = ranges[before + 1];
      const std::vector<int32_t>& number = renumbered[before + 1];
      int32_t* code = codes(slot) + range.first_row;
      if (number.empty()) return;  // all null
      for (uint64_t row = 0; row < range.rows; ++row) code[row] = number[static_cast<uint32_t>(code[row])];
    };
  });
  const Strings& words = joined.words();
  demand(words.bytes.size() <= kMostOffset, NVP_LIMIT);
  column.distinct = words.size();
  column.offsets = Block((words.size() + uint64_t{1}) * 4);
  column.words = Block(words.bytes.size());
  for (uint32_t k = 0; k < words.size(); ++k) offsets(slot)[k + 1] = static_cast<int32_t>(words.ends[k]);
  if (!words.bytes.empty()) std::memcpy(column.words.as<uint8_t>(), words.bytes.data(), words.bytes.size());
}

void Columns::hand_out(nvp_vector* out) {
  for (Column& column : columns_) {
    *out++ = nvp_vector{column.validity.hand_out(), column.values.hand_out(), column.offsets.hand_out(),
                        column.words.hand_out(),    column.nulls,             column.distinct};
  }
}

}  // namespace nvp
