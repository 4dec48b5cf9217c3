"""What the Perfetto trace holds: tracks, their slices with flows, and counters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import Trace
from nvprof_tools.report.columns import distinct, floats, integers, words
from nvprof_tools.report.timeline import Index, build

Ints = npt.NDArray[np.int64]
COPY_CATEGORY = {"HtoD": "upload", "DtoH": "download"}


@dataclass(frozen=True)
class Track:
    """One track. ``pid`` makes it a process's, with ``tid`` a thread's; ``unit`` makes it a counter's."""

    uuid: int
    parent: int
    name: str
    pid: int | None = None
    tid: int | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Slices:
    """Slices of one track; ``name`` and ``category`` index the tables. ``flow_count`` flow ids, from ``flow_first``
    on, go with each."""

    track: Track
    start: Ints
    end: Ints
    name: Ints
    category: Ints
    flow_first: Ints
    flow_count: Ints

    def pick(self, rows: npt.NDArray[np.generic]) -> Slices:
        """Only these rows."""
        columns = {n: getattr(self, n)[rows] for n in ("start", "end", "name", "category", "flow_first", "flow_count")}
        return replace(self, **columns)

    def on(self, track: Track) -> Slices:
        """The same on another track."""
        return replace(self, track=track)


@dataclass(frozen=True)
class Counter:
    """One counter: times in ns and values."""

    track: Track
    time: Ints
    value: npt.NDArray[np.float64]


@dataclass
class Tracks:
    """All of it; ``first_ns`` is the earliest time."""

    names: Index = field(default_factory=Index)
    categories: Index = field(default_factory=Index)
    tracks: list[Track] = field(default_factory=list)
    slices: list[Slices] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    groups: dict[str, Track] = field(default_factory=dict)

    @property
    def first_ns(self) -> int:
        """The earliest time of all; 0 when there is none."""
        firsts = [int(s.start.min()) for s in self.slices if len(s.start)]
        firsts += [int(c.time.min()) for c in self.counters if len(c.time)]
        return min(firsts, default=0)

    def track(
        self, parent: int, name: str, pid: int | None = None, tid: int | None = None, unit: str | None = None
    ) -> Track:
        """A new track."""
        made = Track(len(self.tracks) + 1, parent, name, pid, tid, unit)
        self.tracks.append(made)
        return made

    def group(self, name: str) -> int:
        """The track that holds others under one heading."""
        if name not in self.groups:
            self.groups[name] = self.track(0, name)
        return self.groups[name].uuid

    def add(
        self, track: Track, start: Ints, end: Ints, name: Ints, category: Ints, flow: tuple[Ints, Ints] | None = None
    ) -> None:
        """Slices on a track; none, and nothing is added."""
        if len(start):
            none = np.zeros(len(start), np.int64)
            first, count = flow if flow is not None else (none, none)
            self.slices.append(Slices(track, start, np.maximum(start, end), name, category, first, count))


def tracks(a: Attribution, trace: Trace | None) -> Tracks:
    """The tracks of a report: GPUs first, then workers and the pipeline, then the program's own threads."""
    t = Tracks()
    if trace is not None:
        flows = _Flows(trace)
        for device in _devices(a, trace):
            _gpu(t, trace, device, flows)
    _answer(t, a, trace)
    if trace is not None:
        _threads(t, trace, flows)
        _metrics(t, trace)
    _memory(t, a)
    return t


class _Flows:
    """A flow id for each piece of device work that has a call: unique over all tables, and contiguous a call."""

    TABLES = ("kernels", "copies", "memsets", "graphs")

    def __init__(self, trace: Trace) -> None:
        calls = [integers(trace[name], "api_call") for name in self.TABLES]
        joined = np.concatenate(calls)
        known = np.flatnonzero(joined >= 0)
        order = known[np.argsort(joined[known], kind="stable")]
        ids = np.zeros(len(joined), np.int64)
        ids[order] = np.arange(1, len(order) + 1)
        edges = np.cumsum([0, *map(len, calls)])
        self.of_work = {name: ids[edges[i] : edges[i + 1]] for i, name in enumerate(self.TABLES)}
        count = len(trace["api_calls"])
        valid = joined[order] < count
        self.count = np.bincount(joined[order][valid], minlength=count).astype(np.int64)
        self.first = np.cumsum(self.count) - self.count + 1


def _devices(a: Attribution, trace: Trace) -> list[int]:
    seen = {view.device for view in a.devices}
    for name in _Flows.TABLES:
        seen |= set(np.unique(integers(trace[name], "device")).tolist())
    return sorted(seen)


def _gpu(t: Tracks, trace: Trace, device: int, flows: _Flows) -> None:
    """A track a stream for kernels and graphs, one for copies, one for memsets of a device."""
    labels = trace["devices"]
    name = dict(zip(integers(labels, "device").tolist(), labels.column("name").to_pylist(), strict=True)).get(device)
    heading = f"GPU {device}"
    t.group(heading)
    if name:
        t.groups[heading] = t.tracks[-1] = replace(t.tracks[-1], name=f"{heading} ({name})")
    for table_name in _Flows.TABLES:
        table = trace[table_name]
        mine = integers(table, "device") == device
        if not mine.any():
            continue
        unique, back = distinct(*(integers(table, c)[mine] for c in ("process", "context", "stream")))
        rows = np.flatnonzero(mine)
        names, categories = _work_names(t, table_name, table)
        flow = flows.of_work[table_name]
        for i, (_, _, number) in enumerate(unique):
            picked = rows[back == i]
            track = t.track(t.group(heading), f"{table_name}, stream {number}")
            t.add(
                track,
                integers(table, "start_ns")[picked],
                integers(table, "end_ns")[picked],
                names[picked],
                categories[picked],
                (flow[picked], (flow[picked] > 0).astype(np.int64)),
            )


def _work_names(t: Tracks, kind: str, table: pa.Table) -> tuple[Ints, Ints]:
    n = len(table)
    if kind == "kernels":
        code, known = words(table, "name")
        return np.append(t.names.many(known), t.names("unnamed kernel"))[code], np.full(n, t.categories("kernel"))
    if kind == "copies":
        code, known = words(table, "kind")
        categories = t.categories.many([COPY_CATEGORY.get(k, "copy") for k in known])
        return np.append(t.names.many(known), t.names("copy"))[code], np.append(categories, t.categories("copy"))[code]
    word = "memset" if kind == "memsets" else "CUDA graph"
    return np.full(n, t.names(word)), np.full(n, t.categories("memset" if kind == "memsets" else "kernel"))


def _answer(t: Tracks, a: Attribution, trace: Trace | None) -> None:
    """What attribution found: idle by cause, who is in charge, sections and what they do, synthesis and queue."""
    lanes = build(a, trace, rows=None, calls=False)
    known = [t.names(name) for name in lanes.names.values]
    kinds = [t.categories(label) for label, _ in lanes.classes]
    for lane in lanes.lanes:
        single = lane.evidence in {"KERNEL", "GRAPH_TRACE", "MEMCPY, MEMSET"}
        if trace is not None and single:
            continue
        track = t.track(t.group(lane.group), lane.label)
        events = lane.events
        t.add(
            track,
            events.start,
            events.end,
            np.array(known, np.int64)[events.name],
            np.array(kinds, np.int64)[events.colour],
        )


def _threads(t: Tracks, trace: Trace, flows: _Flows) -> None:
    """Calls on each thread's track; its ranges and its waits in the operating system on tracks under it."""
    processes = trace["processes"]
    pids = dict(zip(integers(processes, "process").tolist(), integers(processes, "pid").tolist(), strict=True))
    titles = dict(zip(integers(processes, "process").tolist(), processes.column("name").to_pylist(), strict=True))
    parents = {p: t.track(0, titles[p] or f"process {pid}", pid=_small(pid)) for p, pid in pids.items()}
    threads = trace["threads"]
    by_thread: dict[int, Track] = {}
    listed = zip(
        *(integers(threads, c).tolist() for c in ("thread", "process", "tid")),
        threads.column("name").to_pylist(),
        strict=True,
    )
    for thread, process, tid, title in listed:
        pid = _small(pids.get(process, 0))
        parent = parents[process].uuid if process in parents else 0
        by_thread[thread] = t.track(parent, title or f"thread {tid}", pid=pid, tid=tid)
    for table_name, category in (("api_calls", "CUDA call"), ("nvtx_ranges", "NVTX"), ("os_calls", "OS call")):
        table = trace[table_name]
        thread = integers(table, "thread")
        code, known = words(table, "name")
        names = np.append(t.names.many(known), t.names("unnamed"))[code]
        kind = t.categories(category)
        order = np.argsort(thread, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1) if len(order) else []:
            home = by_thread.get(int(thread[rows[0]]))
            if home is None:
                home = by_thread[int(thread[rows[0]])] = t.track(0, f"thread {int(thread[rows[0]])}")
            track = home if table_name == "api_calls" else t.track(home.uuid, category)
            flow = (flows.first[rows], flows.count[rows]) if table_name == "api_calls" else None
            start, end = integers(table, "start_ns")[rows], integers(table, "end_ns")[rows]
            t.add(track, start, end, names[rows], np.full(len(rows), kind), flow)


def _small(pid: int) -> int:
    """What the format's 32-bit field holds."""
    return pid & 0x7FFFFFFF


def _metrics(t: Tracks, trace: Trace) -> None:
    table = trace["gpu_metrics"]
    if not len(table):
        return
    device, time, value = integers(table, "device"), integers(table, "time_ns"), floats(table, "value")
    metric, known = words(table, "metric")
    finite = np.isfinite(value)
    for d in np.unique(device).tolist():
        for m in np.unique(metric[device == d]).tolist():
            rows = np.flatnonzero((device == d) & (metric == m) & finite)
            rows = rows[np.argsort(time[rows], kind="stable")]
            label = known[m] if m >= 0 else "unnamed metric"
            track = t.track(t.group(f"GPU {d}"), label, unit="%" if "%" in label else "")
            t.counters.append(Counter(track, time[rows], value[rows]))


def _memory(t: Tracks, a: Attribution) -> None:
    for m in a.memory:
        if m.times_ns:
            track = t.track(t.group(f"GPU {m.device}"), "device memory in use", unit="bytes")
            t.counters.append(Counter(track, np.array(m.times_ns, np.int64), np.array(m.bytes_in_use, np.float64)))
    table = a.activities
    if not len(table):
        return
    kind, known = words(table, "kind")
    for k, label in enumerate(known):
        start, end = integers(table, "start_ns")[kind == k], integers(table, "end_ns")[kind == k]
        if not len(start):
            continue
        time = np.concatenate([start, end])
        order = np.argsort(time, kind="stable")
        step = np.concatenate([np.ones(len(start)), -np.ones(len(end))])[order]
        at, last = np.unique(time[order][::-1], return_index=True)
        depth = np.cumsum(step)[len(order) - 1 - last]
        t.counters.append(Counter(t.track(t.group("pipeline"), f"{label}: how many", unit=""), at, depth))
