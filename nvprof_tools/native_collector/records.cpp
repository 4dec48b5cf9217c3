#include "records.h"

namespace nvcap {
namespace {

// Structs that headers of CUPTI 12 and 13 both have: later ones only add fields at the end, so that these fit any record
// that a library of either generation hands out.
using Kernel = CUpti_ActivityKernel9;
using Copy = CUpti_ActivityMemcpy5;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
using Fill = CUpti_ActivityMemset4;
using Sync = CUpti_ActivitySynchronization;
using Overhead = CUpti_ActivityOverhead;
using Memory = CUpti_ActivityMemory3;
using MemoryPool = CUpti_ActivityMemoryPool2;
using Graph = CUpti_ActivityGraphTrace;
using Context = CUpti_ActivityContext;
using Device = CUpti_ActivityDevice4;

template <class Struct>
const Struct& as(const CUpti_Activity* record) {
  return *reinterpret_cast<const Struct*>(record);
}

}  // namespace

void Records::take(uint8_t* buffer, size_t bytes) {
  CUpti_Activity* record = nullptr;
  for (uint32_t count = 1; bytes > 0; count++) {
    if (cupti_.cuptiActivityGetNextRecord(buffer, bytes, &record) != CUPTI_SUCCESS || record == nullptr) break;
    one(record);
    if (count % 1024 == 0) sink_.flush_if_full();
  }
  driver_calls_.settle(sink_.driver.rows);
}

void Records::sweep(bool all) { driver_calls_.sweep(sink_.driver.rows, all); }

void Records::one(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return kernel(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return copy(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return peer_copy(record);
    case CUPTI_ACTIVITY_KIND_MEMSET: return fill(record);
    case CUPTI_ACTIVITY_KIND_RUNTIME: return api(record, true);
    case CUPTI_ACTIVITY_KIND_DRIVER: return api(record, false);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return synchronization(record);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return overhead(record);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return memory(record);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return memory_pool(record);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return graph(record);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return context(record);
    case CUPTI_ACTIVITY_KIND_DEVICE: return device(record);
    case CUPTI_ACTIVITY_KIND_STREAM: return stream(record);
    default: unknown++;
  }
}

void Records::kernel(const CUpti_Activity* record) {
  const Kernel& from = as<Kernel>(record);
  KernelRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.graphNodeId = from.graphNodeId;
  row.localMemoryTotal = from.localMemoryTotal_v2;
  row.name = sink_.strings.id_of_pointer(from.name);
  row.deviceId = from.deviceId;
  row.contextId = from.contextId;
  row.streamId = from.streamId;
  row.correlationId = from.correlationId;
  row.graphId = from.graphId;
  row.gridX = from.gridX;
  row.gridY = from.gridY;
  row.gridZ = from.gridZ;
  row.blockX = from.blockX;
  row.blockY = from.blockY;
  row.blockZ = from.blockZ;
  row.staticSharedMemory = from.staticSharedMemory;
  row.dynamicSharedMemory = from.dynamicSharedMemory;
  row.sharedMemoryExecuted = from.sharedMemoryExecuted;
  row.localMemoryPerThread = from.localMemoryPerThread;
  row.registersPerThread = from.registersPerThread;
  row.launchType = from.launchType;
  sink_.kernel.rows.push_back(row);
}

void Records::copy(const CUpti_Activity* record) {
  const Copy& from = as<Copy>(record);
  MemcpyRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.bytes = from.bytes;
  row.graphNodeId = from.graphNodeId;
  row.deviceId = from.deviceId;
  row.contextId = from.contextId;
  row.streamId = from.streamId;
  row.correlationId = from.correlationId;
  row.graphId = from.graphId;
  row.srcDeviceId = row.srcContextId = row.dstDeviceId = row.dstContextId = kNone;
  row.copyKind = from.copyKind;
  row.srcKind = from.srcKind;
  row.dstKind = from.dstKind;
  row.flags = from.flags;
  sink_.memcpy.rows.push_back(row);
}

void Records::peer_copy(const CUpti_Activity* record) {
  const PeerCopy& from = as<PeerCopy>(record);
  MemcpyRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.bytes = from.bytes;
  row.graphNodeId = from.graphNodeId;
  row.deviceId = from.deviceId;
  row.contextId = from.contextId;
  row.streamId = from.streamId;
  row.correlationId = from.correlationId;
  row.graphId = from.graphId;
  row.srcDeviceId = from.srcDeviceId;
  row.srcContextId = from.srcContextId;
  row.dstDeviceId = from.dstDeviceId;
  row.dstContextId = from.dstContextId;
  row.copyKind = from.copyKind;
  row.srcKind = from.srcKind;
  row.dstKind = from.dstKind;
  row.flags = from.flags;
  sink_.memcpy.rows.push_back(row);
}

void Records::fill(const CUpti_Activity* record) {
  const Fill& from = as<Fill>(record);
  MemsetRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.bytes = from.bytes;
  row.graphNodeId = from.graphNodeId;
  row.value = from.value;
  row.deviceId = from.deviceId;
  row.contextId = from.contextId;
  row.streamId = from.streamId;
  row.correlationId = from.correlationId;
  row.graphId = from.graphId;
  row.memKind = from.memoryKind;
  row.flags = from.flags;
  sink_.memset.rows.push_back(row);
}

uint32_t Records::function_name(CUpti_CallbackDomain domain, uint32_t cbid) {
  std::vector<uint32_t>& names = function_names_[domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 1 : 0];
  if (cbid >= 65536) return kNone;
  if (cbid >= names.size()) names.resize(cbid + 1, kNone);
  if (names[cbid] == kNone) {
    const char* text = nullptr;
    if (cupti_.cuptiGetCallbackName(domain, cbid, &text) != CUPTI_SUCCESS || text == nullptr) return kNone;
    names[cbid] = sink_.strings.id(text);
  }
  return names[cbid];
}

void Records::api(const CUpti_Activity* record, bool of_runtime) {
  const CUpti_ActivityAPI& from = as<CUpti_ActivityAPI>(record);
  RuntimeRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.tid = from.threadId;
  row.correlationId = from.correlationId;
  row.cbid = from.cbid;
  row.name = function_name(of_runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, from.cbid);
  row.returnValue = from.returnValue;
  names_.seen(sink_, row.tid);
  if (of_runtime) {
    sink_.runtime.rows.push_back(row);
    if (options_.driver == DriverCalls::kAuto) driver_calls_.runtime(row);
    return;
  }
  const DriverRow own{row.start, row.end, row.tid, row.correlationId, row.cbid, row.name, row.returnValue};
  if (options_.driver == DriverCalls::kAuto) driver_calls_.driver(own);
  else sink_.driver.rows.push_back(own);
}

void Records::synchronization(const CUpti_Activity* record) {
  const Sync& from = as<Sync>(record);
  SynchronizationRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.syncType = static_cast<uint32_t>(from.type);
  row.contextId = from.contextId;
  row.streamId = from.streamId;
  row.correlationId = from.correlationId;
  row.eventId = from.cudaEventId;
  row.returnValue = kNone;
#if CUPTI_API_VERSION >= 130000
  if (cupti_.version >= 130000) {  // an older library's record ends before these
    const CUpti_ActivitySynchronization2& newer = as<CUpti_ActivitySynchronization2>(record);
    row.eventSyncId = newer.cudaEventSyncId;
    row.returnValue = newer.returnValue;
  }
#endif
  sink_.synchronization.rows.push_back(row);
}

void Records::overhead(const CUpti_Activity* record) {
  const Overhead& from = as<Overhead>(record);
  OverheadRow row{};
  row.start = time(from.start);
  row.end = time(from.end);
  row.overheadKind = static_cast<uint32_t>(from.overheadKind);
  row.objectKind = static_cast<uint32_t>(from.objectKind);
  row.tid = row.deviceId = row.contextId = row.streamId = row.correlationId = kNone;
  const CUpti_ActivityObjectKindId& object = from.objectId;
  switch (from.objectKind) {
    case CUPTI_ACTIVITY_OBJECT_THREAD: row.tid = object.pt.threadId; break;
    case CUPTI_ACTIVITY_OBJECT_STREAM: row.streamId = object.dcs.streamId; [[fallthrough]];
    case CUPTI_ACTIVITY_OBJECT_CONTEXT: row.contextId = object.dcs.contextId; [[fallthrough]];
    case CUPTI_ACTIVITY_OBJECT_DEVICE: row.deviceId = object.dcs.deviceId; break;
    default: break;
  }
#if CUPTI_API_VERSION >= 130000
  if (cupti_.version >= 130000) row.correlationId = as<CUpti_ActivityOverhead2>(record).correlationId;
#endif
  sink_.overhead.rows.push_back(row);
}

void Records::memory(const CUpti_Activity* record) {
  const Memory& from = as<Memory>(record);
  MemoryRow row{};
  row.start = time(from.timestamp);
  row.address = from.address;
  row.bytes = from.bytes;
  row.pc = from.PC;
  row.poolAddress = from.memoryPoolConfig.address;
  row.memoryPoolType = static_cast<uint32_t>(from.memoryPoolConfig.memoryPoolType);
  if (from.memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL) {
    row.poolSize = from.memoryPoolConfig.pool.size;
    row.poolUtilized = from.memoryPoolConfig.utilizedSize;
  }
  row.memoryOperationType = static_cast<uint32_t>(from.memoryOperationType);
  row.memKind = static_cast<uint32_t>(from.memoryKind);
  row.deviceId = from.deviceId;
  row.contextId = from.contextId;
  row.streamId = from.streamId;
  row.correlationId = from.correlationId;
  row.name = sink_.strings.id_of_pointer(from.name);
  row.isAsync = from.isAsync;
  sink_.memory.rows.push_back(row);
}

void Records::memory_pool(const CUpti_Activity* record) {
  const MemoryPool& from = as<MemoryPool>(record);
  MemoryPoolRow row{};
  row.start = time(from.timestamp);
  row.address = from.address;
  row.size = from.size;
  row.utilizedSize = from.utilizedSize;
  row.releaseThreshold = from.releaseThreshold;
  row.minBytesToKeep = from.minBytesToKeep;
  row.memoryPoolOperationType = static_cast<uint32_t>(from.memoryPoolOperationType);
  row.memoryPoolType = static_cast<uint32_t>(from.memoryPoolType);
  row.deviceId = from.deviceId;
  row.correlationId = from.correlationId;
  sink_.memory_pool.rows.push_back(row);
}

void Records::graph(const CUpti_Activity* record) {
  const Graph& from = as<Graph>(record);
  sink_.graph.rows.push_back({time(from.start), time(from.end), from.deviceId, from.contextId, from.streamId,
                              from.correlationId, from.graphId});
}

void Records::context(const CUpti_Activity* record) {
  const Context& from = as<Context>(record);
  sink_.context.rows.push_back({from.contextId, from.deviceId, from.computeApiKind, from.nullStreamId, kNone});
}

void Records::device(const CUpti_Activity* record) {
  const Device& from = as<Device>(record);
  DeviceRow row{};
  row.globalMemorySize = from.globalMemorySize;
  row.globalMemoryBandwidth = from.globalMemoryBandwidth;
  row.id = from.id;
  row.name = sink_.strings.id_of_pointer(from.name);
  row.computeMajor = from.computeCapabilityMajor;
  row.computeMinor = from.computeCapabilityMinor;
  row.numMultiprocessors = from.numMultiprocessors;
  row.maxWarpsPerMultiprocessor = from.maxWarpsPerMultiprocessor;
  row.coreClockRate = from.coreClockRate;
  row.l2CacheSize = from.l2CacheSize;
  row.numMemcpyEngines = from.numMemcpyEngines;
  sink_.device.rows.push_back(row);
}

void Records::stream(const CUpti_Activity* record) {
  const CUpti_ActivityStream& from = as<CUpti_ActivityStream>(record);
  sink_.stream.rows.push_back(
      {from.contextId, from.streamId, from.priority, static_cast<uint32_t>(from.flag), from.correlationId});
}

}  // namespace nvcap
