#include "crc32.h"

#include <array>
#include <cstring>

namespace nvcap {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; bit++) sum = (sum & 1) != 0 ? 0xEDB88320u ^ (sum >> 1) : sum >> 1;
    tables[0][byte] = sum;
  }
  for (uint32_t byte = 0; byte < 256; byte++)
    for (size_t table = 1; table < 8; table++)
      tables[table][byte] = (tables[table - 1][byte] >> 8) ^ tables[0][tables[table - 1][byte] & 255];
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(const void* data, size_t bytes, uint32_t before) {
  const uint8_t* at = static_cast<const uint8_t*>(data);
  uint32_t sum = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= sum;
    sum = 0;
    for (size_t byte = 0; byte < 8; byte++) sum ^= kTables[7 - byte][(word >> (8 * byte)) & 255];
  }
  for (; bytes > 0; bytes--, at++) sum = (sum >> 8) ^ kTables[0][(sum ^ *at) & 255];
  return ~sum;
}

}  // namespace nvcap
