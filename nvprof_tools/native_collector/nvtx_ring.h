// NVTX calls on their way from a program's thread to the writer: a ring of bytes a thread, one side writes, one reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

namespace nvcap::nvtx {

enum class Op : uint8_t { kSkip, kMark, kPush, kPop, kStart, kEnd, kThreadName };
enum class Text : uint8_t { kNone, kInline, kRegistered };

// Followed by `text_bytes` of text; the whole is a multiple of 8 long.
struct Entry {
  uint32_t bytes;
  Op op;
  Text text;
  uint16_t text_bytes;
  uint64_t time;
  uint64_t id;  // level of a push or pop, number of a start/end range, tid of a thread name
  uint64_t payload;
  const void* domain;
  const void* registered;
  uint32_t payload_type, category, color, reserved;
};

struct Depth {
  const void* domain;
  int open;
};

constexpr uint64_t kRingBytes = 1 << 20;
constexpr size_t kLongestText = 4096;

class Ring {
 public:
  enum State : int { kFree, kLive, kClosed };

  // Where an entry of so many bytes goes; null: the ring is full.
  uint8_t* room(uint32_t bytes) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    uint64_t at = head % kRingBytes;
    const uint64_t to_end = kRingBytes - at;
    const uint64_t needed = bytes <= to_end ? bytes : to_end + bytes;
    if (head + needed - seen_tail_ > kRingBytes) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head + needed - seen_tail_ > kRingBytes) return nullptr;
    }
    if (bytes > to_end) {
      const uint32_t skip = static_cast<uint32_t>(to_end);
      std::memcpy(data + at, &skip, 4);
      data[at + 4] = static_cast<uint8_t>(Op::kSkip);
      head += to_end;
      at = 0;
    }
    next_head_ = head + bytes;
    return data + at;
  }
  // What was put into the room becomes visible. True: the writer should come.
  bool publish() {
    head_.store(next_head_, std::memory_order_release);
    if (next_head_ - woken_at_ < kRingBytes / 4) return false;
    woken_at_ = next_head_;
    return true;
  }

  // The writer: calls `take(entry, text)` for each entry that is there.
  template <class Take>
  void drain(Take take) {
    const uint64_t head = head_.load(std::memory_order_acquire);
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (tail != head) {
      const uint8_t* at = data + tail % kRingBytes;
      uint32_t bytes;
      std::memcpy(&bytes, at, 4);
      if (static_cast<Op>(at[4]) != Op::kSkip) {
        Entry entry;
        std::memcpy(&entry, at, sizeof entry);
        take(entry, reinterpret_cast<const char*>(at + sizeof entry));
      }
      tail += bytes;
      tail_.store(tail, std::memory_order_release);
    }
  }

  // At its making, then on the writer: the kernel makes pages of the ring ahead of its thread, which else pays for each at
  // first touch, more than for all else. Rings of threads that mark little stay small.
  void prefault();

  std::atomic<int> state{kFree};
  std::atomic<uint64_t> dropped{0};
  uint32_t tid = 0;
  uint32_t number = 0;           // of this ring in its session, for the numbers of ranges
  uint64_t ranges = 0;           // started so far
  std::vector<Depth> depths;     // open pushes by domain
  uint8_t* data = nullptr;
  Ring* next = nullptr;

 private:
  std::atomic<uint64_t> head_{0};
  uint64_t next_head_ = 0, seen_tail_ = 0, woken_at_ = 0;  // the program's side only
  alignas(64) std::atomic<uint64_t> tail_{0};
  uint64_t ready_ = 0;  // bytes whose pages are there; the writer's side only
};

// All rings of a session; a thread's end leaves its ring to the next new thread once the writer has emptied it.
class Rings {
 public:
  // A ring for the calling thread; null: no memory.
  Ring* join(uint32_t tid);
  template <class Visit>
  void each(Visit visit) {
    for (Ring* ring = first_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next)
      if (ring->state.load(std::memory_order_acquire) > Ring::kFree) visit(*ring);
  }

 private:
  std::atomic<Ring*> first_{nullptr};
  std::atomic<uint32_t> made_{0};
};

}  // namespace nvcap::nvtx
