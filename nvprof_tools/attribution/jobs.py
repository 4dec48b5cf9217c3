"""The job view: each proof's partitions summed, with what the log says of synthesis, queueing and slack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nvprof_tools.attribution.categories import CATEGORIES
from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.model.attribution import DeviceView, JobView, PartitionView
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Ints, distinct


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
    code = {job: i for i, job in enumerate(dict.fromkeys(names))}
    of = np.array([code[job] for job in names], np.int64)
    count = len(code)
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, NEVER)
    for column in ("synth_start_ms", "picked_ms", "gpu_start_ms"):
        known = time[column] != NEVER
        np.minimum.at(low, of[known], time[column][known])
    np.maximum.at(high, of, time["gpu_end_ms"])
    wall = np.where((high != NEVER) & (low != np.iinfo(np.int64).max), high - low, 0)
    begun = ((high != NEVER) & (low != np.iinfo(np.int64).max)).tolist()
    figures = {
        "synthesis": _sums(of, count, time["synth_start_ms"], time["synth_end_ms"]),
        "queue": _sums(of, count, time["sent_ms"], time["picked_ms"]),
        "gpu": _covered(of, count, time["gpu_start_ms"], time["gpu_end_ms"]),
        "slack": _sums(of, count, time["synth_end_ms"], free),
    }
    partitions, walls = np.bincount(of, minlength=count).tolist(), wall.tolist()
    return {
        job: {
            "partitions": partitions[i],
            "wall": walls[i] if begun[i] else None,
            **{name: values[i] for name, values in figures.items()},
        }
        for job, i in code.items()
    }


def _by_job(job: Ints, count: int, length: Ints) -> list[int | None]:
    """Sums of non-negative lengths by job; null for a job without any."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, job, np.maximum(length, 0))
    some = np.bincount(job, minlength=count) > 0
    return [ns if there else None for ns, there in zip(sums.tolist(), some.tolist(), strict=True)]


def _sums(job: Ints, count: int, start: Ints, end: Ints) -> list[int | None]:
    known = (start != NEVER) & (end != NEVER)
    return _by_job(job[known], count, end[known] - start[known])


def _covered(job: Ints, count: int, start: Ints, end: Ints) -> list[int | None]:
    """Like :func:`_sums`, but what several intervals of a job cover counts once."""
    known = np.flatnonzero((start != NEVER) & (end != NEVER))
    known = known[np.lexsort((start[known], job[known]))]
    job, start, end = job[known], start[known], np.maximum(end, start)[known]
    times = distinct(end)
    # How far each job's intervals reach, those before this one: ranks keep (job, time) in one number.
    reach = np.maximum.accumulate(job * len(times) + np.searchsorted(times, end)) - job * len(times)
    before = np.append(start[:1], times[reach[:-1]] if len(reach) else times)[: len(start)]
    fresh = np.append(True, job[1:] != job[:-1])[: len(job)]
    return _by_job(job, count, end - np.where(fresh, start, np.maximum(start, before)))


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
