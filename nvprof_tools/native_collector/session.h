// One capture of one process: its file, its two threads, and all that hangs on them. Made at the first injection, never
// freed: calls come in until the very end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "activity.h"
#include "buffer_pool.h"
#include "cupti_api.h"
#include "nvtx_ring.h"
#include "nvtx_rows.h"
#include "options.h"
#include "pm_sampling.h"
#include "records.h"
#include "sink.h"
#include "thread_names.h"

namespace nvcap {

class Session {
 public:
  explicit Session(const Options& options);

  // Opens the file and starts the threads. False: there is nothing to write to.
  bool open();
  // Within the driver's start: CUPTI, if it is to be had. The rest goes on without it.
  void start_cuda();
  // The end: last flush, last rows, end block. Returns within some seconds, whatever CUPTI does.
  void finish();

  bool is_of_this_process() const;

  void wake() { pool.wake(); }

  nvtx::Rings rings;
  BufferPool pool;
  std::atomic<uint64_t> forks{0};

  // A context was made: PM sampling may start on its device.
  void context_created(CUcontext context);

 private:
  void run_writer();
  void run_ticker();
  bool spawn(void (Session::*body)());

  void step(bool last);
  void take_buffers();
  void count(const char* slug, uint64_t total, const std::string& message);
  void counters();
  void snapshot();
  void write_info();
  void write_end();

  const Options options_;
  const int pid_;
  Cupti cupti_;
  Started cuda_;
  std::atomic<bool> cuda_running_{false};

  std::mutex sink_lock_;  // sink and all that makes rows
  Sink sink_;
  ThreadNames names_;
  Records records_;
  nvtx::Rows nvtx_rows_;
  PmSampling pm_;
  std::map<std::string, uint64_t> told_;  // of counters, so far
  uint64_t dropped_by_cupti_ = 0, steps_lost_ = 0;
  uint64_t flush_at_ns_ = 0, second_at_ns_ = 0;
  std::atomic<bool> flushed_whole_{true};

  std::mutex state_lock_;
  std::condition_variable state_changed_;
  bool ending_ = false, flushed_ = false, writer_done_ = false, ticker_there_ = false, writer_there_ = false;
  std::atomic<bool> stopping_{false};
};

// The session that calls of this process go to; null: none, or it has ended, or this is a forked child.
Session* current();
// Makes it if there is none yet. Null: not wanted, not possible, or over.
Session* ensure();
// As above, and CUPTI too.
void ensure_cuda();

}  // namespace nvcap
