"""Locks inside the driver: how much of each section's API time waits on one, and which call of whom holds it up.

The lock row lies inside a call of one thread; the blocker is the category of the call that another thread of the
process is in at that instant: pinning and unpinning first, since they hold the driver's lock for long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.categories import BLOCKER_ORDER, CALLS
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.attribution.evidence import Evidence, Rows
from nvprof_tools.attribution.sections import Owners, Sections
from nvprof_tools.timeline.intervals import Index, Ints, Spans, intersect, pairs, union, without
from nvprof_tools.timeline.lanes import Lanes

NONE = "none"
BLOCKERS = (*BLOCKER_ORDER, NONE)


@dataclass(frozen=True)
class LockedTime:
    """Disjoint stretches of sections' API time that wait on a driver lock: ``category`` indexes ``CALLS``, ``blocker``
    indexes ``BLOCKERS``; ``at`` are the same on the sections' axis."""

    section: Ints
    start: Ints
    end: Ints
    at: Spans
    category: Ints
    blocker: Ints


def find(evidence: Evidence, sections: Sections, owners: Owners, parts: Segments) -> LockedTime:
    """Driver-lock time of every section, blocker by blocker. Exact: pieces of the partition view's own segments."""
    locks = evidence.driver_locks
    owner = owners.of(locks.thread, locks.start)
    found: list[tuple[Spans, int, Ints]] = []
    busy_threads = _threads_in(evidence.calls)
    for code, category in enumerate(CALLS):
        rows = np.flatnonzero((locks.code == code) & (owner >= 0))
        if len(rows) == 0:
            continue
        waiting = intersect(
            parts.spans_of(category), parts.lanes.place(owner[rows], locks.start[rows], locks.end[rows])
        )
        for spans, blocker in _blamed(waiting, code, parts.lanes, sections, busy_threads):
            found.append((spans, code, np.full(len(spans), blocker, np.int64)))
    return _assembled(found, parts.lanes)


def _assembled(found: list[tuple[Spans, int, Ints]], lanes: Lanes) -> LockedTime:
    none = np.empty(0, np.int64)
    start = np.concatenate([none, *(s.start for s, _, _ in found)])
    end = np.concatenate([none, *(s.end for s, _, _ in found)])
    code = np.concatenate([none, *(np.full(len(s), c, np.int64) for s, c, _ in found)])
    blocker = np.concatenate([none, *(b for _, _, b in found)])
    order = np.argsort(start, kind="stable")
    at = Spans(start[order], end[order])
    lane, low, high = lanes.lift(at)
    return LockedTime(lane.astype(np.int64), low, high, at, code[order], blocker[order])


def _blamed(
    waiting: Spans, code: int, lanes: Lanes, sections: Sections, busy: dict[tuple[int, int, int], Spans]
) -> list[tuple[Spans, int]]:
    """Split waiting time by the first blocker, in order, that another thread of the process is in."""
    out: list[tuple[Spans, int]] = []
    rest = waiting
    for blocker, category in enumerate(BLOCKER_ORDER):
        other = CALLS.index(category)
        # The waiting thread is itself in a call of its own category: there it takes two.
        needed = 2 if other == code else 1
        lane, start, end = lanes.lift(rest)
        inside_start: list[Ints] = []
        inside_end: list[Ints] = []
        for process in np.unique(sections.process[lane]).tolist():
            spans = busy.get((process, other, needed))
            if spans is None or len(spans) == 0:
                continue
            mine = np.flatnonzero(sections.process[lane] == process)
            i, j = pairs(spans, Spans(start[mine], end[mine]))
            shift = (rest.start - start)[mine][j]
            inside_start.append(np.maximum(spans.start[i], start[mine][j]) + shift)
            inside_end.append(np.minimum(spans.end[i], end[mine][j]) + shift)
        if inside_start:
            inside = union(np.concatenate(inside_start), np.concatenate(inside_end))
            out.append((inside, blocker))
            rest = without(rest, inside)
    out.append((rest, BLOCKERS.index(NONE)))
    return out


def _threads_in(calls: Rows) -> dict[tuple[int, int, int], Spans]:
    """``(process, category, n)`` → when at least ``n`` (1 or 2) of its threads are in a call of the category."""
    out: dict[tuple[int, int, int], Spans] = {}
    for process in np.unique(calls.process).tolist():
        for code in range(len(CALLS)):
            rows = np.flatnonzero((calls.code == code) & (calls.process == process))
            if len(rows):
                start, end = _own_union(calls, rows)
                out[process, code, 1] = union(start, end)
                out[process, code, 2] = _twice(start, end)
    return out


def _own_union(calls: Rows, rows: Index) -> tuple[Ints, Ints]:
    """The rows' intervals with each thread's overlapping ones joined, so that a thread counts once."""
    threads, lane = np.unique(calls.thread[rows], return_inverse=True)
    low, high = int(calls.start[rows].min()), int(calls.end[rows].max())
    lanes = Lanes.of(np.full(len(threads), low, np.int64), np.full(len(threads), high, np.int64))
    _, start, end = lanes.lift(lanes.place(lane, calls.start[rows], calls.end[rows]))
    return start, end


def _twice(start: Ints, end: Ints) -> Spans:
    """Time that at least two of the intervals cover."""
    if len(start) < 2:
        return Spans(start[:0], end[:0])
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    # Covered twice: where an interval begins before an earlier one has ended.
    return union(start[1:], np.minimum(end[1:], reach[:-1]))
