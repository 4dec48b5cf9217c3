// Blocks of memory that leave the module as Arrow buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pages.h"

namespace nvp {

void* allocate(uint64_t bytes);  // zeroed, aligned to 64 bytes; throws Refusal{NVP_MEMORY}
void release(void* data, uint64_t bytes);

// Owns a block until it is handed out.
class Block {
 public:
  Block() = default;
  explicit Block(uint64_t bytes) : data_(bytes ? allocate(bytes) : nullptr), bytes_(bytes) {}
  Block(Block&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { release(data_, bytes_); }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  uint64_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

  nvp_block hand_out() { return nvp_block{std::exchange(data_, nullptr), std::exchange(bytes_, 0)}; }

 private:
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace nvp
