// What a record's header says, worked out once for all rows that share it.
//
// A row begins with the storage class and size of each of its values. Rows of one table have few such headers, so a header
// is checked and turned into loads once, and found again by its bytes. A row then costs a look-up and a load a column.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pages.h"

namespace nvp {

constexpr uint32_t kMostWanted = 64;  // a bit each in a null mask

// The table as the request describes it, its wanted columns numbered.
struct Layout {
  explicit Layout(const nvp_request& request);

  std::vector<nvp_column> columns;
  std::vector<uint32_t> slot;  // per column: its number among the wanted, or kMostWanted
  std::vector<uint8_t> kinds;  // per wanted column: NVP_INT64, NVP_STRING or NVP_DICTIONARY
  uint64_t nullable = 0;       // wanted columns that may hold null
  uint32_t rowid_slot = kMostWanted;
};

// An integer: the eight bytes at `at`, shifted down.
struct Load {
  uint32_t at;
  uint8_t shift;
  uint8_t slot;
};

// A string: `size` bytes at `at`.
struct Text {
  uint32_t at;
  uint32_t size;
  uint32_t slot;
};

// Columns are made of zeros, so zero and null need no store: a column of nothing else costs no memory.
struct Shape {
  uint32_t header = 0;  // bytes of the header
  uint64_t total = 0;   // bytes of the whole record
  uint64_t nulls = 0;   // wanted columns that are null
  std::vector<Load> loads;
  std::vector<uint32_t> ones;
  std::vector<Text> texts;

  // Checks a header of `size` readable bytes; a record has `total` bytes in all.
  void parse(const Layout& layout, const uint8_t* header, uint64_t size);
};

// Shapes by the bytes of their headers. One a thread.
class ShapeCache {
 public:
  static constexpr uint32_t kLongest = 256;

  explicit ShapeCache(const Layout& layout) : layout_(layout), slots_(kSlots) {}

  // The shape of a header of `size` bytes, at most kLongest; eight bytes behind it must be readable.
  const Shape& find(const uint8_t* header, uint32_t size);

 private:
  static constexpr uint32_t kSlots = 4096, kMost = 2048;

  struct Entry {
    Shape shape;
    uint64_t hash;
    std::vector<uint64_t> key;
  };

  const Layout& layout_;
  std::vector<std::unique_ptr<Entry>> slots_;
  uint32_t used_ = 0;
  const Entry* last_ = nullptr;
};

}  // namespace nvp
