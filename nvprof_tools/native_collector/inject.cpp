// What the driver and NVTX look for in the library.
#include <exception>

#include "nvtx_calls.h"
#include "options.h"
#include "session.h"

#define NVCAP_EXPORT extern "C" __attribute__((visibility("default")))

// CUDA_INJECTION64_PATH: the driver calls this once, within its own start. It is not told of failures: the program runs on.
NVCAP_EXPORT int InitializeInjection() {
  try {
    nvcap::ensure_cuda();
  } catch (const std::exception& error) {
    nvcap::debug("the capture could not be started: %s", error.what());
  }
  return 1;
}

// NVTX_INJECTION64_PATH: each shared object with NVTX calls this at its first call. 0: its calls stay without effect.
NVCAP_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  try {
    return nvcap::ensure() != nullptr && nvcap::nvtx::attach(get_table) ? 1 : 0;
  } catch (const std::exception& error) {
    nvcap::debug("NVTX could not be attached: %s", error.what());
    return 0;
  }
}
