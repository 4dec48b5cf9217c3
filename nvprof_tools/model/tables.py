"""The normalised Arrow tables: every column's name, type, unit, nullability and meaning, in one place.

All times are int64 nanoseconds since the capture's session start (``t = 0``); negative times are valid. Intervals are
half-open ``[start_ns, end_ns)``. ``thread``, ``process`` and ``device`` are dense row numbers of the tables of that
name, so no reader has to know how a profiler packs its identifiers. ``docs/tables.md`` is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

NAME = pa.dictionary(pa.int32(), pa.string())
"""Strings that repeat: kernel, call and range names."""


@dataclass(frozen=True)
class Column:
    """One column: ``unit`` is ``ns``, ``bytes``, ``row``, ``percent`` … or empty."""

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    nullable: bool = False


@dataclass(frozen=True)
class TableSpec:
    """One table: its columns and the order its rows are sorted in."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    sort_by: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema; units and meanings ride along as field metadata."""
        return pa.schema(
            [pa.field(c.name, c.type, c.nullable, {"unit": c.unit, "meaning": c.meaning}) for c in self.columns]
        )

    def empty(self) -> pa.Table:
        """A table of no rows."""
        # Not schema.empty_table(): that imports pandas.
        return pa.Table.from_arrays([pa.nulls(0, column.type) for column in self.columns], schema=self.schema)


def _start_end(what: str) -> tuple[Column, Column]:
    return (
        Column("start_ns", pa.int64(), f"{what} begins", "ns"),
        Column("end_ns", pa.int64(), f"{what} ends (exclusive)", "ns"),
    )


_PROCESS = Column("process", pa.int32(), "row of `processes`", "row")
_THREAD = Column("thread", pa.int32(), "row of `threads`", "row")
_DEVICE = Column("device", pa.int32(), "row of `devices`: the physical GPU", "row")
_CONTEXT = Column("context", pa.int64(), "CUDA context id within the process")
_STREAM = Column("stream", pa.int64(), "CUDA stream id within the context")
_CORRELATION = Column("correlation_id", pa.int64(), "correlation id within the process; null: none", "", True)
_API_CALL = Column("api_call", pa.int64(), "row of `api_calls` that caused it; null: not in the capture", "row", True)
_GRAPH_NODE = Column("graph_node", pa.int64(), "CUDA graph node it replays; null: not a graph's", "", True)

SPECS: tuple[TableSpec, ...] = (
    TableSpec(
        "api_calls",
        "CUDA runtime and driver calls, one row a call (backtrace duplicates removed)",
        (
            *_start_end("the call"),
            _PROCESS,
            _THREAD,
            _CORRELATION,
            Column("name", NAME, "function name, ABI suffixes (_vNNNN, _ptsz, _ptds) stripped"),
            Column("driver_api", pa.bool_(), "true: a driver call; false: a runtime call"),
            Column("return_value", pa.int32(), "the call's result code, 0 = success", "", True),
        ),
        ("start_ns", "end_ns", "thread", "correlation_id"),
    ),
    TableSpec(
        "kernels",
        "Kernels as the device ran them",
        (
            *_start_end("execution on the device"),
            _PROCESS,
            _DEVICE,
            _CONTEXT,
            _STREAM,
            _CORRELATION,
            _API_CALL,
            _GRAPH_NODE,
            Column("name", NAME, "base name without templates"),
            Column("signature", NAME, "demangled name with templates and parameters", "", True),
            Column("mangled", NAME, "raw symbol", "", True),
            Column("cooperative", pa.bool_(), "launched cooperatively", "", True),
            Column("grid_x", pa.int32(), "grid size", "blocks", True),
            Column("grid_y", pa.int32(), "grid size", "blocks", True),
            Column("grid_z", pa.int32(), "grid size", "blocks", True),
            Column("block_x", pa.int32(), "block size", "threads", True),
            Column("block_y", pa.int32(), "block size", "threads", True),
            Column("block_z", pa.int32(), "block size", "threads", True),
            Column("registers", pa.int32(), "registers a thread", "", True),
            Column("shared_bytes", pa.int32(), "static and dynamic shared memory a block", "bytes", True),
        ),
        ("start_ns", "end_ns", "device", "stream", "correlation_id"),
    ),
    TableSpec(
        "copies",
        "Memory copies as the device ran them",
        (
            *_start_end("the transfer"),
            _PROCESS,
            _DEVICE,
            _CONTEXT,
            _STREAM,
            _CORRELATION,
            _API_CALL,
            _GRAPH_NODE,
            Column("kind", NAME, "HtoD, DtoH, DtoD, HtoH, PtoP, UVM-HtoD, UVM-DtoH, … or unknown"),
            Column("bytes", pa.int64(), "bytes moved", "bytes"),
            Column("source_memory", NAME, "pageable, pinned, device, array, managed, … or unknown", "", True),
            Column("target_memory", NAME, "as source_memory", "", True),
            Column("copy_count", pa.int64(), "copies this row stands for (batched copies)", "", True),
        ),
        ("start_ns", "end_ns", "device", "stream", "correlation_id"),
    ),
    TableSpec(
        "memsets",
        "Memory sets as the device ran them",
        (
            *_start_end("the set"),
            _PROCESS,
            _DEVICE,
            _CONTEXT,
            _STREAM,
            _CORRELATION,
            _API_CALL,
            _GRAPH_NODE,
            Column("bytes", pa.int64(), "bytes set", "bytes"),
        ),
        ("start_ns", "end_ns", "device", "stream", "correlation_id"),
    ),
    TableSpec(
        "graphs",
        "CUDA graph launches traced as a whole: their kernels have no rows of their own",
        (
            *_start_end("the graph's execution"),
            _PROCESS,
            _DEVICE,
            _CONTEXT,
            _STREAM,
            _CORRELATION,
            _API_CALL,
            Column("graph_id", pa.int64(), "graph id", "", True),
            Column("graph_exec_id", pa.int64(), "executable graph id", "", True),
        ),
        ("start_ns", "end_ns", "device", "stream", "correlation_id"),
    ),
    TableSpec(
        "syncs",
        "Synchronisations as the driver recorded them; the same waits are in api_calls: never add both",
        (
            *_start_end("the wait"),
            _PROCESS,
            _DEVICE,
            _CONTEXT,
            Column("stream", pa.int64(), "CUDA stream id; null: not of one stream", "", True),
            _CORRELATION,
            _API_CALL,
            Column("kind", NAME, "event, stream_wait, stream, context, unknown"),
        ),
        ("start_ns", "end_ns", "device", "correlation_id"),
    ),
    TableSpec(
        "nvtx_ranges",
        "NVTX push/pop and start/end ranges",
        (
            *_start_end("the range"),
            _PROCESS,
            _THREAD,
            Column("end_thread", pa.int32(), "thread that ended a start/end range, where another", "row", True),
            Column("domain", NAME, "NVTX domain; empty: the default one"),
            Column("category", NAME, "NVTX category name; null: none", "", True),
            Column("name", NAME, "range name; empty: unnamed"),
            Column("push_pop", pa.bool_(), "true: push/pop (nests on its thread); false: start/end"),
            Column("open", pa.bool_(), "never closed in the capture: end_ns is the capture's end"),
            Column("payload", pa.int64(), "integer payload", "", True),
        ),
        ("start_ns", "end_ns", "thread"),
    ),
    TableSpec(
        "nvtx_marks",
        "NVTX instants",
        (
            Column("time_ns", pa.int64(), "the instant", "ns"),
            _PROCESS,
            _THREAD,
            Column("domain", NAME, "NVTX domain; empty: the default one"),
            Column("category", NAME, "NVTX category name; null: none", "", True),
            Column("name", NAME, "the mark's text"),
            Column("payload", pa.int64(), "integer payload", "", True),
        ),
        ("time_ns", "thread"),
    ),
    TableSpec(
        "os_calls",
        "Operating-system calls over the profiler's threshold",
        (
            *_start_end("the call"),
            _PROCESS,
            _THREAD,
            Column("name", NAME, "function name"),
            Column("nesting", pa.int32(), "0 = outermost; null: unknown", "", True),
        ),
        ("start_ns", "end_ns", "thread"),
    ),
    TableSpec(
        "gpu_metrics",
        "GPU metric samples, device-wide",
        (
            Column("time_ns", pa.int64(), "start of the sampling interval", "ns"),
            _DEVICE,
            Column("metric", NAME, "metric name as the profiler gives it, unit in brackets"),
            Column("value", pa.float64(), "the sample, in the unit the name states", "", True),
        ),
        ("device", "metric", "time_ns"),
    ),
    TableSpec(
        "memory_events",
        "Allocations and frees of device memory",
        (
            Column("time_ns", pa.int64(), "the instant", "ns"),
            _PROCESS,
            _DEVICE,
            Column("free", pa.bool_(), "true: memory given back"),
            Column("bytes", pa.int64(), "size of the allocation", "bytes"),
            Column("address", pa.uint64(), "virtual address"),
            Column("memory", NAME, "device, pinned, managed, …"),
            _CORRELATION,
        ),
        ("time_ns", "device", "address"),
    ),
    TableSpec(
        "profiler_overhead",
        "Time the measurement itself took on a thread, and costs of CUDA recorded beside it",
        (
            *_start_end("the overhead"),
            _PROCESS,
            _THREAD,
            Column("name", NAME, "the profiler's own words"),
            Column("is_profiler", pa.bool_(), "true: exists only because of the profiler; false: a CUDA cost"),
        ),
        ("start_ns", "end_ns", "thread"),
    ),
    TableSpec(
        "diagnostics",
        "What the profiler said about its own capture",
        (
            Column("time_ns", pa.int64(), "the instant; may lie past the capture's end", "ns", True),
            Column("severity", NAME, "info, warning, error, verbose, unknown"),
            Column("source", NAME, "injection, daemon, analysis, unknown"),
            Column("text", pa.string(), "the message, untrusted text"),
            Column("process", pa.int32(), "row of `processes`; null: the session", "row", True),
        ),
        ("time_ns", "severity", "text"),
    ),
    TableSpec(
        "threads",
        "Threads that have events",
        (
            Column("thread", pa.int32(), "this row's number", "row"),
            _PROCESS,
            Column("tid", pa.int64(), "thread id of the operating system"),
            Column("name", pa.string(), "last name given; may be its parent's", "", True),
        ),
        ("thread",),
    ),
    TableSpec(
        "processes",
        "Processes that have events",
        (
            Column("process", pa.int32(), "this row's number", "row"),
            Column("pid", pa.int64(), "process id of the operating system"),
            Column("name", pa.string(), "base name of the program", "", True),
        ),
        ("process",),
    ),
    TableSpec(
        "devices",
        "Physical GPUs",
        (
            Column("device", pa.int32(), "this row's number", "row"),
            Column("name", pa.string(), "board name", "", True),
            Column("sm_count", pa.int64(), "multiprocessors", "", True),
            Column("memory_bytes", pa.int64(), "device memory", "bytes", True),
            Column("memory_bandwidth", pa.int64(), "peak memory bandwidth", "bytes/s", True),
            Column("clock_hz", pa.int64(), "maximum SM clock", "Hz", True),
            Column("max_warps_per_sm", pa.int64(), "resident warps an SM can hold", "", True),
            Column("compute_capability", pa.string(), "as 9.0", "", True),
        ),
        ("device",),
    ),
)

TABLES: Mapping[str, TableSpec] = {spec.name: spec for spec in SPECS}
