// The b-tree above the rows: page headers, the account of a page's bytes, and the leaves in the order of their rows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "page_file.h"

namespace nvp {

constexpr uint8_t kInterior = 5, kLeaf = 13;

// A leaf and the rowids the pages above allow it, both inclusive.
struct Leaf {
  uint32_t page;
  int64_t first;
  int64_t last;
};

// A page's header, checked.
struct PageHeader {
  uint32_t cells;
  uint32_t pointers;  // offset of the array of cell offsets
  uint32_t content;   // where cells begin
  uint32_t right;     // an interior page's last child

  PageHeader(const uint8_t* page, uint8_t kind, uint32_t usable);
};

// Accounts for every byte between the header's content offset and the end of the page, as SQLite does: cells and free
// blocks do not overlap, and what lies between them is as many bytes as the header says.
class Coverage {
 public:
  // Cells in the order of the page's array; most pages hold them back to back, last to first, and need no more than this.
  void begin(uint32_t usable) {
    lowest_ = usable;
    tight_ = true;
    cells_.clear();
  }
  void add(uint32_t from, uint32_t size) {
    tight_ &= from + size == lowest_;
    lowest_ = from;
    cells_.emplace_back(from, from + size);
  }
  void end(const uint8_t* page, const PageHeader& header, uint32_t usable);

 private:
  uint32_t lowest_ = 0;
  bool tight_ = true;
  std::vector<std::pair<uint32_t, uint32_t>> cells_;
};

// All leaves of the tree, in the order of their rows; every page of it claimed.
std::vector<Leaf> find_leaves(PageFile& file, uint32_t root);

}  // namespace nvp
