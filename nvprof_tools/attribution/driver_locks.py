"""Locks inside the driver: how much of each section's API time waits on one, and which call of whom holds it up.

The lock row lies inside a call of one thread; the blocker is the category of the call that another thread of the
process is in at that instant: pinning and unpinning first, since they hold the driver's lock for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.categories import BLOCKER_ORDER, CALLS
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.attribution.evidence import Evidence, Rows
from nvprof_tools.attribution.sections import Owners, Sections
from nvprof_tools.timeline.intervals import Index, Ints, Spans, intersect, pairs, subtract, union, without
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
    locks, calls = evidence.driver_locks, evidence.calls
    owner, call_owner = owners.of_rows(locks), owners.of_rows(calls)
    if not (owner >= 0).any():
        return _assembled([], parts.lanes)
    rank, ranks = _ranks(owners, locks.thread, owner)
    call_rank, _ = _ranks(owners, calls.thread, call_owner)
    found: list[tuple[Spans, int, Ints]] = []
    busy_threads = _threads_in(calls)
    for code, category in enumerate(CALLS):
        mine = (locks.code == code) & (owner >= 0)
        if not mine.any():
            continue
        rest = parts.spans_of(category)
        for own in range(ranks):
            rows = np.flatnonzero(mine & (rank == own))
            waiting = intersect(rest, parts.lanes.place(owner[rows], locks.start[rows], locks.end[rows]))
            rest = without(rest, waiting)
            own_calls = [
                parts.lanes.place(call_owner[k], calls.start[k], calls.end[k])
                for other in BLOCKER_ORDER
                for k in [np.flatnonzero((call_rank == own) & (call_owner >= 0) & (calls.code == CALLS.index(other)))]
            ]
            for spans, blocker in _blamed(waiting, own_calls, parts.lanes, sections, busy_threads):
                found.append((spans, code, np.full(len(spans), blocker, np.int64)))
    return _assembled(found, parts.lanes)


def _ranks(owners: Owners, thread: Ints, section: Ints) -> tuple[Ints, int]:
    """Each row's thread as a number within its section, and how many numbers there are; −1 for no section."""
    pairs_of = np.unique(np.stack([owners.section, owners.thread]), axis=1)
    first = np.searchsorted(pairs_of[0], pairs_of[0], side="left")
    rank = np.arange(pairs_of.shape[1]) - first
    threads = np.unique(owners.thread)
    stride = len(threads) + 1
    packed = pairs_of[0] * stride + np.searchsorted(threads, pairs_of[1])
    at = np.searchsorted(packed, section * stride + np.searchsorted(threads, thread))
    return np.where(section >= 0, np.append(rank, -1)[np.minimum(at, len(rank))], -1), int(rank.max(initial=-1)) + 1


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
    waiting: Spans, own_calls: list[Spans], lanes: Lanes, sections: Sections, busy: Mapping[tuple[int, int, int], Spans]
) -> list[tuple[Spans, int]]:
    """Split waiting time by the first blocker, in order, that another thread of the process is in.

    ``own_calls[b]`` is when the waiting threads themselves are in a call of blocker ``b``: there it takes two threads.
    """
    out: list[tuple[Spans, int]] = []
    rest = waiting
    for blocker, category in enumerate(BLOCKER_ORDER):
        code = CALLS.index(category)
        alone = subtract(rest, own_calls[blocker])
        inside = _join(
            _within(alone, lanes, sections, busy, (code, 1)),
            _within(intersect(rest, own_calls[blocker]), lanes, sections, busy, (code, 2)),
        )
        if len(inside):
            out.append((inside, blocker))
            rest = without(rest, inside)
    out.append((rest, BLOCKERS.index(NONE)))
    return out


def _join(a: Spans, b: Spans) -> Spans:
    return union(np.concatenate([a.start, b.start]), np.concatenate([a.end, b.end]))


def _within(
    spans: Spans,
    lanes: Lanes,
    sections: Sections,
    busy: Mapping[tuple[int, int, int], Spans],
    wanted: tuple[int, int],
) -> Spans:
    """Axis time in which at least so many threads of the section's process are in a call of the category."""
    lane, start, end = lanes.lift(spans)
    shift = spans.start - start
    starts: list[Ints] = [start[:0]]
    ends: list[Ints] = [end[:0]]
    for process in np.unique(sections.process[lane]).tolist():
        others = busy.get((process, *wanted))
        if others is None or len(others) == 0:
            continue
        mine = np.flatnonzero(sections.process[lane] == process)
        i, j = pairs(others, Spans(start[mine], end[mine]))
        starts.append(np.maximum(others.start[i], start[mine][j]) + shift[mine][j])
        ends.append(np.minimum(others.end[i], end[mine][j]) + shift[mine][j])
    return union(np.concatenate(starts), np.concatenate(ends))


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
