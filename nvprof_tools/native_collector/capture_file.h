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
  // Writes one block. False, and counted: it could not be written whole. The file ends then, with a notice that says so:
  // where even that finds no room, it takes the place of the block before.
  bool block(uint16_t kind, uint32_t rows, const void* payload, size_t bytes);
  bool json(uint16_t kind, const std::string& text) { return block(kind, 1, text.data(), text.size()); }
  void close();
  // A file that holds too little to be of use.
  void remove();
  uint64_t failed() const { return failed_; }

 private:
  bool put(uint16_t kind, uint32_t rows, const void* payload, size_t bytes);
  void give_up(const char* why);
  bool is_ours() const;

  std::string path_;
  int file_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  uint64_t sequence_ = 0;
  uint64_t offset_ = 0, last_ = 0;  // end of the file, begin of its last block
  uint64_t failed_ = 0;
};

}  // namespace nvcap
