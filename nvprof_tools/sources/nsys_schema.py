"""Which tables and columns of an nsys export are read, as data, for every schema from 2020.5 on.

Nothing else of an export is ever looked at: no environment, no host, no user, no path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "text"]


@dataclass(frozen=True)
class Wanted:
    """One column: its kind, whether rows mean anything without it, and the names it had in other versions."""

    name: str
    kind: Kind = "int"
    required: bool = False
    aliases: tuple[str, ...] = ()


def _need(*names: str) -> tuple[Wanted, ...]:
    return tuple(Wanted(n, required=True) for n in names)


def _want(*names: str) -> tuple[Wanted, ...]:
    return tuple(Wanted(n) for n in names)


def _text(*names: str, required: bool = False) -> tuple[Wanted, ...]:
    return tuple(Wanted(n, "text", required) for n in names)


_GPU_WORK = (*_need("start", "end"), *_want("deviceId", "contextId", "streamId", "correlationId", "globalPid"))

TABLES: Mapping[str, tuple[Wanted, ...]] = {
    "StringIds": (*_need("id"), *_text("value", required=True)),
    "META_DATA_EXPORT": _text("name", "value", required=True),
    "EXPORT_META_DATA": _text("name", "value", required=True),
    "META_DATA_CAPTURE": _text("name", "value", required=True),
    "TARGET_INFO_SESSION_START_TIME": _need("utcEpochNs"),
    "ANALYSIS_DETAILS": _need("duration"),
    "TARGET_INFO_SYSTEM_ENV": _text("name", "value", required=True),
    "TARGET_INFO_GPU": (
        Wanted("id", required=True, aliases=("deviceId",)),
        *_want("vmId", "totalMemory", "memoryBandwidth", "clockRate", "smCount", "cuDevice", "maxWarpsPerSm"),
        *_want("computeMajor", "computeMinor"),
        *_text("name"),
    ),
    "TARGET_INFO_CUDA_DEVICE": _need("gpuId", "cudaId", "pid"),
    "PROCESSES": (*_need("globalPid"), *_want("pid"), *_text("name")),
    "ThreadNames": _need("nameId", "globalTid"),
    "ProcessStreams": (*_need("filenameId", "contentId"), *_want("globalPid")),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        *_need("start", "end", "globalTid", "nameId"),
        *_want("eventClass", "correlationId", "returnValue"),
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *_GPU_WORK,
        *_want("graphNodeId", "demangledName", "shortName", "mangledName", "launchType", "registersPerThread"),
        *_want("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        *_GPU_WORK,
        *_want("graphNodeId", "bytes", "copyKind", "srcKind", "dstKind", "copyCount"),
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (*_GPU_WORK, *_want("graphNodeId", "bytes", "value", "memKind")),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (*_GPU_WORK, *_want("graphId", "graphExecId")),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (*_GPU_WORK, *_want("syncType")),
    "NVTX_EVENTS": (
        *_need("start", "end", "eventType", "globalTid"),
        *_want("endGlobalTid", "category", "textId", "domainId", "rangeId"),
        *_want("uint64Value", "int64Value", "uint32Value", "int32Value"),
        *_text("text"),
    ),
    "OSRT_API": (*_need("start", "end", "globalTid", "nameId"), *_want("nestingLevel")),
    "PROFILER_OVERHEAD": (*_need("start", "end", "globalTid"), *_want("nameId", "overheadType")),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": (*_need("start", "end", "globalTid"), *_want("nameId", "overheadType")),
    "DIAGNOSTIC_EVENT": (*_want("timestamp", "source", "severity", "globalPid"), *_text("text", required=True)),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        *_need("start", "globalPid", "bytes", "memoryOperationType"),
        *_want("deviceId", "address", "memKind", "correlationId"),
    ),
    "GPU_METRICS": _need("timestamp", "typeId", "metricId", "value"),
    "TARGET_INFO_GPU_METRICS": (*_need("typeId", "metricId"), *_want("scale"), *_text("metricName", required=True)),
    "GENERIC_EVENTS": (*_want("timestamp", "rawTimestamp"), *_need("typeId"), *_text("data", required=True)),
    "GENERIC_EVENT_TYPES": _need("typeId", "sourceId"),
    "GENERIC_EVENT_SOURCES": (*_need("sourceId"), *_want("nameId"), *_text("data")),
}
"""Canonical table → the columns read of it."""

EVENT_TABLES = tuple(
    name for name in TABLES if name.startswith(("CUPTI_", "NVTX_", "OSRT_", "PROFILER_", "GPU_", "CUDA_"))
)

_SUFFIX = re.compile(r"_V(\d{1,4})$", re.IGNORECASE)


def resolve(present: Iterable[str]) -> dict[str, str]:
    """Canonical table name → the name it has in this file: itself, or with the highest ``_Vn`` suffix there is."""
    found: dict[str, tuple[int, str]] = {}
    for actual in present:
        match = _SUFFIX.search(actual)
        name, rank = (actual[: match.start()], int(match.group(1))) if match else (actual, 0)
        if name in TABLES and (name not in found or rank > found[name][0]):
            found[name] = (rank, actual)
    return {name: actual for name, (_, actual) in found.items()}


def looks_like_export(present: Iterable[str]) -> bool:
    """True where the table names are those of an nsys export of any version."""
    names = resolve(present)
    return len(names) > 1 and ("StringIds" in names or any(n in names for n in EVENT_TABLES))


KNOWN_SCHEMA = (3, 28)
"""The newest schema version these tables were checked against, by documentation or file."""

MEMCPY_KINDS = {
    0: "unknown", 1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA",
    8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "UVM-HtoD", 12: "UVM-DtoH", 13: "UVM-DtoD",
}  # fmt: skip
UNIFIED_COPIES = (11, 12, 13)
MEMORY_KINDS = {
    0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device-static", 6: "managed-static",
    7: "unknown",
}  # fmt: skip
SYNC_KINDS = {0: "unknown", 1: "event", 2: "stream_wait", 3: "stream", 4: "context"}
SEVERITIES = {0: "unknown", 1: "info", 2: "warning", 3: "error", 4: "verbose"}
DIAGNOSTIC_SOURCES = {0: "unknown", 1: "injection", 2: "daemon", 3: "analysis"}

CLASS_DRIVER = (1, 13)
CLASS_BACKTRACE = 67
COOPERATIVE_LAUNCHES = (2, 3)
REGULAR_LAUNCH = 1
NO_STREAM = 0xFFFFFFFF

NVTX_CATEGORY, NVTX_MARK, NVTX_THREAD, NVTX_DOMAIN = 33, 34, 39, 75
NVTX_PUSH_POP, NVTX_START_END = (59, 70), (60, 71)
"""Event types; 70 and 71 came in from text files in older versions."""

PROFILER_TYPES, CUDA_TYPES = (3, 4, 5), (2, 6, 7, 8)
"""``overheadType``: the profiler's own, and costs of CUDA that exist without one."""
CUDA_COST_NAME = re.compile(
    r"\bjit\b|driver compiler|module loading|lazy (function )?loading|command buffer full", re.IGNORECASE
)
"""Which overhead names are costs of CUDA, where no type says; every other row is the profiler's."""

DRIVER_ENV = {"NvDriverVersion": "driver_version", "CudaDriverVersion": "cuda_version"}
"""System facts that are imported, and the name they get."""
