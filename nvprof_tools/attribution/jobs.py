"""The job view: each proof's partitions summed, with what the log says of synthesis, queueing and slack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nvprof_tools.attribution.categories import CATEGORIES
from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.model.attribution import DeviceView, JobView, PartitionView
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Ints, union


def jobs(partitions: Sequence[PartitionView], placed: Placed | None) -> list[JobView]:
    """One row a job in order of its first partition; without a log only what the sections say."""
    by_job: dict[str | None, list[PartitionView]] = {}
    for partition in partitions:
        by_job.setdefault(partition.job, []).append(partition)
    logged = _logged(placed) if placed is not None else {}
    names = list(dict.fromkeys([*logged, *by_job]))
    first = names[0] if names and names[0] is not None else None
    out = []
    for job in names:
        members = by_job.get(job, [])
        categories = summed(members)
        log = logged.get(job)
        walls = [(p.start_ns, p.end_ns) for p in members if p.start_ns is not None and p.end_ns is not None]
        if log is None and not walls:
            continue
        wall = log["wall"] if log is not None else max(e for _, e in walls) - min(s for s, _ in walls)
        out.append(
            JobView(
                job,
                len(members) if log is None else log["partitions"] or 0,
                wall,
                None if log is None else log["synthesis"],
                None if log is None else log["queue"],
                None if log is None else log["gpu"],
                None if log is None else log["slack"],
                {c: ns for c, ns in categories.items() if ns},
                log is not None and job == first,
            )
        )
    return out


def summed(parts: Sequence[PartitionView | DeviceView]) -> dict[str, int]:
    """Each category's time in all of them, ns."""
    sums = dict.fromkeys(CATEGORIES, 0)
    for part in parts:
        for category, ns in part.categories.items():
            sums[category] += ns
    return sums


def _logged(placed: Placed) -> dict[str | None, dict[str, int | None]]:
    """Figures of each job in the log, ns; null where an event they need never came."""
    names = placed.run.partitions.column("job").to_pylist()
    time = {
        column: placed.time(column)
        for column in ("synth_start_ms", "synth_end_ms", "sent_ms", "picked_ms", "gpu_start_ms", "gpu_end_ms")
    }
    free = _free_before(placed, time["gpu_end_ms"], time["picked_ms"], time["gpu_start_ms"])
    out: dict[str | None, dict[str, int | None]] = {}
    code = {job: i for i, job in enumerate(dict.fromkeys(names))}
    of = np.array([code[job] for job in names], np.int64)
    bounds = np.cumsum(np.bincount(of, minlength=len(code)))[:-1]
    for job, rows in zip(code, np.split(np.argsort(of, kind="stable"), bounds), strict=True):
        begins = np.concatenate([time[c][rows] for c in ("synth_start_ms", "picked_ms", "gpu_start_ms")])
        begins, ends = begins[begins != NEVER], time["gpu_end_ms"][rows]
        ends = ends[ends != NEVER]
        brackets = _both(time["gpu_start_ms"][rows], time["gpu_end_ms"][rows])
        out[job] = {
            "partitions": len(rows),
            "wall": int(ends.max() - begins.min()) if len(ends) and len(begins) else None,
            "synthesis": _sum(time["synth_start_ms"][rows], time["synth_end_ms"][rows]),
            "queue": _sum(time["sent_ms"][rows], time["picked_ms"][rows]),
            "gpu": union(*brackets).total if len(brackets[0]) else None,
            "slack": _slack(time["synth_end_ms"][rows], free[rows]),
        }
    return out


def _both(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    known = (start != NEVER) & (end != NEVER)
    return start[known], end[known]


def _sum(start: Ints, end: Ints) -> int | None:
    low, high = _both(start, end)
    return int(np.maximum(high - low, 0).sum()) if len(low) else None


def _slack(ready: Ints, free: Ints) -> int | None:
    low, high = _both(ready, free)
    return int(np.maximum(high - low, 0).sum()) if len(low) else None


def _free_before(placed: Placed, ended: Ints, picked: Ints, started: Ints) -> Ints:
    """When each partition's worker became free for it: the end of the bracket before it on the same worker."""
    worker = ints(placed.run.partitions, "worker")
    taken = np.where(picked != NEVER, picked, started)
    free = np.full(len(ended), NEVER)
    for own in np.unique(worker).tolist():
        rows = np.flatnonzero((worker == own) & (taken != NEVER))
        ends = np.sort(ended[rows][ended[rows] != NEVER])
        at = np.searchsorted(ends, taken[rows], side="right") - 1
        free[rows] = np.where(at >= 0, ends[np.maximum(at, 0)] if len(ends) else NEVER, NEVER)
    return free
