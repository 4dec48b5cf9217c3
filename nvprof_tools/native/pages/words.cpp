#include "words.h"

#include <cstring>
#include <limits>
#include <random>

#include "bytes.h"

namespace nvp {
namespace {

// Not guessable from a file, so that no file can make every word collide; numbers do not depend on it.
uint64_t process_seed() {
  static const uint64_t seed = [] {
    std::random_device source;
    return static_cast<uint64_t>(source()) << 32 | source();
  }();
  return seed;
}

uint64_t folded(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hashed(const uint8_t* data, uint64_t size, uint64_t seed) {
  uint64_t hash = folded(seed ^ size, 0x9e3779b97f4a7c15u);
  while (size >= 8) {
    hash = folded(hash ^ raw64(data), seed | 1);
    data += 8;
    size -= 8;
  }
  uint64_t tail = 0;
  if (size != 0) std::memcpy(&tail, data, size);
  return folded(hash ^ tail, 0xd6e8feb86659fd93u ^ seed);
}

}  // namespace

Dictionary::Dictionary(uint32_t most) : most_(most), seed_(process_seed()) {}

void Dictionary::grow() {
  std::vector<Slot> wider(slots_.empty() ? 1024 : slots_.size() * 2, Slot{0, -1});
  for (const Slot& slot : slots_) {
    if (slot.number < 0) continue;
    uint64_t at = slot.hash & (wider.size() - 1);
    while (wider[at].number >= 0) at = (at + 1) & (wider.size() - 1);
    wider[at] = slot;
  }
  slots_ = std::move(wider);
}

int32_t Dictionary::number(const uint8_t* data, uint64_t size) {
  if (2 * static_cast<uint64_t>(words_.size()) >= slots_.size()) grow();
  const uint64_t hash = hashed(data, size, seed_);
  uint64_t at = hash & (slots_.size() - 1);
  for (; slots_[at].number >= 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash != hash) continue;
    const auto word = static_cast<uint32_t>(slots_[at].number);
    const uint64_t begin = words_.begin(word);
    if (words_.ends[word] - begin == size && (size == 0 || std::memcmp(words_.bytes.data() + begin, data, size) == 0)) {
      return slots_[at].number;
    }
  }
  const uint32_t fresh = words_.size();
  demand(fresh < most_ && fresh < static_cast<uint32_t>(std::numeric_limits<int32_t>::max()), NVP_LIMIT);
  words_.bytes.insert(words_.bytes.end(), data, data + size);
  words_.ends.push_back(words_.bytes.size());
  slots_[at] = Slot{hash, static_cast<int32_t>(fresh)};
  return static_cast<int32_t>(fresh);
}

}  // namespace nvp
