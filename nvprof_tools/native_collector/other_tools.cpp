#include "other_tools.h"

#include <dlfcn.h>

#include <cstring>

extern "C" char** environ;

namespace nvcap {
namespace {

struct Sign {
  const char* prefix;
  const char* tool;
};
// What the tools set in the programs that they start, and the libraries that they put in.
constexpr Sign kVariables[] = {{"NSYS_PROFILING_SESSION_ID=", "Nsight Systems"},
                               {"QUADD_INJECTION_PROXY=", "Nsight Systems"},
                               {"NV_COMPUTE_PROFILER_PERFWORKS_DIR=", "Nsight Compute"},
                               {"NV_NSIGHT_INJECTION_TRANSPORT_TYPE=", "Nsight Compute"}};
constexpr Sign kLibraries[] = {{"libToolsInjection64.so", "Nsight Systems"},
                               {"libcuda-injection.so", "Nsight Compute"},
                               {"libsanitizer-collection.so", "Compute Sanitizer"}};

}  // namespace

std::string other_tool() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; variable++)
    for (const Sign& sign : kVariables)
      if (std::strncmp(*variable, sign.prefix, std::strlen(sign.prefix)) == 0) return sign.tool;
  for (const Sign& sign : kLibraries)
    if (void* loaded = dlopen(sign.prefix, RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(loaded);
      return sign.tool;
    }
  return "";
}

}  // namespace nvcap
