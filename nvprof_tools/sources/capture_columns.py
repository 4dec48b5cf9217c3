"""Which fields of a capture stand for which columns of an nsys export, as data (docs/capture-format.md has the fields).

Values are CUPTI's own; where nsys counts differently, they are translated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

How = Literal["plain", "time", "word", "thread"]

KERNEL, MEMCPY, MEMSET, RUNTIME, DRIVER, SYNC, OVERHEAD, MEMORY, GRAPH, CONTEXT, DEVICE = range(16, 27)
NVTX_RANGE, NVTX_MARK, THREAD_NAME, CLOCK, METRIC_NAME, METRIC = range(28, 34)

ABSENT = 0xFFFF_FFFF
"""Numbers and string ids of 32 bits that are not there."""

LAUNCH_TYPES = {0: 1, 1: 2, 2: 3}
UNKNOWN_LAUNCH = 0
MEMORY_KINDS = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 6}
UNKNOWN_MEMORY = 7
MEMORY_OPERATIONS = {1: 0, 2: 1}
NO_OPERATION = -1
OVERHEADS: Mapping[int, tuple[int, str]] = {
    0: (1, "Unknown"),
    1: (2, "Driver compiler"),
    1 << 16: (3, "CUPTI Buffer flush"),
    2 << 16: (4, "CUPTI Instrumentation"),
    3 << 16: (5, "CUPTI Resource"),
    4 << 16: (6, "Runtime triggered module loading"),
    5 << 16: (7, "Lazy function loading"),
    6 << 16: (8, "Command buffer full"),
    7 << 16: (4, "CUPTI Activity buffer request"),
    8 << 16: (4, "CUPTI UVM activity init"),
}
"""CUPTI's kind of overhead → nsys' number, and the name."""
UNKNOWN_OVERHEAD = 1
OVERHEAD_WORDS = 1 << 62
"""Ids of those names begin here."""


@dataclass(frozen=True)
class From:
    """One column of a field. ``absent``: values that mean "not there"; ``mapped`` translates, ``other`` is for values
    that it does not know."""

    name: str
    how: How = "plain"
    absent: tuple[int, ...] = ()
    mapped: Mapping[int, int] | None = None
    other: int = 0


@dataclass(frozen=True)
class Part:
    """Rows of one kind as rows of a table: fields as columns, columns that are the same in every row, and whether rows
    are of the process (globalPid) rather than of a thread."""

    kind: int
    columns: Mapping[str, From]
    constant: Mapping[str, int] = field(default_factory=dict)
    process: bool = False


def _plain(*names: str) -> dict[str, From]:
    return {name: From(name) for name in names}


def _numbers(*names: str) -> dict[str, From]:
    return {name: From(name, absent=(ABSENT,)) for name in names}


def _not_zero(*names: str) -> dict[str, From]:
    return {name: From(name, absent=(0,)) for name in names}


def _times(*names: str) -> dict[str, From]:
    return {name: From(name, "time") for name in names}


_THREAD = {"globalTid": From("tid", "thread")}
_WORK = {
    **_times("start", "end"),
    **_numbers("deviceId", "contextId", "streamId"),
    "correlationId": From("correlationId", absent=(0, ABSENT)),
}


def _memory(column: str) -> dict[str, From]:
    return {column: From(column, mapped=MEMORY_KINDS, other=UNKNOWN_MEMORY)}


def _call(kind: int, event_class: int) -> Part:
    columns = {
        **_times("start", "end"),
        **_THREAD,
        "correlationId": From("correlationId", absent=(0, ABSENT)),
        "returnValue": From("returnValue", absent=(ABSENT,)),
        "nameId": From("name", "word"),
    }
    return Part(kind, columns, {"eventClass": event_class})


def _marked(kind: int, more: Mapping[str, From], constant: Mapping[str, int]) -> Part:
    columns = {
        **_times("start"),
        **_THREAD,
        "textId": From("text", "word"),
        "domainId": From("domain", "word"),
        "category": From("category"),
        **more,
    }
    return Part(kind, columns, constant)


NVTX_TABLE = "NVTX_EVENTS"
PARTS: Mapping[str, tuple[Part, ...]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        Part(
            KERNEL,
            {
                **_WORK,
                **_not_zero("graphNodeId"),
                **_plain("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread"),
                **_plain("staticSharedMemory", "dynamicSharedMemory"),
                "mangledName": From("name", "word"),
                "launchType": From("launchType", mapped=LAUNCH_TYPES, other=UNKNOWN_LAUNCH),
            },
            process=True,
        ),
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        Part(
            MEMCPY,
            {
                **_WORK,
                **_not_zero("graphNodeId"),
                **_plain("bytes", "copyKind"),
                **_memory("srcKind"),
                **_memory("dstKind"),
            },
            process=True,
        ),
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        Part(
            MEMSET,
            {**_WORK, **_not_zero("graphNodeId"), **_plain("bytes", "value"), **_memory("memKind")},
            process=True,
        ),
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (_call(RUNTIME, 0), _call(DRIVER, 1)),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        Part(
            SYNC,
            {name: how for name, how in {**_WORK, **_plain("syncType")}.items() if name != "deviceId"},
            process=True,
        ),
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": (
        Part(
            OVERHEAD,
            {
                **_times("start", "end"),
                **_THREAD,
                "overheadType": From(
                    "overheadKind", mapped={k: n for k, (n, _) in OVERHEADS.items()}, other=UNKNOWN_OVERHEAD
                ),
                "nameId": From(
                    "overheadKind",
                    mapped={k: OVERHEAD_WORDS + i for i, k in enumerate(OVERHEADS)},
                    other=OVERHEAD_WORDS,
                ),
            },
        ),
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        Part(
            MEMORY,
            {
                **_times("start"),
                **_numbers("deviceId"),
                **_plain("address", "bytes"),
                **_memory("memKind"),
                "correlationId": From("correlationId", absent=(0, ABSENT)),
                "memoryOperationType": From("memoryOperationType", mapped=MEMORY_OPERATIONS, other=NO_OPERATION),
            },
            process=True,
        ),
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (Part(GRAPH, {**_WORK, **_numbers("graphId")}, process=True),),
    NVTX_TABLE: (
        _marked(
            NVTX_RANGE,
            {
                **_times("end"),
                "endGlobalTid": From("endTid", "thread"),
                **_not_zero("rangeId"),
                "int64Value": From("payload"),
                "eventType": From("type", mapped={0: 59, 1: 60}, other=59),
            },
            {},
        ),
        _marked(NVTX_MARK, {"int64Value": From("payload")}, {"eventType": 34}),
    ),
    "GPU_METRICS": (
        Part(METRIC, {"timestamp": From("start", "time"), "typeId": From("deviceId"), **_plain("metricId", "value")}),
    ),
}
"""Event tables. What needs more than one field of a row is added in ``capture_tables``."""
