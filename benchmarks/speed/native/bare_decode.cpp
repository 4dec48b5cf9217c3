// The yardstick of the page reader: the least that has to be done to get columns out of a table's pages, and nothing else.
//
// The file is believed. No check, no overflow, no text, no nulls: integer columns by position, one thread or several, each
// over its share of the leaves, read in runs into a buffer that stays in the cache. A reader that checks everything can at
// best come near it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

uint32_t be16(const uint8_t* p) { return static_cast<uint32_t>(p[0]) << 8 | p[1]; }
uint32_t be32(const uint8_t* p) { return be16(p) << 16 | be16(p + 2); }

uint64_t varint(const uint8_t*& p) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) {
    const uint8_t byte = *p++;
    value = value << 7 | (byte & 0x7f);
    if (byte < 0x80) return value;
  }
  return value << 8 | *p++;
}

// Eight bytes at once where the file goes on that far.
int64_t integer(const uint8_t* p, uint64_t bytes, const uint8_t* end) {
  if (p + 8 <= end) {
    uint64_t raw;
    std::memcpy(&raw, p, 8);
    return static_cast<int64_t>(__builtin_bswap64(raw)) >> (64 - 8 * bytes);
  }
  int64_t value = static_cast<int8_t>(p[0]);
  for (uint64_t k = 1; k < bytes; ++k) value = value << 8 | p[k];
  return value;
}

constexpr size_t kHugePage = 2u << 20;
const uint8_t kBytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

struct Table {
  const uint8_t* file;
  uint32_t page_size;
  int fd;
  std::vector<uint32_t> leaves;

  void collect(uint32_t page) {
    const uint8_t* p = file + static_cast<uint64_t>(page - 1) * page_size;
    if (p[0] == 13) {
      leaves.push_back(page);
      return;
    }
    const uint32_t cells = be16(p + 3);
    for (uint32_t i = 0; i < cells; ++i) collect(be32(p + be16(p + 12 + 2 * i)));
    collect(be32(p + 8));
  }

  const uint8_t* leaf(uint64_t i) const { return file + static_cast<uint64_t>(leaves[i] - 1) * page_size; }

  void decode(uint64_t from, uint64_t to, uint64_t row, const int32_t* slots, uint32_t last, int64_t** out) const {
    uint64_t first_of_run = from;
    const uint64_t at_once = 262144 / page_size + 1;
    std::vector<uint8_t> buffer(at_once * page_size + 8);
    const uint8_t* end = buffer.data() + buffer.size();
    for (uint64_t run = 0; from < to; ++from) {
      if (run == 0) {
        run = 1;
        while (run < at_once && from + run < to && leaves[from + run] == leaves[from] + run) ++run;
        if (pread(fd, buffer.data(), run * page_size, static_cast<off_t>(leaves[from] - 1) * page_size) < 0) return;
        first_of_run = from;
      }
      const uint8_t* page = buffer.data() + (from - first_of_run) * page_size;
      --run;
      const uint32_t cells = be16(page + 3);
      for (uint32_t i = 0; i < cells; ++i, ++row) {
        const uint8_t* p = page + be16(page + 8 + 2 * i);
        varint(p);
        varint(p);
        const uint8_t* header = p;
        const uint8_t* body = p + varint(header);
        for (uint32_t column = 0; column <= last; ++column) {
          const uint64_t type = *header < 0x80 ? *header++ : varint(header);
          const uint64_t bytes = type >= 12 ? (type - 12) / 2 : kBytes[type];
          if (slots[column] >= 0) {
            int64_t value = 0;
            if (type == 9) {
              value = 1;
            } else if (bytes != 0 && type < 12) {
              value = integer(body, bytes, end);
            }
            out[slots[column]][row] = value;
          }
          body += bytes;
        }
      }
    }
  }
};

}  // namespace

// Decodes `wanted` integer columns of the table at `root` into fresh arrays and lets them go again; returns the rows.
// `positions` are the columns' places in a stored row. `checksum` is the sum of all values, to show they were read.
extern "C" uint64_t bare_decode(const char* path, uint32_t root, const uint32_t* positions, uint32_t wanted,
                                uint32_t threads, uint64_t* checksum) {
  const int fd = open(path, O_RDONLY);
  struct stat status;
  fstat(fd, &status);
  const auto size = static_cast<size_t>(status.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const auto* bytes = static_cast<const uint8_t*>(mapped);
  Table table{bytes, 0, fd, {}};
  const uint32_t stated = be16(table.file + 16);
  table.page_size = stated == 1 ? 65536 : stated;
  table.collect(root);

  const uint64_t leaves = table.leaves.size();
  std::vector<uint64_t> first(threads + 1, 0), row(threads + 1, 0);
  for (uint32_t t = 0; t < threads; ++t) {
    first[t + 1] = leaves * (t + 1) / threads;
    row[t + 1] = row[t];
    for (uint64_t i = first[t]; i < first[t + 1]; ++i) row[t + 1] += be16(table.leaf(i) + 3);
  }
  std::vector<int32_t> slots(65536, -1);
  std::vector<int64_t*> out;
  uint32_t last = 0;
  for (uint32_t i = 0; i < wanted; ++i) {
    slots[positions[i]] = static_cast<int32_t>(i);
    last = positions[i] > last ? positions[i] : last;
    const size_t bytes = (row[threads] * 8 + 8 + kHugePage - 1) / kHugePage * kHugePage;
    out.push_back(static_cast<int64_t*>(std::aligned_alloc(kHugePage, bytes)));
    madvise(out.back(), bytes, MADV_HUGEPAGE);
  }
  std::vector<std::thread> others;
  for (uint32_t t = 0; t < threads; ++t) {
    others.emplace_back([&, t] { table.decode(first[t], first[t + 1], row[t], slots.data(), last, out.data()); });
  }
  for (std::thread& other : others) other.join();
  munmap(mapped, size);
  close(fd);
  if (checksum != nullptr) {
    *checksum = 0;
    for (const int64_t* column : out) {
      for (uint64_t i = 0; i < row[threads]; ++i) *checksum += static_cast<uint64_t>(column[i]);
    }
  }
  for (int64_t* column : out) std::free(column);
  return row[threads];
}
