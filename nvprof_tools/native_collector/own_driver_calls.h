// Driver calls that the program makes itself, without those that the runtime makes on its behalf. On the writer only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rows.h"

namespace nvcap {

struct Cupti;

// The runtime's call encloses the driver's on the same thread. CUPTI hands out rows by thread and in order of their ends,
// but a buffer may end between the two: a driver row waits for one more buffer of its thread before it counts as the
// program's own. A function seen only below the runtime for long is switched off, and on again for a moment each second.
class OwnDriverCalls {
 public:
  void runtime(const RuntimeRow& row);
  void driver(const DriverRow& row) { threads_[touch(row.tid)].waiting.push_back({row, 0}); }
  // At the end of a buffer: what is decided goes into `own`.
  void settle(std::vector<DriverRow>& own);
  // About each second, or at the end (`all`): rows that waited long enough without a further buffer of their thread.
  void sweep(std::vector<DriverRow>& own, bool all);
  // Switches functions off and on. Each tick of the writer; `now_ns` is any steady clock.
  void adapt(const Cupti& cupti, uint64_t now_ns);

  uint64_t nested = 0;
  // Functions that turned out to be the program's own after they had been switched off; taken by the writer.
  std::vector<uint32_t> late;

 private:
  struct Call {
    uint64_t start, end;
  };
  struct Waiting {
    DriverRow row;
    int age;
  };
  struct Thread {
    std::vector<Call> calls;
    std::vector<Waiting> waiting;
    bool touched = false;
  };
  struct Function {
    uint64_t nested = 0, own = 0;
    bool off = false, sampling = false;
  };

  uint32_t touch(uint32_t tid);
  void settle_thread(Thread& thread, std::vector<DriverRow>& own);
  void keep(const DriverRow& row, std::vector<DriverRow>& own);

  std::unordered_map<uint32_t, Thread> threads_;
  std::vector<uint32_t> touched_;
  std::unordered_map<uint32_t, Function> functions_;
  uint64_t sample_at_ns_ = 0, sample_until_ns_ = 0;
};

}  // namespace nvcap
