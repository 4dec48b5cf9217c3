#include "activity.h"

#include <cstring>

#include "clocks.h"
#include "other_tools.h"

namespace nvcap {
namespace {

// The attribute exists from CUDA 12.3 on; older headers do not name it.
constexpr CUpti_ActivityAttribute kPerThreadBuffer = static_cast<CUpti_ActivityAttribute>(9);
constexpr CUpti_ActivityAttribute kZeroedBuffers = static_cast<CUpti_ActivityAttribute>(5);

// Asked all the time, of no use to attribution, and a good part of what tracing a launch costs.
constexpr const char* kRuntimeLeftOut[] = {"__cudaPushCallConfiguration", "__cudaPopCallConfiguration", "cudaGetLastError",
                                           "cudaPeekAtLastError", "cudaGetDevice_", "cudaGetDeviceCount", "cudaSetDevice_",
                                           "cudaDeviceGetAttribute", "cudaFuncGetAttributes", "cudaFuncSetAttribute",
                                           "cudaPointerGetAttributes", "cudaDriverGetVersion", "cudaRuntimeGetVersion",
                                           "cudaOccupancyMaxActiveBlocks"};
// Driver functions that do or wait for work, for programs that use the driver directly.
constexpr const char* kDriverWanted[] = {"cuLaunch", "cuGraphLaunch", "cuGraphInstantiate", "cuMemcpy", "cuMemset", "cuMemAlloc",
                                         "cuMemFree", "cuMemHost", "cuMemPoolTrimTo", "cuMemGetInfo", "cuMemCreate",
                                         "cuMemMap", "cuMemUnmap", "cuMemRelease", "cuMemPrefetch", "cuCtxSynchronize",
                                         "cuCtxCreate", "cuCtxDestroy", "cuDevicePrimaryCtx", "cuStreamSynchronize",
                                         "cuStreamCreate", "cuStreamDestroy", "cuStreamWait", "cuEventRecord",
                                         "cuEventSynchronize", "cuModuleLoad", "cuModuleUnload", "cuLibraryLoad",
                                         "cuLibraryUnload", "cuLinkComplete"};
constexpr uint32_t kMostFunctions = 2048;

template <size_t count>
bool starts_with_one_of(const char* name, const char* const (&prefixes)[count]) {
  for (const char* prefix : prefixes)
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

uint64_t CUPTIAPI our_clock() { return monotonic_ns(); }

class Starter {
 public:
  Starter(Cupti& cupti, const Options& options, const ActivityCallbacks& callbacks)
      : cupti_(cupti), options_(options), callbacks_(callbacks) {}

  Started run() {
    if (const std::string other = other_tool(); !other.empty()) return refuse("subscriber-present", other + " is profiling this program");
    if (const std::string why = cupti_.open(options_.cupti); !why.empty()) return refuse("cupti-missing", why);
    if (!subscribe()) return started_;
    settings();
    if (!ok("cuptiActivityRegisterCallbacks", cupti_.cuptiActivityRegisterCallbacks(callbacks_.requested, callbacks_.completed)))
      return refuse("cupti-refused", "CUPTI takes no buffers: " + started_.refused.back().why);
    kinds();
    started_.running = !started_.enabled.empty();
    if (!started_.running) refuse("cupti-refused", "CUPTI refused every activity kind");
    return started_;
  }

 private:
  Started& refuse(const char* slug, const std::string& message) {
    debug("refused: %s: %s", slug, message.c_str());
    started_.slug = slug;
    started_.message = message;
    return started_;
  }

  bool ok(const char* what, CUptiResult result) {
    cupti_.said(what, result);
    if (result == CUPTI_SUCCESS) return true;
    started_.refused.push_back({what, static_cast<int>(result), cupti_.words(result)});
    return false;
  }

  bool subscribe() {
    CUpti_SubscriberHandle handle = nullptr;
    CUptiResult result = CUPTI_ERROR_NOT_SUPPORTED;
    std::string who;
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    if (cupti_.cuptiSubscribe_v2 != nullptr) {
      char old[256] = {};
      CUpti_SubscriberParams parameters{};
      parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
      parameters.subscriberName = "nvprof_tools";
      parameters.oldSubscriberName = old;
      parameters.oldSubscriberSize = sizeof old;
      result = cupti_.cuptiSubscribe_v2(&handle, callbacks_.resource, nullptr, &parameters);
      cupti_.said("cuptiSubscribe_v2", result);
      old[sizeof old - 1] = '\0';
      who = old;
    }
#endif
    if (result != CUPTI_SUCCESS && result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
      result = cupti_.cuptiSubscribe(&handle, callbacks_.resource, nullptr);
      cupti_.said("cuptiSubscribe", result);
    }
    if (result == CUPTI_SUCCESS) {
      if (options_.pm_hz > 0)
        ok("cuptiEnableCallback", cupti_.cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED));
      return true;
    }
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
      refuse("subscriber-present", (who.empty() ? "another CUPTI client (it is not known which)" : who) + " is profiling this program");
    else
      refuse("cupti-refused", "cuptiSubscribe: " + cupti_.words(result));
    return false;
  }

  void settings() {
    if (cupti_.cuptiActivitySetAttribute != nullptr) {
      uint8_t on = 1;
      size_t size = sizeof on;
      ok("PER_THREAD_ACTIVITY_BUFFER", cupti_.cuptiActivitySetAttribute(kPerThreadBuffer, &size, &on));
      size = sizeof on;
      ok("ZEROED_OUT_ACTIVITY_BUFFER", cupti_.cuptiActivitySetAttribute(kZeroedBuffers, &size, &on));
    }
    if (cupti_.cuptiSetThreadIdType != nullptr)
      ok("cuptiSetThreadIdType", cupti_.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    if (cupti_.cuptiActivityRegisterTimestampCallback != nullptr)
      started_.own_clock = ok("cuptiActivityRegisterTimestampCallback", cupti_.cuptiActivityRegisterTimestampCallback(our_clock));
  }

  void enable(CUpti_ActivityKind kind, const char* name) {
    if (ok(name, cupti_.cuptiActivityEnable(kind))) started_.enabled.push_back(name);
  }

  void kinds() {
    enable(CUPTI_ACTIVITY_KIND_DEVICE, "DEVICE");
    enable(CUPTI_ACTIVITY_KIND_CONTEXT, "CONTEXT");
    enable(CUPTI_ACTIVITY_KIND_STREAM, "STREAM");
    enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL");
    enable(CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY");
    enable(CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2");
    enable(CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET");
    enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION");
    enable(CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD");
    enable(CUPTI_ACTIVITY_KIND_MEMORY_POOL, "MEMORY_POOL");
    if (options_.memory) enable(CUPTI_ACTIVITY_KIND_MEMORY2, "MEMORY2");
    if (options_.graph_level) enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE");
    if (cupti_.cuptiActivityEnableAllSyncRecords != nullptr)
      ok("cuptiActivityEnableAllSyncRecords", cupti_.cuptiActivityEnableAllSyncRecords(0));
    // The kind first: it undoes choices of single functions that were made before.
    enable(CUPTI_ACTIVITY_KIND_RUNTIME, "RUNTIME");
    choose(CUPTI_CB_DOMAIN_RUNTIME_API, cupti_.cuptiActivityEnableRuntimeApi, "cuptiActivityEnableRuntimeApi", 0,
           [](const char* name) { return starts_with_one_of(name, kRuntimeLeftOut); });
    if (options_.driver == DriverCalls::kOff) return;
    if (cupti_.cuptiActivityEnableDriverApi == nullptr) return enable(CUPTI_ACTIVITY_KIND_DRIVER, "DRIVER");
    if (choose(CUPTI_CB_DOMAIN_DRIVER_API, cupti_.cuptiActivityEnableDriverApi, "cuptiActivityEnableDriverApi", 1,
               [](const char* name) { return starts_with_one_of(name, kDriverWanted); }))
      started_.enabled.push_back("DRIVER");
  }

  // Switches single functions on or off; the first refusal is noted once. How many took it.
  template <class Wanted>
  uint32_t choose(CUpti_CallbackDomain domain, CUptiResult(CUPTIAPI* set)(CUpti_CallbackId, uint8_t), const char* what,
                  uint8_t value, Wanted wanted) {
    uint32_t taken = 0;
    bool told = false;
    uint32_t nameless = 0;
    for (uint32_t cbid = 1; set != nullptr && cbid < kMostFunctions && nameless < 32; cbid++) {
      const char* name = nullptr;
      if (cupti_.cuptiGetCallbackName(domain, cbid, &name) != CUPTI_SUCCESS || name == nullptr) {
        nameless++;
        continue;
      }
      nameless = 0;
      if (!wanted(name)) continue;
      const CUptiResult result = set(cbid, value);
      if (result == CUPTI_SUCCESS) taken++;
      else if (!told) told = !ok(what, result);
    }
    debug("%s: %u functions set to %d", what, taken, value);
    return taken;
  }

  Cupti& cupti_;
  const Options& options_;
  const ActivityCallbacks& callbacks_;
  Started started_;
};

}  // namespace

Started start_activity(Cupti& cupti, const Options& options, const ActivityCallbacks& callbacks) {
  return Starter(cupti, options, callbacks).run();
}

}  // namespace nvcap
