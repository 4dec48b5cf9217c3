// CUPTI as a table of functions: opened at run time, so that a program without CUDA pays nothing and a stand-in may serve.
#pragma once

#include <cupti.h>

#include <string>

namespace nvcap {

// Functions without which there is no capture.
#define NVCAP_CUPTI_NEEDED(X)                                                                                   \
  X(cuptiGetVersion, (uint32_t*))                                                                               \
  X(cuptiGetTimestamp, (uint64_t*))                                                                             \
  X(cuptiSubscribe, (CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*))                                       \
  X(cuptiUnsubscribe, (CUpti_SubscriberHandle))                                                                 \
  X(cuptiEnableCallback, (uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId))            \
  X(cuptiGetCallbackName, (CUpti_CallbackDomain, uint32_t, const char**))                                       \
  X(cuptiActivityRegisterCallbacks, (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc))      \
  X(cuptiActivityEnable, (CUpti_ActivityKind))                                                                  \
  X(cuptiActivityDisable, (CUpti_ActivityKind))                                                                 \
  X(cuptiActivityFlushAll, (uint32_t))                                                                          \
  X(cuptiActivityGetNextRecord, (uint8_t*, size_t, CUpti_Activity**))                                           \
  X(cuptiActivityGetNumDroppedRecords, (CUcontext, uint32_t, size_t*))
// Functions of newer versions, or without which we do with less.
#define NVCAP_CUPTI_OPTIONAL(X)                                               \
  X(cuptiGetResultString, (CUptiResult, const char**))                        \
  X(cuptiActivitySetAttribute, (CUpti_ActivityAttribute, size_t*, void*))     \
  X(cuptiSetThreadIdType, (CUpti_ActivityThreadIdType))                       \
  X(cuptiActivityRegisterTimestampCallback, (uint64_t(CUPTIAPI*)()))          \
  X(cuptiActivityEnableDriverApi, (CUpti_CallbackId, uint8_t))                \
  X(cuptiActivityEnableRuntimeApi, (CUpti_CallbackId, uint8_t))               \
  X(cuptiActivityEnableAllSyncRecords, (uint8_t))                             \
  X(cuptiGetDeviceId, (CUcontext, uint32_t*))                                 \
  X(cuptiSubscribe_v2, (CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, void*))

struct Cupti {
#define NVCAP_POINTER(name, arguments) CUptiResult(CUPTIAPI* name) arguments = nullptr;
  NVCAP_CUPTI_NEEDED(NVCAP_POINTER)
  NVCAP_CUPTI_OPTIONAL(NVCAP_POINTER)
#undef NVCAP_POINTER
  void* library = nullptr;
  uint32_t version = 0;

  // Opens the named library, or finds one: the program's own copy first. Empty: it worked; else why not.
  std::string open(const std::string& named);
  // "CUPTI_ERROR_...".
  std::string words(CUptiResult result) const;
  // Says what a call answered when debugging; hands the answer on.
  CUptiResult said(const char* call, CUptiResult result) const;
};

// cuDriverGetVersion of the driver that is loaded; 0: not known.
int driver_version();

}  // namespace nvcap
