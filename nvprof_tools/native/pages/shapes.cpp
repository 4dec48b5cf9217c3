#include "shapes.h"

#include "bytes.h"

namespace nvp {
namespace {

struct Stored {
  uint64_t bytes;
  uint8_t storage;
};

Stored stored(uint64_t type) {
  static constexpr uint8_t kBytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
  if (type >= 12) return {(type - 12) / 2, static_cast<uint8_t>(type % 2 ? NVP_TEXT : NVP_BLOB)};
  demand(type < 10, NVP_RECORD);  // 10 and 11 are reserved
  return {kBytes[type], static_cast<uint8_t>(type == 0 ? NVP_NULL : type == 7 ? NVP_REAL : NVP_INTEGER)};
}

// Of the last, partial word of a key.
uint64_t first_bytes(uint64_t word, uint32_t bytes) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return word & ((uint64_t{1} << (8 * bytes)) - 1);
#else
  return bytes == 0 ? 0 : word >> (64 - 8 * bytes);
#endif
}

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

Layout::Layout(const nvp_request& request)
    : columns(request.column, request.column + request.columns), slot(request.columns, kMostWanted) {
  for (uint32_t i = 0; i < columns.size(); ++i) {
    const nvp_column& column = columns[i];
    demand(column.want <= NVP_DICTIONARY, NVP_REQUEST);
    if (column.want == NVP_SKIP) continue;
    const auto number = static_cast<uint32_t>(kinds.size());
    demand(number < kMostWanted, NVP_REQUEST);
    const int classes = column.want == NVP_INT64 ? NVP_NULL | NVP_INTEGER : NVP_NULL | NVP_TEXT;
    demand((column.allowed & ~classes) == 0, NVP_REQUEST);
    slot[i] = number;
    kinds.push_back(column.want);
    if (column.is_rowid) {
      demand(column.want == NVP_INT64, NVP_REQUEST);
      rowid_slot = number;
    } else if (column.allowed & NVP_NULL) {
      nullable |= uint64_t{1} << number;
    }
  }
}

void Shape::parse(const Layout& layout, const uint8_t* bytes, uint64_t size) {
  header = static_cast<uint32_t>(size);
  uint64_t at = 0, stated;
  at += varint(bytes, stated);
  demand(stated == size && at <= size, NVP_RECORD);
  total = size;
  uint32_t column = 0;
  const auto missing = [&](uint32_t slot) { nulls |= uint64_t{1} << slot; };
  for (; at < size; ++column) {
    demand(column < layout.columns.size(), NVP_RECORD);
    uint64_t type;
    at += varint(bytes + at, type);
    demand(at <= size, NVP_RECORD);
    const Stored value = stored(type);
    const nvp_column& wanted = layout.columns[column];
    demand((wanted.allowed & value.storage) != 0, NVP_CLASS);
    const uint32_t slot = layout.slot[column];
    if (slot == kMostWanted || wanted.is_rowid) {
      // not wanted, or taken from the key
    } else if (value.storage == NVP_NULL) {
      missing(slot);
    } else if (value.storage == NVP_TEXT) {
      texts.push_back({static_cast<uint32_t>(total), static_cast<uint32_t>(value.bytes), slot});
    } else if (value.bytes == 0) {
      if (type == 9) ones.push_back(slot);
    } else {
      loads.push_back({static_cast<uint32_t>(total), static_cast<uint8_t>(64 - 8 * value.bytes), static_cast<uint8_t>(slot)});
    }
    total += value.bytes;
    demand(total < (uint64_t{1} << 31), NVP_RECORD);
  }
  for (; column < layout.columns.size(); ++column) {
    demand(layout.columns[column].may_lack != 0, NVP_SHORT);
    const uint32_t slot = layout.slot[column];
    if (slot != kMostWanted && !layout.columns[column].is_rowid) missing(slot);
  }
}

const Shape& ShapeCache::find(const uint8_t* header, uint32_t size) {
  const uint32_t whole = size / 8, rest = size % 8;
  const uint64_t tail = rest ? first_bytes(raw64(header + 8 * whole), rest) : 0;
  const auto same = [&](const Entry& entry) {
    if (entry.shape.header != size) return false;
    uint64_t differing = entry.key[whole] ^ tail;
    for (uint32_t i = 0; i < whole; ++i) differing |= entry.key[i] ^ raw64(header + 8 * i);
    return differing == 0;
  };
  if (last_ != nullptr && same(*last_)) return last_->shape;
  uint64_t hash = mixed(size, tail);
  for (uint32_t i = 0; i < whole; ++i) hash = mixed(hash, raw64(header + 8 * i));
  uint32_t at = static_cast<uint32_t>(hash) % kSlots;
  for (; slots_[at] != nullptr; at = (at + 1) % kSlots) {
    if (slots_[at]->hash == hash && same(*slots_[at])) {
      last_ = slots_[at].get();
      return last_->shape;
    }
  }
  if (used_ == kMost) {  // rows whose headers never repeat gain nothing from being remembered
    for (auto& slot : slots_) slot.reset();
    used_ = 0;
    at = static_cast<uint32_t>(hash) % kSlots;
  }
  auto entry = std::make_unique<Entry>();
  entry->hash = hash;
  entry->key.resize(whole + 1);
  for (uint32_t i = 0; i < whole; ++i) entry->key[i] = raw64(header + 8 * i);
  entry->key[whole] = tail;
  last_ = nullptr;
  entry->shape.parse(layout_, header, size);
  slots_[at] = std::move(entry);
  ++used_;
  last_ = slots_[at].get();
  return last_->shape;
}

}  // namespace nvp
