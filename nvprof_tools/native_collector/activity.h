// Starting CUPTI: what is asked for, what it refuses.
#pragma once

#include <string>
#include <vector>

#include "cupti_api.h"
#include "options.h"

namespace nvcap {

struct Refused {
  std::string what;
  int code;
  std::string why;
};

struct Started {
  bool running = false;
  bool own_clock = false;              // CUPTI takes its times from CLOCK_MONOTONIC
  std::string slug, message;           // of the notice, where it does not run
  std::vector<std::string> enabled;    // activity kinds
  std::vector<Refused> refused;
};

struct ActivityCallbacks {
  CUpti_BuffersCallbackRequestFunc requested;
  CUpti_BuffersCallbackCompleteFunc completed;
  CUpti_CallbackFunc resource;
};

// Called within the driver's own start, before there is any context. Never throws, leaves CUPTI alone where refused.
Started start_activity(Cupti& cupti, const Options& options, const ActivityCallbacks& callbacks);

}  // namespace nvcap
