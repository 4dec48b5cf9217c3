#include "buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "clocks.h"

namespace nvcap {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(5);
constexpr uint64_t kImpatienceNs = 200'000'000;
constexpr size_t kReady = 2;
constexpr size_t kLeast = 4096, kSmaller = 16;

}  // namespace

BufferPool::BufferPool(size_t buffer_bytes, size_t pool_bytes)
    : buffer_bytes_(buffer_bytes),
      small_bytes_(std::max(kLeast, buffer_bytes / kSmaller & ~(kLeast - 1))),
      most_bytes_(std::max(2 * buffer_bytes, pool_bytes)) {}

uint8_t* BufferPool::make(size_t size, bool with_pages) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (with_pages ? MAP_POPULATE : 0);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
}

size_t BufferPool::next_size() const {
  if (made_bytes_ + buffer_bytes_ <= most_bytes_ / 2) return buffer_bytes_;
  return made_bytes_ + small_bytes_ <= most_bytes_ ? small_bytes_ : 0;
}

EmptyBuffer BufferPool::take() {
  std::unique_lock<std::mutex> guard(lock_);
  if (shut_) return {};
  counts_.requested++;
  if (empty_.empty() && next_size() == 0 && monotonic_ns() >= impatient_until_ns_) {
    emptied_.wait_for(guard, kPatience, [this] { return !empty_.empty() || shut_; });
    if (empty_.empty()) impatient_until_ns_ = monotonic_ns() + kImpatienceNs;
  }
  EmptyBuffer found;
  if (!empty_.empty()) {
    found = empty_.back();
    empty_.pop_back();
  } else if (const size_t size = next_size(); size > 0) {
    found = {make(size, false), size};
    if (found.data != nullptr) {
      made_++;
      made_bytes_ += size;
    }
  }
  if (found.data == nullptr) {
    counts_.declined++;
    return {};
  }
  counts_.most_in_use = std::max<uint64_t>(counts_.most_in_use, made_ - empty_.size());
  return found;
}

void BufferPool::complete(uint8_t* data, size_t size, size_t bytes) noexcept {
  try {
    std::lock_guard<std::mutex> guard(lock_);
    counts_.completed++;
    full_.push_back({data, size, std::min(bytes, size)});
  } catch (const std::bad_alloc&) {  // CUPTI is written in C: the buffer is lost, and the difference of the counts says so
  }
  filled_.notify_one();
}

bool BufferPool::next(FullBuffer& full, int wait_ms) {
  std::unique_lock<std::mutex> guard(lock_);
  if (!poked_.exchange(false, std::memory_order_relaxed) && full_.empty() && wait_ms > 0)
    filled_.wait_for(guard, std::chrono::milliseconds(wait_ms));
  if (full_.empty()) return false;
  full = full_.front();
  full_.pop_front();
  return true;
}

void BufferPool::give_back(const FullBuffer& full) noexcept {
  std::memset(full.data, 0, full.size);
  {
    std::lock_guard<std::mutex> guard(lock_);
    try {
      // A large one is taken before a small one.
      empty_.insert(full.size < buffer_bytes_ ? empty_.begin() : empty_.end(), {full.data, full.size});
    } catch (const std::bad_alloc&) {
      munmap(full.data, full.size);
      made_--;
      made_bytes_ -= full.size;
    }
  }
  emptied_.notify_one();
}

void BufferPool::prepare() {
  for (;;) {
    size_t size;
    {
      std::lock_guard<std::mutex> guard(lock_);
      size = next_size();
      if (shut_ || size < buffer_bytes_ || empty_.size() >= kReady) return;
      made_++;
      made_bytes_ += size;
    }
    uint8_t* data = make(size, true);
    std::lock_guard<std::mutex> guard(lock_);
    if (data == nullptr) {
      made_--;
      made_bytes_ -= size;
      return;
    }
    empty_.push_back({data, size});
  }
}

void BufferPool::shut() {
  std::lock_guard<std::mutex> guard(lock_);
  shut_ = true;
  emptied_.notify_all();
}

PoolCounts BufferPool::counts() {
  std::lock_guard<std::mutex> guard(lock_);
  return counts_;
}

}  // namespace nvcap
