// Rows of leaf pages into columns. One reader a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "columns.h"
#include "page_file.h"
#include "shapes.h"
#include "tree.h"

namespace nvp {

class LeafReader {
 public:
  LeafReader(PageFile& file, const Layout& layout, Columns& columns, const std::vector<Leaf>& leaves,
             const std::vector<uint32_t>& rows, uint64_t max_record);

  // All rows of a range.
  void read(Range& range);

 private:
  void read_page(const uint8_t* page, const Leaf& leaf, uint32_t rows, Range& range, uint64_t row);
  const Shape& shape_of(const uint8_t* record, uint64_t size);
  void emit(const Shape& shape, const uint8_t* record, int64_t rowid, Range& range, uint64_t row);
  const uint8_t* assemble(const uint8_t* local, uint64_t payload, uint32_t stored);
  uint32_t stored_locally(uint64_t payload) const;

  PageFile& file_;
  const Layout& layout_;
  Columns& columns_;
  const std::vector<Leaf>& leaves_;
  const std::vector<uint32_t>& rows_;
  const uint64_t max_record_;
  const uint32_t usable_, most_local_, least_local_, pages_at_once_;
  ShapeCache shapes_;
  Shape uncached_;
  Coverage coverage_;
  std::vector<int64_t*> integers_;
  std::vector<uint64_t> nulls_;
  std::vector<uint8_t> buffer_, record_, overflow_;
};

}  // namespace nvp
