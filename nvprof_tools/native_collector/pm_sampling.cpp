#include "pm_sampling.h"

#include <chrono>
#include <memory>

#include "json.h"
#include "own_thread.h"
#include "pm_device.h"
#include "process.h"
#include "thread_names.h"

namespace nvcap {

void PmSampling::start() {
  if (hz_ == 0) return;
  std::lock_guard<std::mutex> guard(lock_);
  running_ = start_own_thread([this](uint32_t tid) { run(tid); });
}

void PmSampling::device(uint32_t number) {
  if (hz_ == 0) return;
  std::lock_guard<std::mutex> guard(lock_);
  if (!seen_.insert(number).second) return;
  waiting_.push_back(number);
  changed_.notify_all();
}

void PmSampling::stop() {
  std::unique_lock<std::mutex> guard(lock_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait_for(guard, std::chrono::seconds(3), [this] { return !running_; });
}

void PmSampling::run(uint32_t tid) {
  {
    std::lock_guard<std::mutex> guard(sink_lock_);
    ThreadNames::given(sink_, tid, "nvcap", 2);
  }
  std::vector<std::unique_ptr<PmDevice>> devices;
  bool stopping = false, fetched = false;
  while (!stopping) {
    std::vector<uint32_t> fresh;
    {
      std::unique_lock<std::mutex> guard(lock_);
      if (!stopping_ && waiting_.empty()) changed_.wait_for(guard, std::chrono::milliseconds(100));
      stopping = stopping_;
      fresh.swap(waiting_);
    }
    for (const uint32_t number : fresh) {
      if (stopping) break;
      auto device = std::make_unique<PmDevice>(cupti_, number, hz_);
      const bool on = device->start();
      std::lock_guard<std::mutex> guard(sink_lock_);
      JsonObject pm;
      pm.text("state", on ? "on" : "refused").number("hz", hz_).text("gpu_clock", "estimated");
      sink_.file.json(kInfo, JsonObject().raw("pm", pm.str()).str());
      if (!device->why().empty()) sink_.notice("pm-refused", 1, device->why());
      if (!on) continue;
      end_first();
      fetched = false;
      device->describe(sink_);
      devices.push_back(std::move(device));
    }
    for (auto& device : devices) {
      const bool well = device->collect(stopping);
      // The libraries that turn counters into figures come to life with the first ones, and must outlive our last.
      if (!fetched && device->fetched()) {
        fetched = true;
        end_first();
      }
      std::lock_guard<std::mutex> guard(sink_lock_);
      device->hand_over(sink_, stopping || !well);
      if (const uint64_t overflows = device->take_overflows()) sink_.notice("pm-overflow", overflows, "the GPU's sample buffer was full");
      if (well) continue;
      sink_.notice("pm-stopped", 1, device->why());
      device.reset();
    }
    for (size_t at = devices.size(); at-- > 0;)
      if (devices[at] == nullptr) devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(at));
  }
  devices.clear();
  std::lock_guard<std::mutex> guard(lock_);
  running_ = false;
  changed_.notify_all();
}

}  // namespace nvcap
