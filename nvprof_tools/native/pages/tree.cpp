#include "tree.h"

#include <algorithm>
#include <limits>

#include "bytes.h"

namespace nvp {
namespace {

constexpr int kMostLevels = 20;  // as many as SQLite follows

// 0 stands for 65,536 where an offset cannot be 0.
uint32_t offset16(const uint8_t* p) {
  const uint32_t value = be16(p);
  return value == 0 ? 65536 : value;
}

// The children of one interior page, each with the rowids left to it.
void expand(PageFile& file, const Leaf& parent, const uint8_t* page, Coverage& coverage, std::vector<Leaf>& into) {
  const PageHeader header(page, kInterior, file.usable());
  demand(header.cells > 0, NVP_PAGE);
  coverage.begin(file.usable());
  const auto add = [&](uint32_t child, int64_t first, int64_t last) {
    file.claim(child, NVP_PAGE);
    into.push_back({child, first, last});
  };
  int64_t first = parent.first;
  for (uint32_t i = 0; i < header.cells; ++i) {
    const uint32_t at = be16(page + header.pointers + 2 * i);
    demand(at >= header.content && at + 4 <= file.usable(), NVP_PAGE);
    uint64_t key;
    const uint32_t size = 4 + varint(page + at + 4, key);
    demand(at + size <= file.usable(), NVP_PAGE);
    coverage.add(at, size);
    const auto last = static_cast<int64_t>(key);
    demand(last >= first && last < parent.last, NVP_ORDER);
    add(be32(page + at), first, last);
    first = last + 1;
  }
  coverage.end(page, header, file.usable());
  add(header.right, first, parent.last);
}

}  // namespace

PageHeader::PageHeader(const uint8_t* page, uint8_t kind, uint32_t usable)
    : cells(be16(page + 3)), pointers(kind == kLeaf ? 8 : 12), content(offset16(page + 5)), right(0) {
  demand(page[0] == kind, NVP_PAGE);
  demand(content <= usable && pointers + 2 * cells <= content, NVP_PAGE);
  if (kind == kInterior) right = be32(page + 8);
}

void Coverage::end(const uint8_t* page, const PageHeader& header, uint32_t usable) {
  uint32_t block = be16(page + 1);
  const uint32_t fragments = page[7];
  if (tight_ && block == 0) {
    demand(lowest_ == header.content + fragments, NVP_PAGE);
    return;
  }
  while (block != 0) {
    demand(block >= header.content && block + 4 <= usable, NVP_PAGE);
    const uint32_t next = be16(page + block), size = be16(page + block + 2);
    demand(size >= 4 && block + size <= usable, NVP_PAGE);
    demand(next == 0 || next > block + size + 3, NVP_PAGE);
    cells_.emplace_back(block, block + size);
    block = next;
  }
  std::sort(cells_.begin(), cells_.end());
  uint32_t at = header.content, between = 0;
  for (const auto& [from, to] : cells_) {
    demand(from >= at, NVP_PAGE);
    between += from - at;
    at = to;
  }
  demand(between + (usable - at) == fragments, NVP_PAGE);
}

std::vector<Leaf> find_leaves(PageFile& file, uint32_t root) {
  std::vector<Leaf> level{{root, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}};
  file.claim(root, NVP_PAGE);
  std::vector<uint8_t> page(file.page_size() + kSlack);
  Coverage coverage;
  for (int depth = 0; depth < kMostLevels; ++depth) {
    // All pages of a level are of one kind, or the tree is not balanced: the leaves are looked at when they are read.
    file.read_pages(level.front().page, 1, page.data());
    if (page[0] == kLeaf) return level;
    std::vector<Leaf> below;
    for (const Leaf& parent : level) {
      file.read_pages(parent.page, 1, page.data());
      expand(file, parent, page.data(), coverage, below);
    }
    level = std::move(below);
  }
  refuse(NVP_PAGE);
}

}  // namespace nvp
