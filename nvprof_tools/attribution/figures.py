"""Figures made of segments and calls: overheads, launch latency, device memory, gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution.categories import BUSY, CALLS, CATEGORIES
from nvprof_tools.attribution.driver_locks import BLOCKERS, LockedTime
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.attribution.evidence import RANGE_ROLES, Evidence, Rows
from nvprof_tools.attribution.sections import Held, Owners
from nvprof_tools.attribution.work import Work
from nvprof_tools.model.attribution import Gap, Latency, MemoryUse, Overhead
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import flags, ints, names
from nvprof_tools.timeline.intervals import Index, Ints

GAPS_KEPT = 100
CURVE_POINTS = 2_000


def percentile(values: Ints, share: float) -> int | None:
    """The nearest-rank percentile of integers, an integer of the data; null of none."""
    if len(values) == 0:
        return None
    rank = max(int(np.ceil(share * len(values))) - 1, 0)
    return int(np.partition(values, rank)[rank])


@dataclass(frozen=True)
class Basis:
    """What overheads are counted over: the sections that are shown, as a mask over all."""

    evidence: Evidence
    owners: Owners
    waits: Held
    inferred: int
    locked: LockedTime
    shown: npt.NDArray[np.bool_]

    def durations(self, rows: Rows, code: int) -> Ints:
        """Lengths of the rows of one code that belong to a shown section, ns."""
        mine = np.flatnonzero(rows.code == code)
        mine = mine[np.append(self.shown, False)[self.owners.of_rows(rows)[mine]]]
        lengths: Ints = rows.end[mine] - rows.start[mine]
        return lengths


def overheads(totals: Mapping[str, int], idle: Mapping[str, int], basis: Basis) -> list[Overhead]:
    """One row a category other than ``kernel`` that takes section time or device idle time, dearest first.

    ``totals`` is section time and ``idle`` device time by category, ns. The distribution is of whole calls (or waits,
    or ranges): a call that runs beside a kernel counts in full there and not at all in the total.
    """
    wall = sum(totals.values())
    out = []
    for category in CATEGORIES[1:]:
        total, idle_ns = totals.get(category, 0), 0 if category in BUSY else idle.get(category, 0)
        durations, evidence = _counted(category, basis)
        if total == 0 and idle_ns == 0 and (durations is None or len(durations) == 0):
            continue
        blockers = _blockers(category, basis)
        out.append(
            Overhead(
                category=category,
                calls=None if durations is None else len(durations),
                total_ns=total,
                mean_ns=None if durations is None or len(durations) == 0 else float(durations.mean()),
                p50_ns=None if durations is None else percentile(durations, 0.50),
                p95_ns=None if durations is None else percentile(durations, 0.95),
                max_ns=None if durations is None else percentile(durations, 1.0),
                section_fraction=None if wall == 0 else total / wall,
                device_idle_ns=idle_ns,
                driver_lock_ns=sum(blockers.values()) if basis.evidence.has_os and category in CALLS else None,
                blockers=blockers,
                evidence=evidence,
            )
        )
    return sorted(out, key=lambda o: (-max(o.total_ns, o.device_idle_ns), CATEGORIES.index(o.category)))


def _counted(category: str, basis: Basis) -> tuple[Ints | None, str]:
    """The lengths of what a category counts (null: nothing countable) and its evidence."""
    evidence = basis.evidence
    if category in CALLS:
        return basis.durations(evidence.calls, CALLS.index(category)), "RUNTIME"
    if category == "mutex_wait":
        mine = basis.shown[basis.waits.section]
        source = "NVTX" if RANGE_ROLES.index("mutex_wait") in evidence.ranges.code else "OSRT"
        return (basis.waits.end - basis.waits.start)[mine], source + ("+inferred" if basis.inferred else "")
    if category == "barrier_wait":
        return basis.durations(evidence.ranges, RANGE_ROLES.index("barrier_wait")), "NVTX"
    if category == "profiler":
        return None, "PROFILER_OVERHEAD"
    if category in BUSY:
        return None, "MEMSET" if category == "memset" else "MEMCPY"
    return None, "derived"


def _blockers(category: str, basis: Basis) -> dict[str, int]:
    if category not in CALLS:
        return {}
    locked = basis.locked
    mine = (locked.category == CALLS.index(category)) & basis.shown[locked.section]
    sums = np.zeros(len(BLOCKERS), np.int64)
    np.add.at(sums, locked.blocker[mine], (locked.end - locked.start)[mine])
    return {name: ns for name, ns in zip(BLOCKERS, sums.tolist(), strict=True) if ns}


def latencies(trace: Trace, work: Work, window: tuple[int, int]) -> list[Latency]:
    """Launch latency by stage of the kernels that start in the window and were launched by a call of their own."""
    calls = trace["api_calls"]
    kernel = np.arange(work.kernels)
    graph = ints(trace["kernels"], "graph_node", -1) >= 0
    rows = kernel[(work.call[: work.kernels] >= 0) & ~graph]
    rows = rows[(work.start[rows] >= window[0]) & (work.start[rows] < window[1])]
    delay = work.start[rows] - ints(calls, "start_ns")[work.call[rows]]
    queued = work.start[rows] - ints(calls, "end_ns")[work.call[rows]]
    out = []
    for detail in np.unique(work.detail[rows]).tolist():
        mine = work.detail[rows] == detail
        waits = queued[mine][queued[mine] > 0]
        out.append(
            Latency(
                work.details[detail] if detail >= 0 else "other",
                int(mine.sum()),
                percentile(delay[mine], 0.50) or 0,
                percentile(delay[mine], 0.95) or 0,
                percentile(delay[mine], 1.0) or 0,
                percentile(waits, 0.50),
                percentile(waits, 0.95),
                percentile(waits, 1.0),
            )
        )
    return sorted(out, key=lambda row: (-row.launches, row.stage))


def memory(trace: Trace, devices: Sequence[int]) -> list[MemoryUse]:
    """Device memory in use over time, from the allocations and frees seen; thinned to what a curve needs."""
    if "memory_events" not in trace.measured:
        return [MemoryUse(device, None, None, "not measured") for device in devices]
    table = trace["memory_events"]
    kind, words = names(table, "memory")
    on_device = np.array([word.startswith("device") for word in words] + [False], bool)[kind]
    owner, time = ints(table, "device"), ints(table, "time_ns")
    size = np.where(flags(table, "free"), -ints(table, "bytes"), ints(table, "bytes"))
    out = []
    for device in devices:
        rows = np.flatnonzero(on_device & (owner == device))
        if len(rows) == 0:
            out.append(MemoryUse(device, None, None, "CUDA_GPU_MEMORY_USAGE_EVENTS"))
            continue
        rows = rows[np.argsort(time[rows], kind="stable")]
        used = np.cumsum(size[rows])
        # Frees of what was allocated before the capture would drive the sum below zero: it starts where they end.
        used = used - min(int(used.min()), 0)
        top = int(np.argmax(used))
        keep = np.unique(np.append(np.linspace(0, len(rows) - 1, min(len(rows), CURVE_POINTS)).astype(np.int64), top))
        out.append(
            MemoryUse(
                device,
                int(used[top]),
                int(time[rows][top]),
                "CUDA_GPU_MEMORY_USAGE_EVENTS",
                tuple(time[rows][keep].tolist()),
                tuple(used[keep].tolist()),
            )
        )
    return out


def gaps(devices: Segments, work: Work) -> list[Gap]:
    """The longest idle stretches of each device with their causes, longest first."""
    out: list[Gap] = []
    busy = np.isin(devices.category, [devices.categories.index(c) for c in BUSY if c in devices.categories])
    for lane in range(len(devices.lanes)):
        rows = np.flatnonzero((devices.lane == lane) & ~busy)
        if len(rows) == 0:
            continue
        fresh = np.append(True, rows[1:] != rows[:-1] + 1)
        first = rows[fresh]
        last = rows[np.append(np.flatnonzero(fresh)[1:] - 1, len(rows) - 1)]
        length = devices.end[last] - devices.start[first]
        longest = _largest(length, devices.start[first])
        mine = np.flatnonzero(work.device == lane)
        by_start, by_end = (
            mine[np.argsort(work.start[mine], kind="stable")],
            mine[np.argsort(work.end[mine], kind="stable")],
        )
        starts, ends = work.start[by_start], work.end[by_end]
        for row in longest.tolist():
            a, b = int(first[row]), int(last[row])
            sums = np.zeros(len(devices.categories), np.int64)
            np.add.at(sums, devices.category[a : b + 1], devices.end[a : b + 1] - devices.start[a : b + 1])
            causes = {word: ns for word, ns in zip(devices.categories, sums.tolist(), strict=True) if ns}
            before = int(np.searchsorted(ends, devices.start[a], side="right")) - 1
            after = int(np.searchsorted(starts, devices.end[b], side="left"))
            out.append(
                Gap(
                    lane,
                    int(devices.start[a]),
                    int(devices.end[b]),
                    max(causes, key=lambda word: (causes[word], -CATEGORIES.index(word))),
                    {word: causes[word] for word in CATEGORIES if word in causes},
                    _name(work, by_end, before),
                    _name(work, by_start, after),
                )
            )
    return sorted(out, key=lambda gap: (gap.start_ns - gap.end_ns, gap.device, gap.start_ns))[:GAPS_KEPT]


def _largest(length: Ints, start: Ints) -> Index:
    """Rows of the longest gaps, longest first, of equals the earliest. Only those that can be among them are sorted."""
    rows = np.arange(len(length))
    if len(rows) > GAPS_KEPT:
        rows = np.flatnonzero(length >= np.partition(length, -GAPS_KEPT)[-GAPS_KEPT])
    return np.asarray(rows[np.lexsort((start[rows], -length[rows]))[:GAPS_KEPT]], np.intp)


def _name(work: Work, rows: Index, at: int) -> str | None:
    if not 0 <= at < len(rows):
        return None
    code = int(work.name[rows[at]])
    return work.names[code] if code >= 0 else None
