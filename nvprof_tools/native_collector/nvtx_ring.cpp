#include "nvtx_ring.h"

#include <sys/mman.h>

namespace nvcap::nvtx {
namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older kernels refuse it, and pages come at first touch as ever
#endif
constexpr uint64_t kFirst = 64 << 10;  // some 700 calls

}  // namespace

void Ring::prefault() {
  if (ready_ == kRingBytes || tail_.load(std::memory_order_relaxed) < ready_ / 2) return;
  const uint64_t from = ready_;
  ready_ = from == 0 ? kFirst : kRingBytes;
  (void)madvise(data + from, ready_ - from, MADV_POPULATE_WRITE);
}

Ring* Rings::join(uint32_t tid) {
  const auto begin = [tid](Ring* ring) {
    ring->tid = tid;
    ring->depths.clear();
    ring->state.store(Ring::kLive, std::memory_order_release);
    return ring;
  };
  for (Ring* ring = first_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    int free = Ring::kFree;
    // Neither free nor anybody's in between: nobody looks at it until it is live.
    if (ring->state.load(std::memory_order_relaxed) == Ring::kFree &&
        ring->state.compare_exchange_strong(free, -1, std::memory_order_acq_rel))
      return begin(ring);
  }
  void* data = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  Ring* ring = new Ring;
  ring->data = static_cast<uint8_t*>(data);
  ring->number = made_.fetch_add(1) + 1;
  ring->prefault();
  begin(ring);
  ring->next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(ring->next, ring, std::memory_order_acq_rel)) {
  }
  return ring;
}

}  // namespace nvcap::nvtx
