"""The pipeline's log on the trace's clock: an offset, and the bounds that what must hold puts on it.

``trace_ns = log_ms * 1_000_000 + offset_ns``. A millisecond stamp is floored, so the event itself lies in
``[stamp, stamp + 1 ms)``. A partition's own work cannot begin before its bracket does nor end after it, so a pairing of
a unit of work ``[first, last)`` with a bracket ``[start, end]`` allows the offsets

    ``last - end - 1 ms < offset <= first - start``

Every right pairing allows the true offset; the offset that the most units allow is it, and the intersection of what
they allow bounds it. Worked example: work at 5.2…9.1 ms on the trace, bracket 3…6 in the log: the offset is above
9.1 − 6 − 1 = 2.1 and at most 5.2 − 3 = 2.2 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nvprof_tools.timeline.intervals import Index, Ints
from nvprof_tools.timeline.lanes import Lanes

MS = 1_000_000
_NEAR_NS = 25 * MS
_CANDIDATE_NS = 5 * MS
_BIN_NS = 2 * MS
_SAMPLE = 200
_CANDIDATES = 24
_MAX_PAIRS = 20_000_000
_LOW = -(2**61)


@dataclass(frozen=True)
class Work:
    """Units of work on the trace's clock that must lie inside a bracket: ``first``/``last`` ns, and their thread."""

    first: Ints
    last: Ints
    thread: Ints

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Brackets:
    """Brackets of the log: whole ms, floor; ``end`` is ``-1`` where it never came; ``worker`` ``-1`` when unknown."""

    start: Ints
    end: Ints
    worker: Ints

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Fit:
    """A pairing: ``pair[i]`` is the bracket of unit ``i`` or −1; ``low``/``high`` bound the offset, both inclusive."""

    pair: Ints
    matched: int
    low: int
    high: int

    @property
    def middle(self) -> int:
        """The middle of the bounds, ns."""
        return (self.low + self.high) // 2


def fit_near(work: Work, brackets: Brackets, around: int, width: int) -> Fit | None:
    """The best pairing under an offset within ``width`` ns of ``around``; null when no unit fits any bracket."""
    i, j, low, high = _feasible(work, brackets, around, width)
    if len(i) == 0:
        return None
    best = _most_allowed(i, low, high, around, width)
    here = (low <= best) & (best <= high)
    pair = _one_to_one(work, brackets, i[here], j[here])
    rows = np.flatnonzero(pair >= 0)
    start_ns, end_ns = brackets.start[pair[rows]] * MS, brackets.end[pair[rows]] * MS
    lows = np.where(brackets.end[pair[rows]] >= 0, work.last[rows] - end_ns - MS + 1, _LOW)
    return Fit(pair, len(rows), int(lows.max()), int((work.first[rows] - start_ns).min()))


def fit(work: Work, brackets: Brackets, anchor: int | None) -> Fit | None:
    """The best pairing under any offset. An anchor that fits every unit settles it; else all offsets are searched."""
    if len(work) == 0 or len(brackets) == 0:
        return None
    possible = min(len(work), len(brackets))
    best = None if anchor is None else fit_near(work, brackets, anchor, _NEAR_NS)
    if best is not None and best.matched == possible:
        return best
    for around in _candidates(work, brackets):
        found = fit_near(work, brackets, around, _CANDIDATE_NS)
        if found is not None and (best is None or found.matched > best.matched):
            best = found
    return best


def drift_bounds(work: Work, brackets: Brackets, pair: Ints) -> tuple[float, float] | None:
    """Slope of trace over log time beyond 1, in ppm, that a pairing allows; null when it cannot bound it.

    The offsets allowed near the beginning and near the end of the run bound how far they can drift apart.
    """
    rows = np.flatnonzero((pair >= 0) & (brackets.end[np.maximum(pair, 0)] >= 0))
    if len(rows) < 6:
        return None
    at = work.first[rows]
    order = np.argsort(at, kind="stable")
    rows, at = rows[order], at[order]
    third = len(rows) // 3
    high = work.first[rows] - brackets.start[pair[rows]] * MS
    low = work.last[rows] - (brackets.end[pair[rows]] + 1) * MS + 1
    apart = int(at[-third:].mean() - at[:third].mean())
    if apart <= 0:
        return None
    least = int(low[-third:].max()) - int(high[:third].min())
    most = int(high[-third:].min()) - int(low[:third].max())
    return least / apart * 1e6, most / apart * 1e6


def _feasible(work: Work, brackets: Brackets, around: int, width: int) -> tuple[Index, Index, Ints, Ints]:
    """Pairs whose allowed offsets meet ``around ± width``: unit, bracket, lowest and highest offset."""
    order = np.argsort(brackets.start, kind="stable")
    start = brackets.start[order] * MS
    closed = brackets.end[order] >= 0
    longest = int((brackets.end[order] - brackets.start[order])[closed].max(initial=0) + 1) * MS
    length = work.last - work.first
    # A bracket must begin before the unit and, being no longer than the longest, not too long before its end.
    until = np.searchsorted(start, work.first - (around - width), side="right")
    since = np.searchsorted(start, work.last - (around + width) - MS - longest, side="left")
    since = np.where(closed.all(), since, 0)
    count = np.maximum(until - since, 0)
    if int(count.sum()) > _MAX_PAIRS:
        return _feasible(work, brackets, around, width // 2)
    i = np.repeat(np.arange(len(work)), count)
    j = np.repeat(since, count) + np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    j = order[j]
    high = work.first[i] - brackets.start[j] * MS
    low = np.where(brackets.end[j] >= 0, high + length[i] - (brackets.end[j] - brackets.start[j] + 1) * MS + 1, _LOW)
    keep = (low <= high) & (high >= around - width) & (low <= around + width)
    return i[keep], j[keep], low[keep], high[keep]


def _most_allowed(unit: Index, low: Ints, high: Ints, around: int, width: int) -> int:
    """The offset that the most distinct units allow; of equals, the one nearest ``around`` or its stretch's middle."""
    values, lane = np.unique(unit, return_inverse=True)
    wall = np.full(len(values), around - width, np.int64)
    lanes = Lanes.of(wall, wall + 2 * width + 1)
    # One unit's alternatives may overlap: their union counts it once.
    _, begins, ends = lanes.lift(lanes.place(lane, low, high + 1))
    grid, inverse = np.unique(np.concatenate([begins, ends]), return_inverse=True)
    depth = np.zeros(len(grid), np.int64)
    np.add.at(depth, inverse, np.repeat(np.array([1, -1], np.int64), [len(begins), len(ends)]))
    depth = np.cumsum(depth)
    top = np.flatnonzero(depth == depth.max())
    left, right = grid[top], grid[top + 1] - 1
    distance = np.maximum(np.maximum(left - around, around - right), 0)
    pick = int(np.argmin(distance))
    return around if distance[pick] == 0 else (int(left[pick]) + int(right[pick])) // 2


def _one_to_one(work: Work, brackets: Brackets, i: Index, j: Index) -> Ints:
    """Give each unit at most one bracket and the other way round: a thread keeps its worker, the tightest fit first."""
    slack = (brackets.end[j] - brackets.start[j]) * MS - (work.last[i] - work.first[i])
    usual = _usual_worker(work.thread[i], brackets.worker[j], len(brackets))
    order = np.lexsort((j, i, np.abs(slack), brackets.worker[j] != usual))
    pair = np.full(len(work), -1, np.int64)
    taken = np.zeros(len(brackets), bool)
    for row in order.tolist():  # one step a unit or two, not an event
        a, b = int(i[row]), int(j[row])
        if pair[a] < 0 and not taken[b]:
            pair[a] = b
            taken[b] = True
    return pair


def _usual_worker(thread: Ints, worker: Ints, size: int) -> Ints:
    """For each pair the worker that its thread is seen with most often."""
    key = thread * (size + 2) + worker + 1
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    seen = counts[inverse]
    order = np.lexsort((seen, thread))
    last = np.append(thread[order][1:] != thread[order][:-1], True) if len(thread) else np.empty(0, bool)
    best = order[last]
    return np.asarray(worker[best][np.searchsorted(thread[best], thread)], np.int64)


def _candidates(work: Work, brackets: Brackets) -> list[int]:
    """Offsets under which many begin-to-begin distances agree, most first."""
    rows = np.unique(np.linspace(0, len(work) - 1, min(len(work), _SAMPLE)).astype(np.int64))
    high = (work.first[rows][:, None] - brackets.start[None, :] * MS).ravel()
    length = np.repeat(work.last[rows] - work.first[rows], len(brackets))
    room = np.tile(np.where(brackets.end >= 0, (brackets.end - brackets.start + 1) * MS, 2**60), len(rows))
    high = high[length < room]
    if len(high) == 0:
        return []
    bins, counts = np.unique(high // _BIN_NS, return_counts=True)
    # A true offset may straddle two bins.
    follows = np.append(bins[1:] == bins[:-1] + 1, False)
    score = counts + np.where(follows, np.append(counts[1:], 0), 0)
    order = np.lexsort((bins, -score))[:_CANDIDATES]
    return [int(b) * _BIN_NS + _BIN_NS for b in bins[order]]
