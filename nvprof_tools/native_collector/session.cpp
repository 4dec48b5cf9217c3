#include "session.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "clocks.h"
#include "json.h"
#include "own_thread.h"
#include "process.h"

namespace nvcap {
namespace {

constexpr uint64_t kFlushNs = 250'000'000, kSecondNs = 1'000'000'000;
constexpr auto kAskCupti = std::chrono::milliseconds(400);
constexpr auto kPatienceAtEnd = std::chrono::seconds(5);
constexpr int kIdleMs = 50;

struct Returned {
  BufferPool& pool;
  const FullBuffer& full;
  ~Returned() { pool.give_back(full); }
};

}  // namespace

Session::Session(const Options& options)
    : pool(options.buffer_bytes, options.pool_bytes),
      options_(options),
      pid_(static_cast<int>(getpid())),
      records_(cupti_, options_, sink_, names_),
      nvtx_rows_(sink_, names_),
      pm_(cupti_, sink_, sink_lock_, options_.pm_hz) {}

bool Session::is_of_this_process() const { return getpid() == pid_; }

bool Session::open() {
  if (!sink_.file.open(options_.folder, program_name(), pid_)) return false;
  sink_.write_schema();
  write_info();
  if (sink_.file.failed() != 0) {
    sink_.file.remove();
    return false;
  }
  snapshot();
  names_.seen(sink_, static_cast<uint32_t>(getpid()));
  sink_.flush();
  flush_at_ns_ = second_at_ns_ = monotonic_ns();
  writer_there_ = spawn(&Session::run_writer);
  ticker_there_ = writer_there_ && spawn(&Session::run_ticker);
  return writer_there_;
}

bool Session::spawn(void (Session::*body)()) {
  return start_own_thread([this, body](uint32_t tid) {
    try {
      std::lock_guard<std::mutex> guard(sink_lock_);
      ThreadNames::given(sink_, tid, "nvcap", 2);
    } catch (const std::bad_alloc&) {  // a thread without a name works as well
    }
    (this->*body)();
  });
}

void Session::start_cuda() {
  const ActivityCallbacks callbacks = activity_callbacks();
  Started started = start_activity(cupti_, options_, callbacks);
  {
    std::lock_guard<std::mutex> guard(sink_lock_);
    cuda_ = std::move(started);
    write_info();
    if (!cuda_.running) sink_.notice(cuda_.slug.c_str(), 1, cuda_.message);
    for (const Refused& refused : cuda_.refused) sink_.notice("cupti-refused", 1, refused.what + ": " + refused.why);
    cuda_running_ = cuda_.running;
  }
  snapshot();
  if (cuda_running_) pm_.start();
}

void Session::context_created(CUcontext context) {
  uint32_t device = 0;
  if (cupti_.cuptiGetDeviceId == nullptr) return;
  if (cupti_.said("cuptiGetDeviceId", cupti_.cuptiGetDeviceId(context, &device)) == CUPTI_SUCCESS) pm_.device(device);
}

void Session::run_writer() {
  for (;;) {
    const bool last = stopping_.load(std::memory_order_acquire);
    try {
      step(last);
      if (last) break;
      pool.prepare();
    } catch (const std::bad_alloc&) {  // the program goes on, and so do we: without what was in our hands
      steps_lost_++;
      if (last) break;
    }
  }
  std::lock_guard<std::mutex> guard(state_lock_);
  writer_done_ = true;
  state_changed_.notify_all();
}

void Session::step(bool last) {
  FullBuffer full;
  bool there = pool.next(full, last ? 0 : kIdleMs);
  std::lock_guard<std::mutex> guard(sink_lock_);
  while (there) {
    {
      const Returned after{pool, full};  // also where there is no memory for its rows
      records_.take(full.data, full.bytes);
      sink_.flush_if_full();
    }
    there = pool.next(full, 0);
  }
  nvtx_rows_.take(rings);
  const uint64_t now = monotonic_ns();
  if (cuda_running_) records_.adapt(now);
  if (last) {
    records_.sweep(true);
    nvtx_rows_.finish();
    counters();
    sink_.flush();
    write_end();
    sink_.file.close();
    return;
  }
  if (now >= second_at_ns_) {
    records_.sweep(false);
    names_.look_again(sink_);
    counters();
    second_at_ns_ = now + kSecondNs;
  }
  if (now >= flush_at_ns_) {
    sink_.flush();
    flush_at_ns_ = now + kFlushNs;
  }
}

void Session::count(const char* slug, uint64_t total, const std::string& message) {
  uint64_t& told = told_[slug];
  if (total <= told) return;
  sink_.notice(slug, total - told, message);
  told = total;
}

void Session::counters() {
  if (cuda_running_) {
    size_t dropped = 0;
    if (cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) dropped_by_cupti_ += dropped;
  }
  count("records-dropped", dropped_by_cupti_, "CUPTI dropped activity records");
  count("buffer-declined", pool.counts().declined, "the buffer pool was full");
  count("record-unknown", records_.unknown, "CUPTI handed out records of a kind that was not asked for");
  count("nvtx-dropped", nvtx_rows_.dropped, "NVTX calls came faster than they could be written");
  count("memory-short", steps_lost_, "the process had no memory left: some records were dropped");
  count("nvtx-unmatched", nvtx_rows_.unmatched, "NVTX ranges without start or end");
  for (const uint32_t cbid : records_.late()) {
    const char* name = nullptr;
    const bool named = cupti_.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name) == CUPTI_SUCCESS && name != nullptr;
    sink_.notice("driver-rows-late", 1, (named ? name : "driver function " + std::to_string(cbid)) +
                                            " was called by the program itself after long only by the runtime");
  }
  records_.late().clear();
}

void Session::run_ticker() {
  uint64_t snapshot_at = monotonic_ns() + kSecondNs;
  for (;;) {
    bool ending;
    {
      std::unique_lock<std::mutex> guard(state_lock_);
      if (!ending_) state_changed_.wait_for(guard, kAskCupti);
      ending = ending_;
    }
    // Not before the first buffer is out: the driver may still be starting.
    if (cuda_running_ && pool.counts().requested > 0) {
      const CUptiResult result = cupti_.cuptiActivityFlushAll(ending ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
      if (ending) {
        cupti_.said("cuptiActivityFlushAll", result);
        flushed_whole_ = result == CUPTI_SUCCESS;
      }
    }
    if (monotonic_ns() >= snapshot_at || ending) {
      try {
        snapshot();
      } catch (const std::bad_alloc&) {  // there is another in a second
      }
      snapshot_at = monotonic_ns() + kSecondNs;
    }
    if (!ending) continue;
    std::lock_guard<std::mutex> guard(state_lock_);
    flushed_ = true;
    state_changed_.notify_all();
    return;
  }
}

void Session::snapshot() {
  ClockRow best{0, 0, 0, ~uint64_t{0}};
  for (int attempt = 0; attempt < 3; attempt++) {
    ClockRow row{};
    const uint64_t before = monotonic_ns();
    row.realtime = now_ns(CLOCK_REALTIME);
    // Before, another thread may be opening CUPTI; and one that refused us is left alone.
    if (cuda_running_ && cupti_.cuptiGetTimestamp(&row.cupti) != CUPTI_SUCCESS) row.cupti = 0;
    const uint64_t after = monotonic_ns();
    row.monotonic = before + (after - before) / 2;
    row.uncertainty = after - before;
    if (row.uncertainty < best.uncertainty) best = row;
  }
  std::lock_guard<std::mutex> guard(sink_lock_);
  sink_.clock.rows.push_back(best);
  if (cuda_running_ && !cuda_.own_clock && best.cupti != 0)
    records_.set_offset(static_cast<int64_t>(best.monotonic - best.cupti));
}

void Session::finish() {
  pm_.stop();
  std::unique_lock<std::mutex> guard(state_lock_);
  ending_ = true;
  state_changed_.notify_all();
  if (ticker_there_ && !state_changed_.wait_for(guard, kPatienceAtEnd, [this] { return flushed_; })) {
    flushed_whole_ = false;
    guard.unlock();
    {
      std::lock_guard<std::mutex> sink_guard(sink_lock_);
      sink_.notice("flush-timeout", 1, "CUPTI did not hand over its last buffers in time");
    }
    guard.lock();
  }
  stopping_.store(true, std::memory_order_release);
  wake();
  state_changed_.wait_for(guard, 2 * kPatienceAtEnd, [this] { return writer_done_; });
  guard.unlock();
  pool.shut();
}

void Session::write_info() {
  JsonList enabled, refused;
  for (const std::string& name : cuda_.enabled) enabled.add(quoted(name));
  for (const Refused& one : cuda_.refused)
    refused.add(JsonObject().text("what", one.what).raw("code", std::to_string(one.code)).text("why", one.why).str());
  JsonObject options, info;
  options.text("graph", options_.graph_level ? "graph" : "node").flag("memory", options_.memory);
  options.text("driver", name_of(options_.driver)).number("pm_hz", options_.pm_hz);
  options.number("buffer_bytes", options_.buffer_bytes).number("pool_bytes", options_.pool_bytes);
  info.text("collector", NVCAP_VERSION).number("pid", static_cast<uint64_t>(getpid()));
  info.number("ppid", static_cast<uint64_t>(getppid())).text("program", program_name()).text("clock", "monotonic");
  if (cuda_.running) info.text("cupti_clock", cuda_.own_clock ? "callback" : "converted");
  info.raw("cupti", cupti_.version != 0 ? std::to_string(cupti_.version) : "null");
  info.number("cupti_headers", CUPTI_API_VERSION);
  const int driver = cupti_.library != nullptr ? driver_version() : 0;
  info.raw("driver", driver != 0 ? std::to_string(driver) : "null");
  info.raw("enabled", enabled.str()).raw("refused", refused.str()).raw("options", options.str());
  sink_.file.json(kInfo, info.str());
}

void Session::write_end() {
  const PoolCounts counts = pool.counts();
  JsonObject buffers, end;
  buffers.number("requested", counts.requested).number("completed", counts.completed).number("declined", counts.declined);
  buffers.number("most_in_use", counts.most_in_use).number("bytes", pool.buffer_bytes());
  const bool complete = flushed_whole_ && dropped_by_cupti_ == 0 && counts.declined == 0 && nvtx_rows_.dropped == 0 &&
                        steps_lost_ == 0 && sink_.file.failed() == 0;
  end.raw("rows", sink_.written_rows()).number("dropped_by_cupti", dropped_by_cupti_);
  end.number("dropped_by_us", records_.unknown).raw("buffers", buffers.str()).number("nvtx_dropped", nvtx_rows_.dropped);
  end.number("driver_rows_nested", records_.nested()).number("forks", forks.load()).flag("complete", complete);
  sink_.file.json(kEnd, end.str());
}

}  // namespace nvcap
