// CRC-32 as zlib reckons it, eight bytes a step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nvcap {

// Goes on from `before`, the sum of the bytes so far (0 at first).
uint32_t crc32(const void* data, size_t bytes, uint32_t before = 0);

}  // namespace nvcap
