#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "bytes.h"

namespace nvp {
namespace {

// Columns of millions of rows are written once, front to back: with 2 MiB pages the kernel is asked 500 times less often.
constexpr uint64_t kHugePage = 2u << 20;
constexpr uint64_t kMapped = 8u << 20;

uint64_t rounded(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

void* map(uint64_t bytes) {
  const uint64_t size = rounded(bytes, kHugePage);
  void* found = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) refuse(NVP_MEMORY);
  const auto begin = reinterpret_cast<uintptr_t>(found);
  const uintptr_t aligned = rounded(begin, kHugePage);
  if (aligned > begin) munmap(found, aligned - begin);
  const uintptr_t end = begin + size + kHugePage;
  if (end > aligned + size) munmap(reinterpret_cast<void*>(aligned + size), end - aligned - size);
#ifdef MADV_HUGEPAGE
  madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

void* allocate(uint64_t bytes) {
  if (bytes >= kMapped) return map(bytes);
  const uint64_t size = rounded(bytes, 64);
  void* found = std::aligned_alloc(64, size);
  if (found == nullptr) refuse(NVP_MEMORY);
  std::memset(found, 0, size);
  return found;
}

void release(void* data, uint64_t bytes) {
  if (data == nullptr) return;
  if (bytes >= kMapped) {
    munmap(data, rounded(bytes, kHugePage));
  } else {
    std::free(data);
  }
}

}  // namespace nvp
