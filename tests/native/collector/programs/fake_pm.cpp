// The stand-in's PM sampling: 40 samples a fetch, all of them whole; FAKE_PM_REFUSES names a call that says no.
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <time.h>

#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define CALL(name, type) EXPORT CUptiResult name([[maybe_unused]] type* parameters)
#define SIMPLE(name, type) \
  CALL(name, type) { return answer(#name); }

namespace {

constexpr uint64_t kPeriod = 1000000, kBehind = 5000000000;  // the GPU's clock is five seconds behind
constexpr size_t kSamples = 40;
uint64_t first_index, sampled;
bool fetched;

CUptiResult answer(const char* name) {
  const char* refused = std::getenv("FAKE_PM_REFUSES");
  return refused != nullptr && std::strcmp(refused, name) == 0 ? CUPTI_ERROR_INSUFFICIENT_PRIVILEGES : CUPTI_SUCCESS;
}

uint64_t gpu_now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec) - kBehind;
}

}  // namespace

SIMPLE(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params)
CALL(cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params) { return parameters->pChipName = "GX1", answer("cuptiDeviceGetChipName"); }
CALL(cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params) {
  if (std::strcmp(parameters->pChipName, "GX1") != 0) return CUPTI_ERROR_INVALID_CHIP_NAME;
  parameters->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(std::malloc(16));
  return answer("cuptiProfilerHostInitialize");
}
CALL(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params) { return std::free(parameters->pHostObject), CUPTI_SUCCESS; }
SIMPLE(cuptiProfilerHostGetBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params)
namespace {
size_t metrics;
}
CALL(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params) {
  for (size_t at = 0; at < parameters->numMetrics; at++)
    if (std::strstr(parameters->ppMetricNames[at], "dramc__") != nullptr) return CUPTI_ERROR_INVALID_METRIC_NAME;
  metrics = parameters->numMetrics;
  return answer("cuptiProfilerHostConfigAddMetrics");
}
CALL(cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params) { return parameters->configImageSize = 64, CUPTI_SUCCESS; }
CALL(cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params) {
  std::memset(parameters->pConfigImage, 1, parameters->configImageSize);
  return CUPTI_SUCCESS;
}
// Four of them fit into one pass.
CALL(cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params) { return parameters->numOfPasses = metrics > 4 ? 2 : 1, CUPTI_SUCCESS; }
CALL(cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params) {
  for (size_t at = 0; at < parameters->numMetrics; at++) parameters->pMetricValues[at] = 10.0 * static_cast<double>(at) + 0.5;
  return answer("cuptiProfilerHostEvaluateToGpuValues");
}
CALL(cuptiPmSamplingGetCounterAvailability, CUpti_PmSampling_GetCounterAvailability_Params) {
  if (parameters->pCounterAvailabilityImage == nullptr) parameters->counterAvailabilityImageSize = 32;
  else std::memset(parameters->pCounterAvailabilityImage, 1, parameters->counterAvailabilityImageSize);
  return answer("cuptiPmSamplingGetCounterAvailability");
}
CALL(cuptiPmSamplingEnable, CUpti_PmSampling_Enable_Params) {
  parameters->pPmSamplingObject = reinterpret_cast<CUpti_PmSampling_Object*>(&sampled);
  return answer("cuptiPmSamplingEnable");
}
SIMPLE(cuptiPmSamplingDisable, CUpti_PmSampling_Disable_Params)
CALL(cuptiPmSamplingSetConfig, CUpti_PmSampling_SetConfig_Params) {
  if (parameters->samplingInterval != kPeriod || parameters->pConfig == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  return answer("cuptiPmSamplingSetConfig");
}
CALL(cuptiPmSamplingGetCounterDataSize, CUpti_PmSampling_GetCounterDataSize_Params) { return parameters->counterDataSize = 128, CUPTI_SUCCESS; }
CALL(cuptiPmSamplingCounterDataImageInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params) { return fetched = false, CUPTI_SUCCESS; }
SIMPLE(cuptiPmSamplingStart, CUpti_PmSampling_Start_Params)
SIMPLE(cuptiPmSamplingStop, CUpti_PmSampling_Stop_Params)
CALL(cuptiPmSamplingDecodeData, CUpti_PmSampling_DecodeData_Params) {
  if (fetched) return CUPTI_ERROR_OUT_OF_MEMORY;  // the image was not emptied
  fetched = true;
  first_index = gpu_now() / kPeriod - kSamples;
  parameters->overflow = sampled == 0;
  sampled += kSamples;
  parameters->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
  return answer("cuptiPmSamplingDecodeData");
}
CALL(cuptiPmSamplingGetCounterDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params) {
  parameters->numCompletedSamples = parameters->numPopulatedSamples = parameters->numTotalSamples = fetched ? kSamples : 0;
  return CUPTI_SUCCESS;
}
CALL(cuptiPmSamplingCounterDataGetSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params) {
  parameters->startTimestamp = (first_index + parameters->sampleIndex) * kPeriod;
  parameters->endTimestamp = parameters->startTimestamp + kPeriod;
  return CUPTI_SUCCESS;
}
