#include "pm_device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "clocks.h"
#include "options.h"

#if __has_include(<cupti_pmsampling.h>) && __has_include(<cupti_profiler_host.h>)
#define NVCAP_PM 1
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#else
#define NVCAP_PM 0
#endif

namespace nvcap {

constexpr uint32_t kScale = 1000;

#if NVCAP_PM

namespace pm {

#define NVCAP_PM_CALLS(X)                                                                                     \
  X(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params)                                                \
  X(cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params)                                                  \
  X(cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params)                                       \
  X(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params)                                   \
  X(cuptiProfilerHostGetBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params)                               \
  X(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params)                           \
  X(cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params)                       \
  X(cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params)                               \
  X(cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params)                               \
  X(cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params)                     \
  X(cuptiPmSamplingGetCounterAvailability, CUpti_PmSampling_GetCounterAvailability_Params)                    \
  X(cuptiPmSamplingEnable, CUpti_PmSampling_Enable_Params)                                                    \
  X(cuptiPmSamplingDisable, CUpti_PmSampling_Disable_Params)                                                  \
  X(cuptiPmSamplingSetConfig, CUpti_PmSampling_SetConfig_Params)                                              \
  X(cuptiPmSamplingGetCounterDataSize, CUpti_PmSampling_GetCounterDataSize_Params)                            \
  X(cuptiPmSamplingCounterDataImageInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params)           \
  X(cuptiPmSamplingStart, CUpti_PmSampling_Start_Params)                                                      \
  X(cuptiPmSamplingStop, CUpti_PmSampling_Stop_Params)                                                        \
  X(cuptiPmSamplingDecodeData, CUpti_PmSampling_DecodeData_Params)                                            \
  X(cuptiPmSamplingGetCounterDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params)                            \
  X(cuptiPmSamplingCounterDataGetSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params)

struct Calls {
#define NVCAP_PM_POINTER(name, parameters) CUptiResult(CUPTIAPI* name)(parameters*) = nullptr;
  NVCAP_PM_CALLS(NVCAP_PM_POINTER)
#undef NVCAP_PM_POINTER
  // The name of one that the library lacks; null: all are there.
  const char* open(void* library) {
    const char* missing = nullptr;
#define NVCAP_PM_RESOLVE(name, parameters)                            \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name));     \
  if (name == nullptr) missing = #name;
    NVCAP_PM_CALLS(NVCAP_PM_RESOLVE)
#undef NVCAP_PM_RESOLVE
    return missing;
  }
};

// Parameters of a call, their size filled in, all else zero.
#define NVCAP_PARAMETERS(type, variable) \
  type variable{};                       \
  variable.structSize = type##_STRUCT_SIZE

struct Metric {
  const char* name;                // as traces of other tools name it
  std::vector<const char*> tried;  // CUPTI's names, in order of preference
};

// In order of worth: where one pass does not hold them all, the last goes first.
const std::vector<Metric>& wanted() {
  static const std::vector<Metric>* const all = new std::vector<Metric>{
      {"SMs Active [Throughput %]", {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed"}},
      {"SM Issue [Throughput %]",
       {"sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed", "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed.avg.pct_of_peak_sustained_elapsed"}},
      {"DRAM Read Bandwidth [Throughput %]",
       {"dramc__read_throughput.avg.pct_of_peak_sustained_elapsed", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__bytes_read.sum.pct_of_peak_sustained_elapsed"}},
      {"DRAM Write Bandwidth [Throughput %]",
       {"dramc__write_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__write_throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes_write.sum.pct_of_peak_sustained_elapsed"}},
      {"PCIe RX Throughput [Throughput %]",
       {"pcie__read_bytes.avg.pct_of_peak_sustained_elapsed", "pcie__rx_requests.avg.pct_of_peak_sustained_elapsed"}},
      {"PCIe TX Throughput [Throughput %]",
       {"pcie__write_bytes.avg.pct_of_peak_sustained_elapsed", "pcie__tx_requests.avg.pct_of_peak_sustained_elapsed"}},
  };
  return *all;
}

}  // namespace pm
using namespace pm;

struct PmDevice::Parts {
  Calls calls;
  std::string chip;
  std::vector<uint8_t> availability, config, image;
  CUpti_Profiler_Host_Object* host = nullptr;
  CUpti_PmSampling_Object* sampler = nullptr;
  bool started = false;
  std::vector<const Metric*> metrics;
  std::vector<const char*> sources;
};

bool PmDevice::ok(const char* call, CUptiResult result) {
  if (result == CUPTI_SUCCESS) return true;
  why_ = std::string(call) + ": " + cupti_.words(result);
  return false;
}

// Calls, says the answer when debugging, remembers a refusal.
#define NVCAP_CALL(name, parameters) ok(#name, cupti_.said(#name, parts_->calls.name(&parameters)))

namespace {

// Which counters of use the chip has: asked for only when debugging, where a name was not known.
void list_metrics(const Cupti& cupti, const Calls& calls, CUpti_Profiler_Host_Object* host) {
  for (const CUpti_MetricType type : {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
    NVCAP_PARAMETERS(CUpti_Profiler_Host_GetBaseMetrics_Params, base);
    base.pHostObject = host;
    base.metricType = type;
    if (cupti.said("cuptiProfilerHostGetBaseMetrics", calls.cuptiProfilerHostGetBaseMetrics(&base)) != CUPTI_SUCCESS) continue;
    for (size_t at = 0; at < base.numMetrics; at++) {
      const char* name = base.ppMetricNames[at];
      for (const char* part : {"sm__cycles_active", "sm__inst_", "dram", "pcie"})
        if (name != nullptr && std::strncmp(name, part, std::strlen(part)) == 0) debug("metric %d %s", static_cast<int>(type), name);
    }
  }
}

}  // namespace

PmDevice::PmDevice(const Cupti& cupti, uint32_t number, uint32_t hz)
    : cupti_(cupti), number_(number), hz_(hz), parts_(std::make_unique<Parts>()) {}

// CUPTI looks for these by name only; they lie beside it, where a path of the system may not lead.
static void open_helpers(const void* in_cupti) {
  Dl_info where{};
  if (dladdr(in_cupti, &where) == 0 || where.dli_fname == nullptr) return;
  const std::string path = where.dli_fname;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"})
    debug("%s%s: %s", folder.c_str(), name, dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr ? "opened" : "not there");
}

bool PmDevice::start() {
  Parts& parts = *parts_;
  open_helpers(reinterpret_cast<const void*>(cupti_.cuptiGetVersion));
  if (const char* missing = parts.calls.open(cupti_.library)) {
    why_ = std::string("this libcupti has no ") + missing;
    return false;
  }
  NVCAP_PARAMETERS(CUpti_Profiler_Initialize_Params, initialize);
  if (!NVCAP_CALL(cuptiProfilerInitialize, initialize)) return false;
  NVCAP_PARAMETERS(CUpti_Device_GetChipName_Params, chip);
  chip.deviceIndex = number_;
  if (!NVCAP_CALL(cuptiDeviceGetChipName, chip) || chip.pChipName == nullptr) return false;
  parts.chip = chip.pChipName;
  debug("chip %s", parts.chip.c_str());

  NVCAP_PARAMETERS(CUpti_PmSampling_GetCounterAvailability_Params, availability);
  availability.deviceIndex = number_;
  if (!NVCAP_CALL(cuptiPmSamplingGetCounterAvailability, availability)) return false;
  parts.availability.resize(availability.counterAvailabilityImageSize);
  availability.pCounterAvailabilityImage = parts.availability.data();
  if (!NVCAP_CALL(cuptiPmSamplingGetCounterAvailability, availability)) return false;

  const auto open_host = [&] {
    NVCAP_PARAMETERS(CUpti_Profiler_Host_Initialize_Params, host);
    host.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
    host.pChipName = parts.chip.c_str();
    host.pCounterAvailabilityImage = parts.availability.data();
    if (!NVCAP_CALL(cuptiProfilerHostInitialize, host)) return false;
    parts.host = host.pHostObject;
    return true;
  };
  const auto close_host = [&] {
    NVCAP_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params, host);
    host.pHostObject = parts.host;
    if (parts.host != nullptr) parts.calls.cuptiProfilerHostDeinitialize(&host);
    parts.host = nullptr;
  };
  // A host object for these metrics, and its image. 0: they cannot be had; else the passes that they need.
  const auto passes_for = [&](const std::vector<const char*>& names) -> size_t {
    close_host();
    if (!open_host()) return 0;
    std::vector<const char*> list = names;
    NVCAP_PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
    add.pHostObject = parts.host;
    add.ppMetricNames = list.data();
    add.numMetrics = list.size();
    if (!NVCAP_CALL(cuptiProfilerHostConfigAddMetrics, add)) return 0;
    NVCAP_PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = parts.host;
    if (!NVCAP_CALL(cuptiProfilerHostGetConfigImageSize, size)) return 0;
    parts.config.assign(size.configImageSize, 0);
    NVCAP_PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params, image);
    image.pHostObject = parts.host;
    image.configImageSize = parts.config.size();
    image.pConfigImage = parts.config.data();
    if (!NVCAP_CALL(cuptiProfilerHostGetConfigImage, image)) return 0;
    NVCAP_PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes);
    passes.configImageSize = parts.config.size();
    passes.pConfigImage = parts.config.data();
    if (!NVCAP_CALL(cuptiProfilerHostGetNumOfPasses, passes)) return 0;
    debug("%zu metrics need %zu passes", list.size(), passes.numOfPasses);
    return passes.numOfPasses;
  };

  // One metric after another joins as long as all fit into one pass.
  std::string left_out;
  bool listed = !debugging();
  for (const Metric& metric : wanted()) {
    bool in = false;
    for (const char* source : metric.tried) {
      std::vector<const char*> names = parts.sources;
      names.push_back(source);
      const size_t passes = passes_for(names);
      if (passes == 0 && !listed && parts.host != nullptr) {
        list_metrics(cupti_, parts.calls, parts.host);
        listed = true;
      }
      in = passes == 1;
      if (in) {
        parts.sources = names;
        parts.metrics.push_back(&metric);
        break;
      }
    }
    if (!in) left_out += std::string(left_out.empty() ? "" : ", ") + metric.name;
  }
  if (parts.sources.empty() || passes_for(parts.sources) != 1) {
    if (why_.empty()) why_ = "no metric fits into one pass";
    return false;
  }
  why_ = left_out.empty() ? "" : "left out (unknown to this chip, or more than one pass): " + left_out;

  NVCAP_PARAMETERS(CUpti_PmSampling_Enable_Params, enable);
  enable.deviceIndex = number_;
  if (!NVCAP_CALL(cuptiPmSamplingEnable, enable)) return false;
  parts.sampler = enable.pPmSamplingObject;
  NVCAP_PARAMETERS(CUpti_PmSampling_SetConfig_Params, config);
  config.pPmSamplingObject = parts.sampler;
  config.configSize = parts.config.size();
  config.pConfig = parts.config.data();
  config.hardwareBufferSize = size_t{64} << 20;
  config.samplingInterval = 1'000'000'000 / hz_;
  config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  if (!NVCAP_CALL(cuptiPmSamplingSetConfig, config)) return false;
  NVCAP_PARAMETERS(CUpti_PmSampling_GetCounterDataSize_Params, size);
  size.pPmSamplingObject = parts.sampler;
  size.pMetricNames = parts.sources.data();
  size.numMetrics = parts.sources.size();
  size.maxSamples = std::max(1000u, hz_ / 2);
  if (!NVCAP_CALL(cuptiPmSamplingGetCounterDataSize, size)) return false;
  parts.image.resize(size.counterDataSize);
  NVCAP_PARAMETERS(CUpti_PmSampling_CounterDataImage_Initialize_Params, image);
  image.pPmSamplingObject = parts.sampler;
  image.counterDataSize = parts.image.size();
  image.pCounterData = parts.image.data();
  if (!NVCAP_CALL(cuptiPmSamplingCounterDataImageInitialize, image)) return false;
  NVCAP_PARAMETERS(CUpti_PmSampling_Start_Params, start);
  start.pPmSamplingObject = parts.sampler;
  parts.started = NVCAP_CALL(cuptiPmSamplingStart, start);
  return parts.started;
}

bool PmDevice::collect(bool last) {
  Parts& parts = *parts_;
  if (last && parts.started) {
    NVCAP_PARAMETERS(CUpti_PmSampling_Stop_Params, stop);
    stop.pPmSamplingObject = parts.sampler;
    parts.started = false;
    if (!NVCAP_CALL(cuptiPmSamplingStop, stop)) return false;
  }
  for (int round = 0; round < 64; round++) {
    NVCAP_PARAMETERS(CUpti_PmSampling_DecodeData_Params, decode);
    decode.pPmSamplingObject = parts.sampler;
    decode.pCounterDataImage = parts.image.data();
    decode.counterDataImageSize = parts.image.size();
    const uint64_t before = monotonic_ns();
    if (!ok("cuptiPmSamplingDecodeData", parts.calls.cuptiPmSamplingDecodeData(&decode))) return false;
    overflows_ += decode.overflow != 0;
    NVCAP_PARAMETERS(CUpti_PmSampling_GetCounterDataInfo_Params, info);
    info.pCounterDataImage = parts.image.data();
    info.counterDataImageSize = parts.image.size();
    if (!ok("cuptiPmSamplingGetCounterDataInfo", parts.calls.cuptiPmSamplingGetCounterDataInfo(&info))) return false;
    uint64_t latest = 0;
    std::vector<double> values(parts.sources.size());
    for (size_t index = 0; index < info.numCompletedSamples; index++) {
      NVCAP_PARAMETERS(CUpti_PmSampling_CounterData_GetSampleInfo_Params, sample);
      sample.pPmSamplingObject = parts.sampler;
      sample.pCounterDataImage = parts.image.data();
      sample.counterDataImageSize = parts.image.size();
      sample.sampleIndex = index;
      if (!ok("cuptiPmSamplingCounterDataGetSampleInfo", parts.calls.cuptiPmSamplingCounterDataGetSampleInfo(&sample))) return false;
      NVCAP_PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate);
      evaluate.pHostObject = parts.host;
      evaluate.pCounterDataImage = parts.image.data();
      evaluate.counterDataImageSize = parts.image.size();
      evaluate.rangeIndex = index;
      evaluate.ppMetricNames = parts.sources.data();
      evaluate.numMetrics = parts.sources.size();
      evaluate.pMetricValues = values.data();
      if (!ok("cuptiProfilerHostEvaluateToGpuValues", parts.calls.cuptiProfilerHostEvaluateToGpuValues(&evaluate))) return false;
      latest = std::max<uint64_t>(latest, sample.endTimestamp);
      for (size_t metric = 0; metric < values.size(); metric++)
        if (std::isfinite(values[metric]) && std::fabs(values[metric]) < 1e12)
          samples_.push_back({sample.startTimestamp, sample.endTimestamp, std::llround(values[metric] * kScale),
                              static_cast<uint32_t>(metric)});
    }
    if (latest != 0) {
      if (debugging() && collected_ == 0)
        debug("first samples: %zu, gpu %llu, monotonic %llu, realtime %llu", static_cast<size_t>(info.numCompletedSamples),
              static_cast<unsigned long long>(latest), static_cast<unsigned long long>(before),
              static_cast<unsigned long long>(now_ns(CLOCK_REALTIME)));
      collected_++;
      // A sample is over before it is fetched: no true offset is greater than this.
      if (round == 0 && !last) offset_ = std::min(offset_, static_cast<int64_t>(before - latest));
    }
    NVCAP_PARAMETERS(CUpti_PmSampling_CounterDataImage_Initialize_Params, image);
    image.pPmSamplingObject = parts.sampler;
    image.counterDataSize = parts.image.size();
    image.pCounterData = parts.image.data();
    if (!ok("cuptiPmSamplingCounterDataImageInitialize", parts.calls.cuptiPmSamplingCounterDataImageInitialize(&image))) return false;
    if (decode.decodeStopReason != CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL) break;
  }
  return true;
}

PmDevice::~PmDevice() {
  Parts& parts = *parts_;
  if (parts.sampler != nullptr) {
    NVCAP_PARAMETERS(CUpti_PmSampling_Stop_Params, stop);
    stop.pPmSamplingObject = parts.sampler;
    if (parts.started) cupti_.said("cuptiPmSamplingStop", parts.calls.cuptiPmSamplingStop(&stop));
    NVCAP_PARAMETERS(CUpti_PmSampling_Disable_Params, disable);
    disable.pPmSamplingObject = parts.sampler;
    cupti_.said("cuptiPmSamplingDisable", parts.calls.cuptiPmSamplingDisable(&disable));
  }
  if (parts.host != nullptr) {
    NVCAP_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params, host);
    host.pHostObject = parts.host;
    parts.calls.cuptiProfilerHostDeinitialize(&host);
  }
}

void PmDevice::describe(Sink& sink) {
  for (size_t metric = 0; metric < parts_->metrics.size(); metric++)
    sink.gpu_metric_name.rows.push_back({static_cast<uint32_t>(metric), number_, sink.strings.id(parts_->metrics[metric]->name),
                                         sink.strings.id(parts_->sources[metric]), sink.strings.id("%"), kScale});
}

#else  // headers without PM sampling

struct PmDevice::Parts {};
PmDevice::PmDevice(const Cupti& cupti, uint32_t number, uint32_t hz) : cupti_(cupti), number_(number), hz_(hz) {}
PmDevice::~PmDevice() = default;
bool PmDevice::start() {
  why_ = "built with headers of CUPTI " + std::to_string(CUPTI_API_VERSION) + ", which know no PM sampling";
  return false;
}
bool PmDevice::collect(bool) { return hz_ == 0 && cupti_.library == nullptr; }
void PmDevice::describe(Sink&) {}

#endif

void PmDevice::hand_over(Sink& sink, bool last) {
  constexpr uint32_t kEnough = 10;
  if (samples_.empty() || (collected_ < kEnough && !last)) return;
  const uint64_t offset = offset_ == INT64_MAX ? 0 : static_cast<uint64_t>(offset_);
  for (const Sample& sample : samples_)
    sink.gpu_metric.rows.push_back(
        {sample.start + offset, sample.end + offset, sample.start, sample.value, sample.metric, number_});
  samples_.clear();
}

uint64_t PmDevice::take_overflows() {
  const uint64_t count = overflows_;
  overflows_ = 0;
  return count;
}

}  // namespace nvcap
