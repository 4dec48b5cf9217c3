#include "leaves.h"

#include <algorithm>
#include <cstring>

#include "bytes.h"

namespace nvp {
namespace {

constexpr uint32_t kReadBytes = 256u << 10;  // stays in the second-level cache

}  // namespace

LeafReader::LeafReader(PageFile& file, const Layout& layout, Columns& columns, const std::vector<Leaf>& leaves,
                       const std::vector<uint32_t>& rows, uint64_t max_record)
    : file_(file),
      layout_(layout),
      columns_(columns),
      leaves_(leaves),
      rows_(rows),
      max_record_(max_record),
      usable_(file.usable()),
      most_local_(usable_ - 35),
      least_local_((usable_ - 12) * 32 / 255 - 23),
      pages_at_once_(std::clamp<uint32_t>(kReadBytes / file.page_size(), 1, static_cast<uint32_t>(leaves.size()))),
      shapes_(layout),
      buffer_(static_cast<size_t>(pages_at_once_) * file.page_size() + kSlack) {
  for (uint32_t slot = 0; slot < layout.kinds.size(); ++slot) {
    integers_.push_back(layout.kinds[slot] == NVP_INT64 ? columns.integers(slot) : nullptr);
  }
}

void LeafReader::read(Range& range) {
  const size_t wanted = layout_.kinds.size();
  range.nulls.assign(wanted, 0);
  range.strings.resize(wanted);
  uint64_t row = range.first_row;
  const uint64_t end = range.first_leaf + range.leaves;
  for (uint64_t at = range.first_leaf; at < end;) {
    uint32_t run = 1;
    while (run < pages_at_once_ && at + run < end && leaves_[at + run].page == leaves_[at].page + run) ++run;
    file_.read_pages(leaves_[at].page, run, buffer_.data());
    for (uint32_t i = 0; i < run; ++i, ++at) {
      read_page(buffer_.data() + static_cast<size_t>(i) * file_.page_size(), leaves_[at], rows_[at], range, row);
      row += rows_[at];
    }
  }
}

void LeafReader::read_page(const uint8_t* page, const Leaf& leaf, uint32_t rows, Range& range, uint64_t row) {
  const PageHeader header(page, kLeaf, usable_);
  demand(header.cells == rows, NVP_READ);  // changed since it was counted
  demand(rows > 0 || leaves_.size() == 1, NVP_PAGE);
  if (nulls_.size() < rows) nulls_.resize(rows);
  coverage_.begin(usable_);
  int64_t before = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    const uint32_t at = be16(page + header.pointers + 2 * i);
    demand(at >= header.content && at + 4 <= usable_, NVP_PAGE);
    uint64_t payload, key;
    uint32_t prefix = varint(page + at, payload);
    prefix += varint(page + at + prefix, key);
    const auto rowid = static_cast<int64_t>(key);
    demand(i == 0 ? rowid >= leaf.first : rowid > before, NVP_ORDER);
    before = rowid;
    const uint8_t* record = page + at + prefix;
    if (__builtin_expect(payload <= most_local_, 1)) {
      const uint32_t size = prefix + static_cast<uint32_t>(payload);
      demand(at + size <= usable_, NVP_PAGE);
      coverage_.add(at, std::max(size, 4u));
    } else {
      demand(payload <= max_record_, NVP_LIMIT);
      const uint32_t stored = stored_locally(payload);
      demand(at + prefix + stored + 4 <= usable_, NVP_PAGE);
      coverage_.add(at, prefix + stored + 4);
      record = assemble(record, payload, stored);
    }
    const Shape& shape = shape_of(record, payload);
    demand(shape.total == payload, NVP_RECORD);
    nulls_[i] = shape.nulls;
    emit(shape, record, rowid, range, row + i);
  }
  demand(rows == 0 || before <= leaf.last, NVP_ORDER);
  coverage_.end(page, header, usable_);
  columns_.mark(range, row, nulls_.data(), rows);
}

const Shape& LeafReader::shape_of(const uint8_t* record, uint64_t size) {
  uint64_t header = 0;
  demand(size > 0, NVP_RECORD);
  varint(record, header);
  demand(header > 0 && header <= size, NVP_RECORD);
  if (__builtin_expect(header <= ShapeCache::kLongest, 1)) return shapes_.find(record, static_cast<uint32_t>(header));
  uncached_ = Shape();
  uncached_.parse(layout_, record, header);
  return uncached_;
}

inline void LeafReader::emit(const Shape& shape, const uint8_t* record, int64_t rowid, Range& range, uint64_t row) {
  int64_t* const* integers = integers_.data();
  for (const Load& load : shape.loads) {
    integers[load.slot][row] = static_cast<int64_t>(be64(record + load.at)) >> load.shift;
  }
  for (const uint32_t slot : shape.ones) integers[slot][row] = 1;
  if (layout_.rowid_slot != kMostWanted) integers[layout_.rowid_slot][row] = rowid;
  for (const Text& text : shape.texts) {
    const uint8_t* data = record + text.at;
    if (layout_.kinds[text.slot] == NVP_DICTIONARY) {
      columns_.codes(text.slot)[row] = range.words[text.slot].number(data, text.size);
    } else {
      columns_.offsets(text.slot)[row + 1] = static_cast<int32_t>(text.size);
      std::vector<uint8_t>& bytes = range.strings[text.slot];
      bytes.insert(bytes.end(), data, data + text.size);
    }
  }
}

uint32_t LeafReader::stored_locally(uint64_t payload) const {
  const uint64_t left = least_local_ + (payload - least_local_) % (usable_ - 4);
  return left <= most_local_ ? static_cast<uint32_t>(left) : least_local_;
}

const uint8_t* LeafReader::assemble(const uint8_t* local, uint64_t payload, uint32_t stored) {
  record_.resize(payload + kSlack);
  overflow_.resize(file_.page_size());
  std::memcpy(record_.data(), local, stored);
  uint64_t have = stored;
  uint32_t next = be32(local + stored);
  while (have < payload) {
    file_.claim(next, NVP_OVERFLOW);
    file_.read_pages(next, 1, overflow_.data());
    const uint64_t part = std::min<uint64_t>(usable_ - 4, payload - have);
    std::memcpy(record_.data() + have, overflow_.data() + 4, part);
    have += part;
    next = be32(overflow_.data());
  }
  demand(next == 0, NVP_OVERFLOW);
  return record_.data();
}

}  // namespace nvp
