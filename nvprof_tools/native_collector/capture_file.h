// The file itself: a header, then whole blocks. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nvcap {

class CaptureFile {
 public:
  ~CaptureFile();
  // Makes PROGRAM-PID.nvcap in the folder, never over another file. False: it cannot be made.
  bool open(const std::string& folder, const std::string& program, int pid);
  // Writes one block. False, and counted: it could not be written whole; nothing is written any more then.
  bool block(uint16_t kind, uint32_t rows, const void* payload, size_t bytes);
  bool json(uint16_t kind, const std::string& text) { return block(kind, 1, text.data(), text.size()); }
  void close();
  uint64_t failed() const { return failed_; }

 private:
  bool write_all(const void* data, size_t bytes);

  int file_ = -1;
  uint64_t sequence_ = 0;
  uint64_t offset_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace nvcap
