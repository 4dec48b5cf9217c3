// The file as numbered pages. Read with pread, never mapped: a file cut short meanwhile is then an error, not a signal.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "pages.h"

namespace nvp {

class PageFile {
 public:
  explicit PageFile(const nvp_request& request);

  uint32_t page_size() const { return page_size_; }
  uint32_t usable() const { return usable_; }

  // Bytes [from, from + bytes) of a page.
  void read(uint32_t page, uint32_t from, uint32_t bytes, uint8_t* into) const;

  // Consecutive pages.
  void read_pages(uint32_t first, uint32_t count, uint8_t* into) const;

  // Marks a page as part of the table; refuses one that is no page of the file, or already is.
  void claim(uint32_t page, int reason);

 private:
  void read_at(uint64_t at, uint64_t bytes, uint8_t* into) const;

  int file_;
  uint32_t page_size_;
  uint32_t usable_;
  uint32_t pages_;
  std::vector<std::atomic<uint64_t>> claimed_;
};

}  // namespace nvp
