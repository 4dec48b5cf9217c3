#include "buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "clocks.h"

namespace nvcap {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(5);
constexpr uint64_t kImpatienceNs = 200'000'000;
constexpr size_t kReady = 2;

}  // namespace

BufferPool::BufferPool(size_t buffer_bytes, size_t pool_bytes)
    : buffer_bytes_(buffer_bytes), most_(std::max<size_t>(2, pool_bytes / buffer_bytes)) {}

uint8_t* BufferPool::make(bool with_pages) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (with_pages ? MAP_POPULATE : 0);
  void* data = mmap(nullptr, buffer_bytes_, PROT_READ | PROT_WRITE, flags, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
}

uint8_t* BufferPool::take() {
  std::unique_lock<std::mutex> guard(lock_);
  if (shut_) return nullptr;
  counts_.requested++;
  if (empty_.empty() && made_ == most_ && monotonic_ns() >= impatient_until_ns_) {
    emptied_.wait_for(guard, kPatience, [this] { return !empty_.empty() || shut_; });
    if (empty_.empty()) impatient_until_ns_ = monotonic_ns() + kImpatienceNs;
  }
  uint8_t* data = nullptr;
  if (!empty_.empty()) {
    data = empty_.back();
    empty_.pop_back();
  } else if (made_ < most_) {
    data = make(false);
    if (data != nullptr) made_++;
  }
  if (data == nullptr) counts_.declined++;
  counts_.most_in_use = std::max<uint64_t>(counts_.most_in_use, made_ - empty_.size());
  return data;
}

void BufferPool::complete(uint8_t* data, size_t bytes) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    counts_.completed++;
    full_.push_back({data, std::min(bytes, buffer_bytes_)});
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

void BufferPool::give_back(uint8_t* data) {
  std::memset(data, 0, buffer_bytes_);
  {
    std::lock_guard<std::mutex> guard(lock_);
    empty_.push_back(data);
  }
  emptied_.notify_one();
}

void BufferPool::prepare() {
  for (;;) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      if (shut_ || made_ == most_ || empty_.size() >= kReady) return;
      made_++;
    }
    uint8_t* data = make(true);
    std::lock_guard<std::mutex> guard(lock_);
    if (data == nullptr) {
      made_--;
      return;
    }
    empty_.push_back(data);
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
