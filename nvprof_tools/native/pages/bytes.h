// Big-endian integers, varints and the reasons a table is refused for.
#pragma once

#include <cstdint>
#include <cstring>

#include "pages.h"

namespace nvp {

// Thrown inside the module only; the C entry point turns it into its number.
struct Refusal {
  int reason;
};

[[noreturn]] inline void refuse(int reason) { throw Refusal{reason}; }

inline void demand(bool holds, int reason) {
  if (__builtin_expect(!holds, 0)) refuse(reason);
}

inline uint32_t be16(const uint8_t* p) { return static_cast<uint32_t>(p[0]) << 8 | p[1]; }

inline uint32_t be32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  value = __builtin_bswap32(value);
#endif
  return value;
}

inline uint64_t be64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

// Host order: for comparing and hashing only.
inline uint64_t raw64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// A varint has nine bytes at most, so nine readable bytes at `p` are enough. Returns how many it has.
inline uint32_t varint(const uint8_t* p, uint64_t& value) {
  uint64_t v = p[0];
  if (__builtin_expect(v < 0x80, 1)) {
    value = v;
    return 1;
  }
  v &= 0x7f;
  for (uint32_t i = 1; i < 8; ++i) {
    v = v << 7 | (p[i] & 0x7f);
    if (p[i] < 0x80) {
      value = v;
      return i + 1;
    }
  }
  value = v << 8 | p[8];
  return 9;
}

// What a buffer must have behind its content, so that varints and eight-byte loads at its last byte stay inside it.
constexpr uint32_t kSlack = 64;

}  // namespace nvp
