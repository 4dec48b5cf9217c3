// The result while it is made: one buffer a column for all rows, filled by several threads, each over its own rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "memory.h"
#include "shapes.h"
#include "words.h"

namespace nvp {

// Rows that one thread fills from front to back, and their strings until all are known.
struct Range {
  uint64_t first_leaf = 0, leaves = 0;
  uint64_t first_row = 0, rows = 0;
  std::vector<std::vector<uint8_t>> strings;  // per wanted column
  std::vector<Dictionary> words;              // per wanted column
  std::vector<uint64_t> nulls;                // per wanted column
};

class Columns {
 public:
  // Buffers for `rows` rows; refuses where they exceed `most_bytes`.
  Columns(const Layout& layout, uint64_t rows, uint64_t most_bytes);

  int64_t* integers(uint32_t slot) const { return columns_[slot].values.as<int64_t>(); }
  int32_t* codes(uint32_t slot) const { return columns_[slot].values.as<int32_t>(); }

  // Length of a string until finish(), then where it begins.
  int32_t* offsets(uint32_t slot) const { return columns_[slot].offsets.as<int32_t>(); }

  // Marks values that are there: of rows [row, row + count), those without the slot's bit in `nulls`, a mask a row.
  void mark(Range& range, uint64_t row, const uint64_t* nulls, uint32_t count);

  // Joins what the ranges hold of strings.
  void finish(std::vector<Range>& ranges, uint32_t threads);

  void hand_out(nvp_vector* out);

 private:
  struct Column {
    Block values, offsets, words, validity;
    uint64_t nulls = 0, distinct = 0;
  };

  void finish_strings(uint32_t slot, std::vector<Range>& ranges, uint32_t threads);
  void finish_dictionary(uint32_t slot, std::vector<Range>& ranges, uint32_t threads);

  const Layout& layout_;
  uint64_t rows_;
  std::vector<Column> columns_;
};

}  // namespace nvp
