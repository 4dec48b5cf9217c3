// Rows on their way into the file: a buffer a table, texts made numbers. One thread at a time, see Session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture_file.h"
#include "rows.h"

namespace nvcap {

// Text to number, and back only as far as the file needs it: new ones wait in `fresh` for the next strings block. Texts
// that were seen long ago are forgotten, and get another number if they come again: a program may mark ranges with texts
// that are never the same.
class Strings {
 public:
  uint32_t id(std::string_view text);
  // For text that CUPTI owns and hands out again and again: found by address, checked by content.
  uint32_t id_of_pointer(const char* text);
  std::string fresh;
  uint32_t fresh_count = 0;

 private:
  struct Known {
    uint32_t id;
    const std::string* text;
  };
  uint32_t next_ = 0;
  size_t remembered_ = 0;  // bytes, roughly
  std::unordered_map<std::string, uint32_t> ids_;
  std::unordered_map<const void*, Known> pointers_;
};

template <class Row>
struct Table {
  std::vector<Row> rows;
  uint64_t written = 0;
};

class Sink {
 public:
  CaptureFile file;
  Strings strings;
#define NVCAP_TABLE(kind, table, row, fields) Table<row> table;
  NVCAP_TABLES(NVCAP_TABLE)
#undef NVCAP_TABLE

  void write_schema();
  void notice(const char* slug, uint64_t count, const std::string& message);
  // All that waits, into the file: texts first.
  void flush();
  // The same where a good deal waits: neither memory nor blocks grow with what came in at once.
  void flush_if_full();
  // {"kernel": n, ...}: rows written so far.
  std::string written_rows() const;

 private:
  void write_strings();
  size_t waiting() const;  // bytes, roughly
};

}  // namespace nvcap
