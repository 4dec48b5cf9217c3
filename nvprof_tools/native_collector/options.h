// What the environment asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nvcap {

enum class DriverCalls { kAuto, kAll, kOff };

struct Options {
  std::string folder;      // where files go; empty: do nothing at all
  std::string cupti;       // a libcupti to open; empty: find one
  bool graph_level = false;
  bool memory = false;
  DriverCalls driver = DriverCalls::kAuto;
  uint32_t pm_hz = 0;
  size_t buffer_bytes = size_t{4} << 20;
  size_t pool_bytes = size_t{256} << 20;
};

Options read_options();
const char* name_of(DriverCalls rows);

// Whether NVPROF_COLLECTOR_DEBUG asks for words on standard error.
bool debugging();
// One line on standard error, only when debugging.
void debug(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace nvcap
