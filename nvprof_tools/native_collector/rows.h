// The fixed-width rows of the file, as docs/capture-format.md lists them. Widest fields first: no holes inside.
#pragma once

#include <cstdint>

namespace nvcap {

constexpr uint32_t kNone = 0xFFFFFFFFu;

enum Kind : uint16_t {
  kSchema = 1,
  kInfo = 2,
  kStrings = 3,
  kEnd = 4,
  kNotice = 5,
  kKernel = 16,
  kMemcpy,
  kMemset,
  kRuntime,
  kDriver,
  kSynchronization,
  kOverhead,
  kMemory,
  kGraph,
  kContext,
  kDevice,
  kStream,
  kNvtxRange,
  kNvtxMark,
  kThreadName,
  kClock,
  kGpuMetricName,
  kGpuMetric,
  kMemoryPool,
};

// X(type, name) a field; the schema and the struct are made of the same list.
#define NVCAP_KERNEL(X)                                                                                              \
  X(u8, start) X(u8, end) X(u8, graphNodeId) X(u8, localMemoryTotal) X(u4, name) X(u4, deviceId) X(u4, contextId)    \
  X(u4, streamId) X(u4, correlationId) X(u4, graphId) X(i4, gridX) X(i4, gridY) X(i4, gridZ) X(i4, blockX)           \
  X(i4, blockY) X(i4, blockZ) X(i4, staticSharedMemory) X(i4, dynamicSharedMemory) X(u4, sharedMemoryExecuted)       \
  X(u4, localMemoryPerThread) X(u4, registersPerThread) X(u4, launchType)
#define NVCAP_MEMCPY(X)                                                                                              \
  X(u8, start) X(u8, end) X(u8, bytes) X(u8, graphNodeId) X(u4, deviceId) X(u4, contextId) X(u4, streamId)           \
  X(u4, correlationId) X(u4, graphId) X(u4, srcDeviceId) X(u4, srcContextId) X(u4, dstDeviceId) X(u4, dstContextId)  \
  X(u1, copyKind) X(u1, srcKind) X(u1, dstKind) X(u1, flags)
#define NVCAP_MEMSET(X)                                                                                              \
  X(u8, start) X(u8, end) X(u8, bytes) X(u8, graphNodeId) X(u4, value) X(u4, deviceId) X(u4, contextId)              \
  X(u4, streamId) X(u4, correlationId) X(u4, graphId) X(u2, memKind) X(u2, flags)
#define NVCAP_API(X)                                                                                                 \
  X(u8, start) X(u8, end) X(u4, tid) X(u4, correlationId) X(u4, cbid) X(u4, name) X(u4, returnValue)
#define NVCAP_SYNCHRONIZATION(X)                                                                                     \
  X(u8, start) X(u8, end) X(u8, eventSyncId) X(u4, syncType) X(u4, contextId) X(u4, streamId) X(u4, correlationId)   \
  X(u4, eventId) X(u4, returnValue)
#define NVCAP_OVERHEAD(X)                                                                                            \
  X(u8, start) X(u8, end) X(u4, overheadKind) X(u4, objectKind) X(u4, tid) X(u4, deviceId) X(u4, contextId)          \
  X(u4, streamId) X(u4, correlationId)
#define NVCAP_MEMORY(X)                                                                                              \
  X(u8, start) X(u8, address) X(u8, bytes) X(u8, pc) X(u8, poolAddress) X(u8, poolSize) X(u8, poolUtilized)          \
  X(u4, memoryOperationType) X(u4, memKind) X(u4, deviceId) X(u4, contextId) X(u4, streamId) X(u4, correlationId)    \
  X(u4, memoryPoolType) X(u4, name) X(u4, isAsync)
#define NVCAP_GRAPH(X)                                                                                               \
  X(u8, start) X(u8, end) X(u4, deviceId) X(u4, contextId) X(u4, streamId) X(u4, correlationId) X(u4, graphId)
#define NVCAP_CONTEXT(X) X(u4, contextId) X(u4, deviceId) X(u4, computeApiKind) X(u4, nullStreamId) X(u4, parentContextId)
#define NVCAP_DEVICE(X)                                                                                              \
  X(u8, globalMemorySize) X(u8, globalMemoryBandwidth) X(u4, id) X(u4, name) X(u4, computeMajor) X(u4, computeMinor) \
  X(u4, numMultiprocessors) X(u4, maxWarpsPerMultiprocessor) X(u4, coreClockRate) X(u4, l2CacheSize)                 \
  X(u4, numMemcpyEngines)
#define NVCAP_STREAM(X) X(u4, contextId) X(u4, streamId) X(u4, priority) X(u4, flag) X(u4, correlationId)
#define NVCAP_NVTX_RANGE(X)                                                                                          \
  X(u8, start) X(u8, end) X(u8, rangeId) X(u8, payload) X(u4, tid) X(u4, endTid) X(u4, text) X(u4, domain)           \
  X(u4, category) X(u4, categoryName) X(u4, color) X(u4, payloadType) X(u4, type)
#define NVCAP_NVTX_MARK(X)                                                                                           \
  X(u8, start) X(u8, payload) X(u4, tid) X(u4, text) X(u4, domain) X(u4, category) X(u4, categoryName) X(u4, color)  \
  X(u4, payloadType)
#define NVCAP_THREAD_NAME(X) X(u4, tid) X(u4, name) X(u4, source)
#define NVCAP_CLOCK(X) X(u8, cupti) X(u8, realtime) X(u8, monotonic) X(u8, uncertainty)
#define NVCAP_GPU_METRIC_NAME(X) X(u4, metricId) X(u4, deviceId) X(u4, name) X(u4, source) X(u4, unit) X(u4, scale)
#define NVCAP_GPU_METRIC(X) X(u8, start) X(u8, end) X(u8, gpuStart) X(i8, value) X(u4, metricId) X(u4, deviceId)
#define NVCAP_MEMORY_POOL(X)                                                                                         \
  X(u8, start) X(u8, address) X(u8, size) X(u8, utilizedSize) X(u8, releaseThreshold) X(u8, minBytesToKeep)          \
  X(u4, memoryPoolOperationType) X(u4, memoryPoolType) X(u4, deviceId) X(u4, correlationId)

// Y(kind, table name, struct, field list)
#define NVCAP_TABLES(Y)                                                                                              \
  Y(kKernel, kernel, KernelRow, NVCAP_KERNEL)                                                                        \
  Y(kMemcpy, memcpy, MemcpyRow, NVCAP_MEMCPY)                                                                        \
  Y(kMemset, memset, MemsetRow, NVCAP_MEMSET)                                                                        \
  Y(kRuntime, runtime, RuntimeRow, NVCAP_API)                                                                        \
  Y(kDriver, driver, DriverRow, NVCAP_API)                                                                           \
  Y(kSynchronization, synchronization, SynchronizationRow, NVCAP_SYNCHRONIZATION)                                    \
  Y(kOverhead, overhead, OverheadRow, NVCAP_OVERHEAD)                                                                \
  Y(kMemory, memory, MemoryRow, NVCAP_MEMORY)                                                                        \
  Y(kGraph, graph, GraphRow, NVCAP_GRAPH)                                                                            \
  Y(kContext, context, ContextRow, NVCAP_CONTEXT)                                                                    \
  Y(kDevice, device, DeviceRow, NVCAP_DEVICE)                                                                        \
  Y(kStream, stream, StreamRow, NVCAP_STREAM)                                                                        \
  Y(kNvtxRange, nvtx_range, NvtxRangeRow, NVCAP_NVTX_RANGE)                                                          \
  Y(kNvtxMark, nvtx_mark, NvtxMarkRow, NVCAP_NVTX_MARK)                                                              \
  Y(kThreadName, thread_name, ThreadNameRow, NVCAP_THREAD_NAME)                                                      \
  Y(kClock, clock, ClockRow, NVCAP_CLOCK)                                                                            \
  Y(kGpuMetricName, gpu_metric_name, GpuMetricNameRow, NVCAP_GPU_METRIC_NAME)                                        \
  Y(kGpuMetric, gpu_metric, GpuMetricRow, NVCAP_GPU_METRIC)                                                          \
  Y(kMemoryPool, memory_pool, MemoryPoolRow, NVCAP_MEMORY_POOL)

namespace type {
using u1 = uint8_t;
using u2 = uint16_t;
using u4 = uint32_t;
using u8 = uint64_t;
using i4 = int32_t;
using i8 = int64_t;
}  // namespace type

#define NVCAP_FIELD(field_type, field_name) type::field_type field_name;
#define NVCAP_STRUCT(kind, table, row, fields) \
  struct row {                                 \
    fields(NVCAP_FIELD)                        \
  };
NVCAP_TABLES(NVCAP_STRUCT)
#undef NVCAP_STRUCT
#undef NVCAP_FIELD

}  // namespace nvcap
