// What a scenario asks of the stand-in for CUPTI; found by dlsym in the same library that the collector opens.
#pragma once

#include <cstddef>
#include <cstdint>

struct FakeCupti {
  // Puts a record into the calling thread's buffer, as CUPTI does. False: no buffer was given, it is dropped.
  bool (*emit)(const void* record, size_t bytes);
  uint64_t (*now)();
  uint64_t (*dropped)();
  // How often the given driver function was switched to `value`.
  uint64_t (*driver_switched)(uint32_t cbid, uint8_t value);
  // A context is made on a device.
  void (*context_created)(uint32_t device);
};
