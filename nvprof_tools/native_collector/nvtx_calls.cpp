// What runs on the program's threads at each NVTX call: the time and the arguments go into the thread's ring, no more.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "clocks.h"
#include "nvtx_calls.h"
#include "nvtx_registry.h"
#include "nvtx_ring.h"
#include "session.h"

namespace nvcap::nvtx {
namespace {

struct Here {
  Session* session = nullptr;
  Ring* ring = nullptr;
  bool busy = false;
  bool ours = false;  // a thread of the collector: what it calls is not recorded
};
thread_local Here here;

// Runs when a thread that made a call ends.
void leave(void* ring) {
  here.session = nullptr;
  here.ring = nullptr;
  static_cast<Ring*>(ring)->state.store(Ring::kClosed, std::memory_order_release);
}

pthread_key_t leaving_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, leave) == 0 ? made : pthread_key_t(-1);
  }();
  return key;
}

__attribute__((noinline)) Ring* join(Session* session) {
  here.session = session;
  here.ring = here.ours ? nullptr : session->rings.join(static_cast<uint32_t>(syscall(SYS_gettid)));
  if (here.ring != nullptr) pthread_setspecific(leaving_key(), here.ring);
  return here.ring;
}

// A call within a call (a signal handler's, say) is left out and counted: the ring is in the middle of one.
class Call {
 public:
  Call() {
    Session* session = current();
    if (session == nullptr) return;
    if (here.busy) {
      if (here.ring != nullptr) here.ring->dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    here.busy = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    session_ = session;
    ring_ = here.session == session ? here.ring : join(session);
  }
  ~Call() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (session_ != nullptr) here.busy = false;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return ring_ != nullptr; }
  Ring& ring() { return *ring_; }

  // The number of open pushes of a domain on this thread, to be changed. The handle is not looked into: it may be any.
  int& depth(const void* domain) {
    for (Depth& known : ring_->depths)
      if (known.domain == domain) return known.open;
    ring_->depths.push_back({domain, 0});
    return ring_->depths.back().open;
  }

  void put(Entry entry, const char* text, size_t text_bytes) {
    text_bytes = std::min(text_bytes, kLongestText);
    entry.text_bytes = static_cast<uint16_t>(text_bytes);
    entry.bytes = static_cast<uint32_t>((sizeof entry + text_bytes + 7) & ~size_t{7});
    uint8_t* room = ring_->room(entry.bytes);
    if (room == nullptr) {
      ring_->dropped.fetch_add(1, std::memory_order_relaxed);
      session_->wake();
      return;
    }
    if (entry.time == 0) entry.time = monotonic_ns();
    std::memcpy(room, &entry, sizeof entry);
    if (text_bytes > 0) std::memcpy(room + sizeof entry, text, text_bytes);
    if (ring_->publish()) session_->wake();
  }

 private:
  Session* session_ = nullptr;
  Ring* ring_ = nullptr;
};

Entry plain(Op op, const void* domain, uint64_t id) {
  Entry entry{};
  entry.op = op;
  entry.domain = domain;
  entry.id = id;
  return entry;
}

void put_text(Call& call, Entry entry, const char* text) {
  if (text != nullptr) entry.text = Text::kInline;
  call.put(entry, text, text != nullptr ? strnlen(text, kLongestText) : 0);
}

void put_wide(Call& call, Entry entry, const wchar_t* text) {
  put_text(call, entry, text != nullptr ? narrow(text).c_str() : nullptr);
}

void put_attributes(Call& call, Entry entry, const nvtxEventAttributes_t* from) {
  if (from == nullptr) return call.put(entry, nullptr, 0);
  entry.category = from->category;
  entry.color = from->colorType == NVTX_COLOR_UNKNOWN ? 0 : from->color;
  if (from->payloadType != NVTX_PAYLOAD_UNKNOWN) {
    entry.payload_type = static_cast<uint32_t>(from->payloadType);
    const bool half = from->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 ||
                      from->payloadType == NVTX_PAYLOAD_TYPE_INT32 || from->payloadType == NVTX_PAYLOAD_TYPE_FLOAT;
    entry.payload = half ? from->payload.uiValue : from->payload.ullValue;
  }
  switch (from->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return put_text(call, entry, from->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE: return put_wide(call, entry, from->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      entry.text = Text::kRegistered;
      entry.registered = from->message.registered;
      [[fallthrough]];
    default: return call.put(entry, nullptr, 0);
  }
}

// The calls come in a plain, an ASCII and a wide form: `Put` is one of the three above.
template <class Put, class Argument>
void mark(const void* domain, Put put, Argument argument) {
  Call call;
  if (call) put(call, plain(Op::kMark, domain, 0), argument);
}

template <class Put, class Argument>
int push(const void* domain, Put put, Argument argument) {
  Call call;
  if (!call) return NVTX_NO_PUSH_POP_TRACKING;
  const int level = call.depth(domain)++;
  put(call, plain(Op::kPush, domain, static_cast<uint64_t>(level)), argument);
  return level;
}

int pop(const void* domain) {
  const uint64_t now = monotonic_ns();
  Call call;
  if (!call) return NVTX_NO_PUSH_POP_TRACKING;
  int& depth = call.depth(domain);
  if (depth == 0) return -1;  // nothing is open
  const int level = --depth;
  Entry entry = plain(Op::kPop, domain, static_cast<uint64_t>(level));
  entry.time = now;
  call.put(entry, nullptr, 0);
  return level;
}

template <class Put, class Argument>
nvtxRangeId_t start(const void* domain, Put put, Argument argument) {
  Call call;
  if (!call) return 0;
  const uint64_t id = uint64_t{call.ring().number} << 40 | ++call.ring().ranges;
  put(call, plain(Op::kStart, domain, id), argument);
  return id;
}

void end(nvtxRangeId_t id) {
  const uint64_t now = monotonic_ns();
  Call call;
  if (!call || id == 0) return;
  Entry entry = plain(Op::kEnd, nullptr, id);
  entry.time = now;
  call.put(entry, nullptr, 0);
}

// Core.
void NVTX_API MarkEx(const nvtxEventAttributes_t* event) { mark(nullptr, put_attributes, event); }
void NVTX_API MarkA(const char* text) { mark(nullptr, put_text, text); }
void NVTX_API MarkW(const wchar_t* text) { mark(nullptr, put_wide, text); }
nvtxRangeId_t NVTX_API RangeStartEx(const nvtxEventAttributes_t* event) { return start(nullptr, put_attributes, event); }
nvtxRangeId_t NVTX_API RangeStartA(const char* text) { return start(nullptr, put_text, text); }
nvtxRangeId_t NVTX_API RangeStartW(const wchar_t* text) { return start(nullptr, put_wide, text); }
void NVTX_API RangeEnd(nvtxRangeId_t id) { end(id); }
int NVTX_API RangePushEx(const nvtxEventAttributes_t* event) { return push(nullptr, put_attributes, event); }
int NVTX_API RangePushA(const char* text) { return push(nullptr, put_text, text); }
int NVTX_API RangePushW(const wchar_t* text) { return push(nullptr, put_wide, text); }
int NVTX_API RangePop() { return pop(nullptr); }
void NVTX_API NameCategoryA(uint32_t category, const char* name) {
  if (name != nullptr) name_category(nullptr, category, name);
}
void NVTX_API NameCategoryW(uint32_t category, const wchar_t* name) {
  if (name != nullptr) name_category(nullptr, category, narrow(name));
}
void NVTX_API NameOsThreadA(uint32_t tid, const char* name) {
  Call call;
  if (call && name != nullptr) put_text(call, plain(Op::kThreadName, nullptr, tid), name);
}
void NVTX_API NameOsThreadW(uint32_t tid, const wchar_t* name) {
  if (name != nullptr) NameOsThreadA(tid, narrow(name).c_str());
}

// With a domain.
void NVTX_API DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) { mark(domain, put_attributes, event); }
nvtxRangeId_t NVTX_API DomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return start(domain, put_attributes, event);
}
void NVTX_API DomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
int NVTX_API DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return push(domain, put_attributes, event);
}
int NVTX_API DomainRangePop(nvtxDomainHandle_t domain) { return pop(domain); }
nvtxDomainHandle_t handle(Domain* domain) { return reinterpret_cast<nvtxDomainHandle_t>(domain); }
const Domain* domain_of(nvtxDomainHandle_t domain) { return reinterpret_cast<const Domain*>(domain); }
void NVTX_API DomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  if (name != nullptr) name_category(domain_of(domain), category, name);
}
void NVTX_API DomainNameCategoryW(nvtxDomainHandle_t domain, uint32_t category, const wchar_t* name) {
  if (name != nullptr) name_category(domain_of(domain), category, narrow(name));
}
nvtxStringHandle_t NVTX_API DomainRegisterStringA(nvtxDomainHandle_t, const char* text) {
  return text == nullptr ? nullptr : reinterpret_cast<nvtxStringHandle_t>(make_string(text));
}
nvtxStringHandle_t NVTX_API DomainRegisterStringW(nvtxDomainHandle_t, const wchar_t* text) {
  return text == nullptr ? nullptr : reinterpret_cast<nvtxStringHandle_t>(make_string(narrow(text)));
}
nvtxDomainHandle_t NVTX_API DomainCreateA(const char* name) { return name == nullptr ? nullptr : handle(make_domain(name)); }
nvtxDomainHandle_t NVTX_API DomainCreateW(const wchar_t* name) {
  return name == nullptr ? nullptr : handle(make_domain(narrow(name)));
}
void NVTX_API DomainDestroy(nvtxDomainHandle_t) {}

struct Slot {
  unsigned index;
  NvtxFunctionPointer function;
};

template <class Function>
Slot slot(unsigned index, Function function) {
  return {index, reinterpret_cast<NvtxFunctionPointer>(function)};
}

bool fill(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module, std::initializer_list<Slot> slots) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr) return false;
  for (const Slot& one : slots)
    if (one.index < size && table[one.index] != nullptr) *table[one.index] = one.function;
  return true;
}

}  // namespace

void this_thread_is_ours() { here.ours = true; }

bool attach(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return false;
  const bool core = fill(callbacks, NVTX_CB_MODULE_CORE,
                         {slot(NVTX_CBID_CORE_MarkEx, MarkEx), slot(NVTX_CBID_CORE_MarkA, MarkA),
                          slot(NVTX_CBID_CORE_MarkW, MarkW), slot(NVTX_CBID_CORE_RangeStartEx, RangeStartEx),
                          slot(NVTX_CBID_CORE_RangeStartA, RangeStartA), slot(NVTX_CBID_CORE_RangeStartW, RangeStartW),
                          slot(NVTX_CBID_CORE_RangeEnd, RangeEnd), slot(NVTX_CBID_CORE_RangePushEx, RangePushEx),
                          slot(NVTX_CBID_CORE_RangePushA, RangePushA), slot(NVTX_CBID_CORE_RangePushW, RangePushW),
                          slot(NVTX_CBID_CORE_RangePop, RangePop), slot(NVTX_CBID_CORE_NameCategoryA, NameCategoryA),
                          slot(NVTX_CBID_CORE_NameCategoryW, NameCategoryW),
                          slot(NVTX_CBID_CORE_NameOsThreadA, NameOsThreadA),
                          slot(NVTX_CBID_CORE_NameOsThreadW, NameOsThreadW)});
  fill(callbacks, NVTX_CB_MODULE_CORE2,
       {slot(NVTX_CBID_CORE2_DomainMarkEx, DomainMarkEx), slot(NVTX_CBID_CORE2_DomainRangeStartEx, DomainRangeStartEx),
        slot(NVTX_CBID_CORE2_DomainRangeEnd, DomainRangeEnd), slot(NVTX_CBID_CORE2_DomainRangePushEx, DomainRangePushEx),
        slot(NVTX_CBID_CORE2_DomainRangePop, DomainRangePop),
        slot(NVTX_CBID_CORE2_DomainNameCategoryA, DomainNameCategoryA),
        slot(NVTX_CBID_CORE2_DomainNameCategoryW, DomainNameCategoryW),
        slot(NVTX_CBID_CORE2_DomainRegisterStringA, DomainRegisterStringA),
        slot(NVTX_CBID_CORE2_DomainRegisterStringW, DomainRegisterStringW),
        slot(NVTX_CBID_CORE2_DomainCreateA, DomainCreateA), slot(NVTX_CBID_CORE2_DomainCreateW, DomainCreateW),
        slot(NVTX_CBID_CORE2_DomainDestroy, DomainDestroy)});
  return core;
}

}  // namespace nvcap::nvtx
