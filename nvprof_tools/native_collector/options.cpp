#include "options.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nvcap {
namespace {

std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

uint64_t number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most) {
  const std::string value = text(name);
  char* end = nullptr;
  const double asked = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(asked >= 0) || asked > 1e18) return otherwise;
  const uint64_t whole = static_cast<uint64_t>(asked);
  if (whole == 0) return least > 0 && otherwise > 0 ? otherwise : 0;
  return whole < least ? least : whole > most ? most : whole;
}

}  // namespace

Options read_options() {
  Options options;
  options.folder = text("NVPROF_COLLECTOR_OUT");
  options.cupti = text("NVPROF_COLLECTOR_CUPTI");
  options.graph_level = text("NVPROF_COLLECTOR_GRAPH") == "graph";
  options.memory = text("NVPROF_COLLECTOR_MEMORY") == "1";
  const std::string driver = text("NVPROF_COLLECTOR_DRIVER");
  options.driver = driver == "all" ? DriverCalls::kAll : driver == "none" ? DriverCalls::kOff : DriverCalls::kAuto;
  options.pm_hz = static_cast<uint32_t>(number("NVPROF_COLLECTOR_PM", 0, 10, 100000));
  if (options.pm_hz == 0) options.pm_hz = static_cast<uint32_t>(number("NVPROF_COLLECTOR_PM_HZ", 0, 10, 100000));
  options.buffer_bytes = number("NVPROF_COLLECTOR_BUFFER", options.buffer_bytes, 4096, size_t{64} << 20);
  options.buffer_bytes = (options.buffer_bytes + 4095) & ~size_t{4095};
  options.pool_bytes = number("NVPROF_COLLECTOR_POOL", options.pool_bytes, options.buffer_bytes, size_t{16} << 30);
  return options;
}

const char* name_of(DriverCalls rows) {
  return rows == DriverCalls::kAll ? "all" : rows == DriverCalls::kOff ? "none" : "auto";
}

bool debugging() {
  static const bool on = text("NVPROF_COLLECTOR_DEBUG") == "1";
  return on;
}

void debug(const char* format, ...) {
  if (!debugging()) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  std::fprintf(stderr, "nvcap: %s\n", line);
}

}  // namespace nvcap
