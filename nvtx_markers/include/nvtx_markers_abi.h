/* C ABI of libnvtx_markers_preload.so, for Rust and others. C and C++ programs use nvtx_markers.h, which needs no library.
 *
 * Every function may be called at any time from any thread; without a tool each costs about a nanosecond and does nothing.
 * Category numbers are those of nvtx_markers.conventions.CATEGORY_IDS (mutex_wait 1, mutex_held 2, barrier_wait 3,
 * driver_lock 4, device_sync 5, pool_trim 6, mem_info 7, alloc 8, host_register 9, host_unregister 10, upload 11,
 * kernels 12, free 13, launch 14, synthesis 15).
 */
#ifndef NVTX_MARKERS_ABI_H
#define NVTX_MARKERS_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVTX_MARKERS_ABI_VERSION 1u

uint32_t nvtx_markers_abi_version(void);
/* Looks for a tool. Done before main where the library is preloaded or linked; call it once after dlopen. 1: a tool listens. */
int32_t nvtx_markers_abi_start(void);
int32_t nvtx_markers_abi_active(void);

/* Ranges that nest on one thread. The payload is a lock's address for mutex_wait and driver_lock, else 0. */
void nvtx_markers_abi_push(uint32_t category, uint64_t payload);
void nvtx_markers_abi_pop(void);

/* Ranges that may overlap and end on another thread. 0 is "no range" and may be ended. */
uint64_t nvtx_markers_abi_range_start(uint32_t category, uint64_t payload);
void nvtx_markers_abi_range_end(uint64_t range);

/* One partition's stay on a GPU worker. A negative partition or worker is "not known". The text need not end in NUL. */
uint64_t nvtx_markers_abi_section_start(const char *job, size_t job_length, int64_t partition, int64_t worker);

void nvtx_markers_abi_mark(const char *text, size_t length);
/* A mark for a line `TIMELINE,...` (without newline) that the program prints where the tap cannot see it. */
void nvtx_markers_abi_timeline(const char *line, size_t length);
/* Around a write that shall not be marked by the tap, on this thread: 1 before, 0 after. */
void nvtx_markers_abi_tap_pause(int32_t pause);

#ifdef __cplusplus
}
#endif
#endif
