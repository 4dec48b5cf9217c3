// Activity buffers: CUPTI takes an empty one on a thread of the program, the writer empties the full one. Bounded.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace nvcap {

struct EmptyBuffer {
  uint8_t* data = nullptr;
  size_t size = 0;
};

struct FullBuffer {
  uint8_t* data = nullptr;
  size_t size = 0, bytes = 0;  // bytes: as many of them hold records
};

struct PoolCounts {
  uint64_t requested = 0, completed = 0, declined = 0, most_in_use = 0;
};

class BufferPool {
 public:
  BufferPool(size_t buffer_bytes, size_t pool_bytes);

  // On a thread of the program: an empty, zeroed buffer, or null where the bound is reached and the writer does not free
  // one within a few milliseconds (and then at once for a while: a program is held up once, not at each request).
  // Each thread keeps a buffer: beyond half of the bound new ones are small, so that hundreds of threads get one.
  EmptyBuffer take();
  // On a thread of the program or of CUPTI: hand over what CUPTI has filled.
  void complete(uint8_t* data, size_t size, size_t bytes) noexcept;
  // On the writer: the next full buffer, after at most `wait_ms`. False: none came, or `wake` was called.
  bool next(FullBuffer& full, int wait_ms);
  // On the writer: an emptied buffer back, zeroed again.
  void give_back(const FullBuffer& full) noexcept;
  // On the writer: have a few empty ones ready, their pages there.
  void prepare();
  // Lets a waiting `next` return, or the next one not wait; cheap, takes no lock.
  void wake() {
    poked_.store(true, std::memory_order_relaxed);
    filled_.notify_one();
  }
  // From now on every request is declined without being counted.
  void shut();

  size_t buffer_bytes() const { return buffer_bytes_; }
  PoolCounts counts();

 private:
  static uint8_t* make(size_t size, bool with_pages);
  // What a new buffer would have, within the bound; 0: nothing more may be made.
  size_t next_size() const;

  const size_t buffer_bytes_, small_bytes_;
  const size_t most_bytes_;
  std::mutex lock_;
  std::condition_variable filled_, emptied_;
  std::vector<EmptyBuffer> empty_;
  std::deque<FullBuffer> full_;
  size_t made_ = 0, made_bytes_ = 0;
  uint64_t impatient_until_ns_ = 0;
  bool shut_ = false;
  std::atomic<bool> poked_{false};
  PoolCounts counts_;
};

}  // namespace nvcap
