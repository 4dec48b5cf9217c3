// A stand-in for CUPTI: keeps records in buffers a thread, asks for them and hands them over as the real one does.
// FAKE_CUPTI_SUBSCRIBED=NAME: another client is there. FAKE_CUPTI_REFUSES=N: that activity kind is not supported.
// FAKE_CUPTI_NO_CLOCK=1: takes no timestamp callback. FAKE_CUPTI_SLOW_MS=N: takes so long to start.
#include "fake_cupti.h"

#include <cupti.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Slot {
  std::mutex lock;
  uint8_t* buffer = nullptr;
  size_t size = 0, used = 0;
};

std::mutex lock;
std::set<Slot*> slots;
std::atomic<uint64_t> dropped{0}, dropped_total{0};
CUpti_BuffersCallbackRequestFunc requested;
CUpti_BuffersCallbackCompleteFunc completed;
CUpti_CallbackFunc resource_callback;
uint64_t(CUPTIAPI* clock_callback)();
std::map<std::pair<uint32_t, uint8_t>, uint64_t> switches;
uint32_t device_of_context;

// Names start at 1; "cudaFiller_N" in between, as many as the real lists have.
std::string names[2][400];

Slot& mine() {
  thread_local Slot* slot = [] {
    Slot* made = new Slot;
    std::lock_guard<std::mutex> guard(lock);
    slots.insert(made);
    return made;
  }();
  return *slot;
}

void hand_over(Slot& slot) {
  if (slot.buffer != nullptr) completed(nullptr, 0, slot.buffer, slot.size, slot.used);
  slot.buffer = nullptr;
}

bool emit(const void* record, size_t bytes) {
  if (requested == nullptr) return false;  // nobody listens
  Slot& slot = mine();
  std::lock_guard<std::mutex> guard(slot.lock);
  if (slot.buffer != nullptr && slot.used + bytes > slot.size) hand_over(slot);
  if (slot.buffer == nullptr) {
    size_t most = 0;
    slot.used = 0;
    requested(&slot.buffer, &slot.size, &most);
    if (slot.buffer != nullptr)
      for (size_t at = 0; at < slot.size; at++)
        if (slot.buffer[at] != 0) abort();  // it was told that buffers come zeroed
  }
  if (slot.buffer == nullptr) {
    dropped++;
    dropped_total++;
    return false;
  }
  std::memcpy(slot.buffer + slot.used, record, bytes);
  slot.used += bytes;
  return true;
}

uint64_t now() {
  if (clock_callback != nullptr) return clock_callback();
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t driver_switched(uint32_t cbid, uint8_t value) {
  std::lock_guard<std::mutex> guard(lock);
  return switches[{cbid, value}];
}

void context_created(uint32_t device) {
  device_of_context = device;
  CUpti_ResourceData data{};
  if (resource_callback != nullptr)
    resource_callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
}

size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(CUpti_ActivityOverhead);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory3);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return sizeof(CUpti_ActivityMemoryPool2);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(CUpti_ActivityContext);
    case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(CUpti_ActivityDevice4);
    case CUPTI_ACTIVITY_KIND_STREAM: return sizeof(CUpti_ActivityStream);
    default: return 64;
  }
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

EXPORT const FakeCupti fake_cupti = {emit, now, [] { return dropped_total.load(); }, driver_switched, context_created};

// As old as the records that it hands out.
EXPORT CUptiResult cuptiGetVersion(uint32_t* version) { return *version = 120000, CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiGetTimestamp(uint64_t* time) { return *time = now(), CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc callback, void*, CUpti_SubscriberParams* parameters) {
  if (is_set("FAKE_CUPTI_SLOW_MS")) usleep(static_cast<useconds_t>(std::atoi(std::getenv("FAKE_CUPTI_SLOW_MS"))) * 1000);
  if (!is_set("FAKE_CUPTI_SUBSCRIBED")) return resource_callback = callback, CUPTI_SUCCESS;
  std::strncpy(parameters->oldSubscriberName, std::getenv("FAKE_CUPTI_SUBSCRIBED"), parameters->oldSubscriberSize - 1);
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}
EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}
EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  if (cbid == 0 || cbid >= 400) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard<std::mutex> guard(lock);
  std::string& text = names[domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 1 : 0][cbid];
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  if (text.empty()) {
    text = (runtime ? "cudaFiller_" : "cuFiller_") + std::to_string(cbid);
    if (cbid == 211) text = "cudaLaunchKernel_v7000";
    if (cbid == 307) text = "cuLaunchKernel";
    if (cbid == 10 && runtime) text = "cudaGetLastError_v3020";
  }
  *name = text.c_str();
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  requested = request;
  completed = complete;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (is_set("FAKE_CUPTI_REFUSES") && std::atoi(std::getenv("FAKE_CUPTI_REFUSES")) == static_cast<int>(kind)) return CUPTI_ERROR_NOT_SUPPORTED;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiActivityFlushAll(uint32_t) {
  std::set<Slot*> all;
  try {
    std::lock_guard<std::mutex> guard(lock);
    all = slots;
  } catch (const std::bad_alloc&) {
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  for (Slot* slot : all) {
    std::lock_guard<std::mutex> guard(slot->lock);
    if (slot->used > 0) hand_over(*slot);
  }
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* count) { return *count = dropped.exchange(0), CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : result == CUPTI_ERROR_NOT_SUPPORTED ? "CUPTI_ERROR_NOT_SUPPORTED" : "CUPTI_ERROR_OTHER";
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t*, void*) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  if (is_set("FAKE_CUPTI_NO_CLOCK")) return CUPTI_ERROR_NOT_SUPPORTED;
  clock_callback = callback;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t value) {
  std::lock_guard<std::mutex> guard(lock);
  switches[{cbid, value}]++;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiGetDeviceId(CUcontext, uint32_t* device) { return *device = device_of_context, CUPTI_SUCCESS; }
