"""A capture as plain Python rows, and the ``Trace`` and ``AppLog`` made of them.

Everything a test says about a trace is in a :class:`World`: short tuples with times in ns, threads and devices by
number. The schemas come from ``nvprof_tools.model``; nothing here uses the code that reads real files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from nvprof_tools.model.tables import TABLES
from nvprof_tools.model.trace import EVENT_SCHEMA, PARTITION_SCHEMA, AppLog, LogRun, Session, SourceInfo, Trace


class Call(NamedTuple):
    """A CUDA call. GPU work refers to it by identity of its row number in ``World.calls``."""

    start: int
    end: int
    thread: int
    name: str


class Gpu(NamedTuple):
    """Work on a device. ``kind``: kernel, graph, memset, or a copy's kind (HtoD, DtoH, …); ``name``: the kernel's
    name, or the host memory of a copy; ``call``: row of ``World.calls``, null for none."""

    start: int
    end: int
    device: int
    stream: int
    process: int
    kind: str
    name: str
    call: int | None


class Range(NamedTuple):
    """An NVTX push/pop range."""

    start: int
    end: int
    thread: int
    name: str


class Os(NamedTuple):
    """A call into the operating system."""

    start: int
    end: int
    thread: int
    name: str


class Overhead(NamedTuple):
    """Profiler overhead on a thread, or (``profiler`` false) a cost of CUDA recorded beside it."""

    start: int
    end: int
    thread: int
    profiler: bool


Row = TypeVar("Row", Call, Gpu, Range, Os, Overhead)


@dataclass(frozen=True)
class World:
    """One capture. ``threads[i]`` is the process of thread ``i``; ``end`` is where the capture ends, null: unknown;
    ``cut``: a range that ends there is open."""

    threads: tuple[int, ...]
    devices: int
    end: int | None
    calls: tuple[Call, ...] = ()
    gpu: tuple[Gpu, ...] = ()
    ranges: tuple[Range, ...] = ()
    os: tuple[Os, ...] = ()
    overheads: tuple[Overhead, ...] = ()
    cut: bool = False

    def cut_at(self, end: int) -> World:
        """The capture as it is when it ends early: what begins later is missing, what goes on ends there."""
        kept = [i for i, c in enumerate(self.calls) if c.start < end]
        gpu = [g._replace(call=kept.index(g.call) if g.call in kept else None) for g in self.gpu if g.start < end]

        def clipped(rows: Iterable[Row]) -> tuple[Row, ...]:
            return tuple(r._replace(end=min(r.end, end)) for r in rows if r.start < end)

        calls, work = clipped(self.calls), clipped(gpu)
        rest = clipped(self.ranges), clipped(self.os), clipped(self.overheads)
        return World(self.threads, self.devices, end, calls, work, *rest, cut=True)

    def times(self) -> list[int]:
        """Every begin and end."""
        rows: list[Any] = [*self.calls, *self.gpu, *self.ranges, *self.os, *self.overheads]
        return [t for row in rows for t in (row.start, row.end)]

    def mapped(self, to: Callable[[int], int]) -> World:
        """The same capture with every time changed by ``to``."""
        changed = {
            name: tuple(row._replace(start=to(row.start), end=to(row.end)) for row in getattr(self, name))
            for name in ("calls", "gpu", "ranges", "os", "overheads")
        }
        return replace(self, end=None if self.end is None else to(self.end), **changed)

    def __repr__(self) -> str:
        """Only what is there: a failing example is read by people."""
        parts = [
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) not in ((), False)
        ]
        return f"World({', '.join(parts)})"


SOURCE = SourceInfo("rows", None, "0" * 64)
_MEMORY_OF_DEVICE = "device"
_EMPTY = {name: spec.empty() for name, spec in TABLES.items()}


def trace_of(world: World, utc_epoch_ns: int | None = None) -> Trace:
    """The capture as normalised tables, each sorted as its schema says."""
    order = sorted(range(len(world.calls)), key=lambda i: (*world.calls[i][:3], i))
    row_of = {old: new for new, old in enumerate(order)}
    work = {
        kind: [g for g in world.gpu if _table_of(g.kind) == kind] for kind in ("kernels", "copies", "memsets", "graphs")
    }
    process_of = world.threads
    rows: dict[str, list[Mapping[str, Any]]] = {
        "api_calls": [
            {
                "start_ns": world.calls[i].start,
                "end_ns": world.calls[i].end,
                "process": process_of[world.calls[i].thread],
                "thread": world.calls[i].thread,
                "correlation_id": i + 1,
                "name": world.calls[i].name,
                "driver_api": world.calls[i].name.startswith("cu") and not world.calls[i].name.startswith("cuda"),
                "return_value": 0,
            }
            for i in order
        ],
        **{table: [_work_row(g, row_of) for g in found] for table, found in work.items()},
        "nvtx_ranges": [
            {
                "start_ns": r.start,
                "end_ns": r.end,
                "process": process_of[r.thread],
                "thread": r.thread,
                "domain": "",
                "name": r.name,
                "push_pop": True,
                "open": world.cut and r.end == world.end,
            }
            for r in world.ranges
        ],
        "os_calls": [
            {"start_ns": o.start, "end_ns": o.end, "process": process_of[o.thread], "thread": o.thread, "name": o.name}
            for o in world.os
        ],
        "profiler_overhead": [
            {
                "start_ns": o.start,
                "end_ns": o.end,
                "process": process_of[o.thread],
                "thread": o.thread,
                "name": "overhead",
                "is_profiler": o.profiler,
            }
            for o in world.overheads
        ],
        "threads": [{"thread": i, "process": p, "tid": 100 + i} for i, p in enumerate(process_of)],
        "processes": [{"process": p, "pid": 10 + p} for p in range(max(process_of, default=-1) + 1)],
        "devices": [{"device": d, "name": f"GPU {d}"} for d in range(world.devices)],
    }
    tables = {name: _table(name, rows.get(name, ())) for name in TABLES}
    measured = frozenset(rows) - {"graphs", "os_calls", "profiler_overhead", "nvtx_ranges"}
    measured |= {name for name in ("graphs", "profiler_overhead", "nvtx_ranges") if rows[name]}
    return Trace(SOURCE, Session(utc_epoch_ns, world.end), tables, measured | {"os_calls"})


def _table_of(kind: str) -> str:
    return {"kernel": "kernels", "graph": "graphs", "memset": "memsets"}.get(kind, "copies")


def _work_row(g: Gpu, row_of: Mapping[int, int]) -> Mapping[str, Any]:
    row: dict[str, Any] = {
        "start_ns": g.start,
        "end_ns": g.end,
        "process": g.process,
        "device": g.device,
        "context": 1,
        "stream": g.stream,
        "correlation_id": None if g.call is None else g.call + 1,
        "api_call": None if g.call is None else row_of[g.call],
        "bytes": 64,
    }
    if g.kind == "kernel":
        row |= {"name": g.name, "signature": f"{g.name}()", "cooperative": False}
    elif g.kind == "HtoD":
        row |= {"kind": g.kind, "source_memory": g.name, "target_memory": _MEMORY_OF_DEVICE}
    elif g.kind == "DtoH":
        row |= {"kind": g.kind, "source_memory": _MEMORY_OF_DEVICE, "target_memory": g.name}
    else:
        row |= {"kind": g.kind, "source_memory": _MEMORY_OF_DEVICE, "target_memory": _MEMORY_OF_DEVICE}
    return row


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    spec = TABLES[name]
    if not rows:
        return _EMPTY[name]
    keys = [key for key in spec.sort_by if key in spec.schema.names]
    ordered = sorted(rows, key=lambda row: tuple(_sortable(row.get(key)) for key in keys))
    columns = [pa.array([row.get(c.name) for row in ordered], c.type) for c in spec.columns]
    return pa.Table.from_arrays(columns, schema=spec.schema)


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, 0 if value is None else value)


class Logged(NamedTuple):
    """One partition of the log, whole ms; null: the event is missing."""

    job: str
    partition: int | None
    worker: int | None
    synth_start: int | None = None
    synth_end: int | None = None
    sent: int | None = None
    picked: int | None = None
    gpu_start: int | None = None
    gpu_end: int | None = None


_EVENTS = (
    ("synth_start", "SYNTH_START"),
    ("synth_end", "SYNTH_END"),
    ("sent", "CHAN_SEND"),
    ("picked", "GPU_PICKUP"),
    ("gpu_start", "GPU_START"),
    ("gpu_end", "GPU_END"),
)


def log_of(partitions: Sequence[Logged], anchor_utc_ns: int | None = None) -> AppLog:
    """A log of one run that has these partitions, in this order, and their events by time."""
    seen = sorted(
        (getattr(p, field), step, i, event)
        for i, p in enumerate(partitions)
        for step, (field, event) in enumerate(_EVENTS)
        if getattr(p, field) is not None
    )
    events = [
        {
            "line": n + 1,
            "time_ms": ms,
            "event": event,
            "job": partitions[i].job,
            "partition": partitions[i].partition,
            "worker": partitions[i].worker,
            "detail": "",
        }
        for n, (ms, _, i, event) in enumerate(seen)
    ]
    rows = [
        {
            "job": p.job,
            "partition": p.partition,
            "worker": p.worker,
            **{f"{field}_ms": getattr(p, field) for field, _ in _EVENTS},
            "synth_ms": None,
            "gpu_ms": None,
        }
        for p in partitions
    ]
    run = LogRun(1, anchor_utc_ns, _by_schema(events, EVENT_SCHEMA), _by_schema(rows, PARTITION_SCHEMA))
    return AppLog(SOURCE, (run,))


def _by_schema(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema)
