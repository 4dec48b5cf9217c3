// Strings of a column: as they come, or each distinct one once.
#pragma once

#include <cstdint>
#include <vector>

namespace nvp {

// Bytes one after another, with where each string ends.
struct Strings {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> ends;

  uint64_t begin(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  uint32_t size() const { return static_cast<uint32_t>(ends.size()); }
};

// Distinct strings, numbered in the order in which they first appear.
class Dictionary {
 public:
  explicit Dictionary(uint32_t most);

  // The string's number. Refuses one word more than allowed.
  int32_t number(const uint8_t* data, uint64_t size);

  const Strings& words() const { return words_; }

 private:
  struct Slot {
    uint64_t hash;
    int32_t number;
  };

  void grow();

  uint32_t most_;
  uint64_t seed_;
  Strings words_;
  std::vector<Slot> slots_;
};

}  // namespace nvp
