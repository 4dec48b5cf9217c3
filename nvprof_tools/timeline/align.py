"""The pipeline's log on the trace's clock: an offset, and the bounds that what must hold puts on it.

``trace_ns = log_ms * 1_000_000 + offset_ns``, and on long runs a drift on top. A millisecond stamp is floored, so the
event itself lies in ``[stamp, stamp + 1 ms)``. A partition's own work cannot begin before its bracket does nor end
after it, so a pairing of a unit of work ``[first, last)`` with a bracket ``[start, end]`` allows the offsets

    ``last - end - 1 ms < offset <= first - start``

Every right pairing allows the true offset; the offset that the most units allow is it, and the intersection of what
they allow bounds it. Worked example: work at 5.2…9.1 ms on the trace, bracket 3…6 in the log: the offset is above
9.1 − 6 − 1 = 2.1 and at most 5.2 − 3 = 2.2 ms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nvprof_tools.timeline.intervals import Index, Ints, distinct
from nvprof_tools.timeline.lanes import Lanes

MS = 1_000_000
_NEAR_NS = 25 * MS
_CANDIDATE_NS = 5 * MS
_BIN_NS = 2 * MS
_SAMPLE = 400
_CANDIDATES = 24
_MAX_PAIRS = 20_000_000
_FAR = 2**61
_MOST_OPEN = 256
_LONG_NS = 5_000 * MS
_STRETCHES = 64
_LEAST_STRETCH = 6
_LARGEST_STRETCH = 256
_SEEDS = 4
_REFINEMENTS = 4
_TRIED_STRETCHES = 6
_MANY = 5_000
_NEARLY_ALL = 0.98
_MOST_DRIFT = 5_000
"""One part in so many, 200 ppm: two clocks of one machine stay within it."""


@dataclass(frozen=True)
class Work:
    """Units of work on the trace's clock that must lie inside a bracket: ``first``/``last`` ns, and their thread."""

    first: Ints
    last: Ints
    thread: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Index) -> Work:
        """The chosen units, in the order given."""
        return Work(self.first[rows], self.last[rows], self.thread[rows])


@dataclass(frozen=True)
class Brackets:
    """Brackets of the log: whole ms, floor; ``end`` is ``-1`` where it never came; ``worker`` ``-1`` when unknown.

    ``drift_ppb``: how much faster the trace's clock runs, in parts of 10⁹; log time 0 stays where it is.
    """

    start: Ints
    end: Ints
    worker: Ints
    drift_ppb: int = 0

    def __len__(self) -> int:
        return len(self.start)

    @property
    def closed(self) -> npt.NDArray[np.bool_]:
        """Which brackets have an end."""
        return np.greater_equal(self.end, 0)

    @property
    def begins(self) -> Ints:
        """The earliest instant of each start, ns of trace time from log time 0."""
        return stretched(self.start, self.drift_ppb)

    @property
    def limits(self) -> Ints:
        """The last ns that each end's stamp stands for; far away where there is no end."""
        return np.where(self.closed, stretched(self.end + 1, self.drift_ppb) - 1, _FAR)


def stretched(stamp_ms: Ints, drift_ppb: int) -> Ints:
    """Log stamps, whole ms, as ns of the trace's clock from log time 0. Exact integers for 30 years of log."""
    return stamp_ms * MS + stamp_ms * drift_ppb // 1000


@dataclass(frozen=True)
class Fit:
    """A pairing: ``pair[i]`` is the bracket of unit ``i`` or −1; ``low``/``high`` bound the offset, both inclusive."""

    pair: Ints
    matched: int
    low: int
    high: int
    drift_ppb: int = 0
    spread: int | None = None
    """How far off any stamp can be, ns; null: as far as the bounds say."""

    @property
    def middle(self) -> int:
        """The middle of the bounds, ns."""
        return (self.low + self.high) // 2


def fit_near(work: Work, brackets: Brackets, around: int, width: int) -> Fit | None:
    """The best pairing under an offset within ``width`` ns of ``around``; null when no unit fits any bracket."""
    i, j, low, high = _feasible(work, brackets, around, width)
    if len(i) == 0:
        return None
    best, most = np.empty(0, np.int64), 0
    stretches = _stretches(i, j, low, high, around, width)
    for bound, offset in stretches[: _TRIED_STRETCHES if len(work) < _MANY else 1]:
        if most >= bound:
            break
        here = (low <= offset) & (offset <= high)
        pair = _one_to_one(work, brackets, i[here], j[here])
        matched = int((pair >= 0).sum())
        if matched > most:
            best, most = pair, matched
    rows = np.flatnonzero(best >= 0)
    lows = work.last[rows] - brackets.limits[best[rows]]
    highs = work.first[rows] - brackets.begins[best[rows]]
    return Fit(best, most, int(lows.max()), int(highs.min()), brackets.drift_ppb)


def fit(work: Work, brackets: Brackets, anchor: int | None) -> Fit | None:
    """The best pairing under any offset, and any drift a long run shows.

    An anchor that fits every unit, or nearly all of many, settles it; else all offsets are searched; else the offset is
    followed through the run.
    """
    if len(work) == 0 or len(brackets) == 0:
        return None
    best = _searched(work, brackets, anchor)
    return None if best is None else settled(work, brackets, best)


def _searched(work: Work, brackets: Brackets, anchor: int | None) -> Fit | None:
    possible = min(len(work), len(brackets))
    best = None
    if anchor is not None:
        for width in (MS, _NEAR_NS):
            best = fit_near(work, brackets, anchor, width)
            if best is not None and best.matched == possible:
                return best
    if best is not None and best.matched >= _NEARLY_ALL * possible:
        return _refined(work, brackets, best)
    for around in _ranked(work.take(_evenly(len(work), _SAMPLE)), brackets):
        best = _better(best, fit_near(work, brackets, around, _CANDIDATE_NS))
        if best is not None and best.matched == possible:
            break
    if best is not None and best.matched == possible:
        return best
    if best is not None:
        best = _refined(work, brackets, best)
    for seed, drift_ppb in _followed(work, brackets, anchor) if best is None or best.matched < possible else ():
        if best is not None and best.matched == possible:
            break
        best = _better(best, fit_near(work, replace(brackets, drift_ppb=drift_ppb), seed, _NEAR_NS))
    return best


def _refined(work: Work, brackets: Brackets, best: Fit) -> Fit:
    """The same pairing with the drift that its own pairs show, as long as that pairs more."""
    for _ in range(_REFINEMENTS):
        corridor = _Corridor.of(work, brackets, best.pair)
        if corridor is None:
            break
        drift_ppb = corridor.middle_of_bounds()
        if abs(drift_ppb) > 10**9 // _MOST_DRIFT:
            break
        turned = replace(brackets, drift_ppb=drift_ppb)
        found = fit_near(work, turned, corridor.offset(drift_ppb), _CANDIDATE_NS)
        if found is None or found.matched <= best.matched:
            break
        best = found
    return best


def settled(work: Work, brackets: Brackets, best: Fit) -> Fit:
    """A long run's pairing with the drift in the middle of those that all its pairs allow, and the uncertainty over the
    whole run: the farthest that any allowed offset and drift can put a stamp from the chosen ones."""
    corridor = _Corridor.of(work, brackets, best.pair)
    if corridor is None:
        return best
    allowed = corridor.drifts()
    if allowed is None:
        return best
    lowest, highest = allowed
    drift_ppb = 0 if lowest <= 0 <= highest and not best.drift_ppb else (lowest + highest) // 2
    low, high = corridor.offsets(drift_ppb)
    if low > high:
        return best
    return replace(best, low=low, high=high, drift_ppb=drift_ppb, spread=corridor.spread(drift_ppb, (low + high) // 2))


@dataclass(frozen=True)
class _Corridor:
    """The straight lines (offset, drift) that keep every pair of a pairing inside its bracket.

    ``high``/``low`` bound the offset at stamp ``start``/``end`` (ms) under no drift.
    """

    start: Ints
    end: Ints
    high: Ints
    low: Ints

    @staticmethod
    def of(work: Work, brackets: Brackets, pair: Ints) -> _Corridor | None:
        """Of the closed brackets of a run that is long enough to show a drift; else null."""
        rows = np.flatnonzero((pair >= 0) & brackets.closed[pair])
        if len(rows) < _LEAST_STRETCH:
            return None
        start, end = brackets.start[pair[rows]], brackets.end[pair[rows]] + 1
        if int(start.max() - start.min()) * MS < _LONG_NS:
            return None
        return _Corridor(start, end, work.first[rows] - start * MS, work.last[rows] - end * MS + 1)

    def offsets(self, drift_ppb: int) -> tuple[int, int]:
        """The lowest and the highest offset that all pairs allow under a drift; crossed when there is none."""
        return (
            int((self.low - self.end * drift_ppb // 1000).max()),
            int((self.high - self.start * drift_ppb // 1000).min()),
        )

    def room(self, drift_ppb: int) -> int:
        """How far apart they are: concave in the drift."""
        low, high = self.offsets(drift_ppb)
        return high - low

    def drifts(self) -> tuple[int, int] | None:
        """The lowest and the highest drift that all pairs allow, ppb; null when none does."""
        most = 10**9 // _MOST_DRIFT
        low, high = -most, most
        while high - low > 2:  # the room is concave: its top is where it stops to grow
            third = (high - low) // 3
            a, b = low + third, high - third
            low, high = (a, high) if self.room(a) < self.room(b) else (low, b)
        top = max(range(low, high + 1), key=self.room)
        if self.room(top) < 0:
            return None
        return self._edge(top, -most), self._edge(top, most)

    def _edge(self, inside: int, outside: int) -> int:
        if self.room(outside) >= 0:
            return outside
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if self.room(middle) >= 0 else (inside, middle)
        return inside

    def spread(self, drift_ppb: int, offset: int) -> int:
        """How far any allowed line lies from the chosen one, at the first or the last stamp."""
        allowed = self.drifts()
        farthest = 0
        for drift in np.linspace(*allowed, 33).astype(np.int64).tolist() if allowed else []:
            low, high = self.offsets(drift)
            for stamp in (int(self.start.min()), int(self.end.max())):
                turn = stamp * (drift - drift_ppb) // 1000
                if low <= high:
                    farthest = max(farthest, abs(low + turn - offset), abs(high + turn - offset))
        return farthest

    def middle_of_bounds(self) -> int:
        """The drift that the middles of the bounds show by least squares, ppb."""
        middle = (self.high + self.low) / 2
        return round(float(np.polyfit((self.start + self.end) / 2, middle - middle[0], 1)[0]) * 1000)

    def offset(self, drift_ppb: int) -> int:
        """The offset in the middle of the bounds on average, under a drift."""
        turned = (self.high - self.start * drift_ppb // 1000 + self.low - self.end * drift_ppb // 1000) / 2
        return round(float(np.median(turned)))


def _better(known: Fit | None, found: Fit | None) -> Fit | None:
    return found if found is not None and (known is None or found.matched > known.matched) else known


def _followed(work: Work, brackets: Brackets, anchor: int | None) -> list[tuple[int, int]]:
    """``(offset, drift)`` that fit stretch after stretch of a long run, each stretch near the offset before it."""
    order = np.argsort(work.first, kind="stable")
    if len(order) < 2 * _LEAST_STRETCH or int(work.first[order[-1]] - work.first[order[0]]) < _LONG_NS:
        return []
    stretches = np.array_split(order, min(_STRETCHES, len(order) // _LEAST_STRETCH))
    stretches = [rows[:_LARGEST_STRETCH] for rows in stretches]
    head = work.take(stretches[0])
    out = []
    for seed in ([] if anchor is None else [anchor]) + _ranked(head, brackets):
        at: list[float] = []
        bounds: list[tuple[int, int]] = []
        offset, before = seed, int(head.first[0])
        for rows in stretches:
            part = work.take(rows)
            found = fit_near(part, brackets, offset, _CANDIDATE_NS + (int(part.first[0]) - before) // _MOST_DRIFT)
            if found is None or found.matched * 2 < len(part):
                continue
            offset, before = found.middle, int(part.first[0])
            at.append(float(np.mean(brackets.start[found.pair[found.pair >= 0]])))
            bounds.append((found.low, found.high))
        if len(at) >= 2 and at[-1] > at[0]:
            middle = np.array([(low + high) / 2 for low, high in bounds])
            slope, begin = np.polyfit(np.array(at), middle - middle[0], 1)
            drift_ppb = round(slope * 1000)
            if abs(drift_ppb) <= 10**9 // _MOST_DRIFT:
                out.append((round(begin + middle[0]), drift_ppb))
    return out


def _feasible(work: Work, brackets: Brackets, around: int, width: int) -> tuple[Index, Index, Ints, Ints]:
    """Pairs whose allowed offsets meet ``around ± width``: unit, bracket, lowest and highest offset."""
    begins, limits = brackets.begins, brackets.limits
    closed = np.flatnonzero(brackets.closed)
    closed = closed[np.argsort(begins[closed], kind="stable")]
    longest = int((limits[closed] - begins[closed]).max(initial=0))
    # A bracket must begin before the unit and, being no longer than the longest, not too long before its end.
    until = np.searchsorted(begins[closed], work.first - (around - width), side="right")
    since = np.searchsorted(begins[closed], work.last - (around + width) - longest, side="left")
    count = np.maximum(until - since, 0)
    if int(count.sum()) > _MAX_PAIRS and width > MS:
        return _feasible(work, brackets, around, width // 2)
    i = np.repeat(np.arange(len(work)), count)
    at = np.repeat(since, count) + np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    # Brackets without an end are few: they are asked for every unit.
    never = np.flatnonzero(~brackets.closed)[:_MOST_OPEN]
    i = np.concatenate([i, np.repeat(np.arange(len(work)), len(never))])
    j = np.concatenate([closed[at], np.tile(never, len(work))])
    high, low = work.first[i] - begins[j], work.last[i] - limits[j]
    keep = (low <= high) & (high >= around - width) & (low <= around + width)
    return i[keep], j[keep], low[keep], high[keep]


def _stretches(unit: Index, bracket: Index, low: Ints, high: Ints, around: int, width: int) -> list[tuple[int, int]]:
    """``(bound, offset)`` of the most promising stretches of offsets, best first.

    Under one offset no more pairs can be made than distinct units are allowed, nor than distinct brackets allow some.
    Of equal bounds the stretch nearest ``around`` comes first; its offset is ``around`` itself or its middle.
    """
    starts, ends, deltas = [], [], []
    for which in (unit, bracket):
        values, lane = np.unique(which, return_inverse=True)
        wall = np.full(len(values), around - width, np.int64)
        lanes = Lanes.of(wall, wall + 2 * width + 1)
        # One unit's alternatives may overlap: their union counts it once.
        _, begin, end = lanes.lift(lanes.place(lane, low, high + 1))
        starts.append(begin)
        ends.append(end)
    grid = distinct(*starts, *ends)
    for begin, end in zip(starts, ends, strict=True):
        begin.sort()
        end.sort()
        deltas.append(np.searchsorted(begin, grid, side="right") - np.searchsorted(end, grid, side="right"))
    bound = np.minimum(*deltas)[:-1]
    left, right = grid[:-1], grid[1:] - 1
    distance = np.maximum(np.maximum(left - around, around - right), 0)
    order = np.lexsort((distance, -bound))[:_TRIED_STRETCHES]
    offsets = np.where(distance == 0, around, (left + right) // 2)
    return [(int(bound[k]), int(offsets[k])) for k in order.tolist() if bound[k] > 0]


def _one_to_one(work: Work, brackets: Brackets, i: Index, j: Index) -> Ints:
    """Give each unit at most one bracket and the other way round: a thread keeps its worker, the tightest fit first."""
    slack = np.where(
        brackets.closed[j], (brackets.end[j] - brackets.start[j]) * MS - work.last[i] + work.first[i], _FAR
    )
    usual = _usual_worker(work.thread[i], brackets.worker[j], len(brackets))
    # Of brackets that never ended, the latest to begin before the unit is meant.
    delay = work.first[i] - brackets.begins[j]
    order = np.lexsort((j, i, delay, np.abs(slack), brackets.worker[j] != usual))
    pair = np.full(len(work), -1, np.int64)
    taken = np.zeros(len(brackets), bool)
    # Where a unit and a bracket have only each other there is nothing to choose.
    alone = (np.bincount(i, minlength=len(work))[i] == 1) & (np.bincount(j, minlength=len(brackets))[j] == 1)
    pair[i[alone]] = j[alone]
    taken[j[alone]] = True
    for row in order[~alone[order]].tolist():  # one step a unit or two, not an event
        a, b = int(i[row]), int(j[row])
        if pair[a] < 0 and not taken[b]:
            pair[a] = b
            taken[b] = True
    if (pair >= 0).all() or taken.all():
        return pair
    own = np.flatnonzero((brackets.worker[j] == usual) & (usual >= 0) & brackets.closed[j])
    ordered = _in_order(work, brackets, i[own], j[own])
    return ordered if np.count_nonzero(ordered >= 0) > np.count_nonzero(pair >= 0) else pair


def _in_order(work: Work, brackets: Brackets, i: Index, j: Index) -> Ints:
    """Give each unit the first bracket of its worker that it fits and none before it has. A worker does one thing after
    another, so units and brackets keep their order: no other pairing has more. Short units among stamps of whole
    milliseconds fit several, and then the tightest may be another's."""
    pair = np.full(len(work), -1, np.int64)
    at = np.lexsort((brackets.start, brackets.worker))
    rank = np.empty(len(at), np.int64)
    rank[at] = np.arange(len(at))
    low, high = np.full(len(work), len(at), np.int64), np.full(len(work), -1, np.int64)
    np.minimum.at(low, i, rank[j])
    np.maximum.at(high, i, rank[j])
    units = np.flatnonzero(high >= 0)
    units = units[np.lexsort((work.first[units], brackets.worker[at[low[units]]]))]
    following = 0
    for unit, least, most in zip(units.tolist(), low[units].tolist(), high[units].tolist(), strict=True):
        following = max(following, least)
        if following <= most:  # brackets of other workers lie in other ranks
            pair[unit] = at[following]
            following += 1
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


def _ranked(work: Work, brackets: Brackets) -> list[int]:
    """The candidates under which the most units find a bracket, best first."""
    tried = [(fit_near(work, brackets, around, _CANDIDATE_NS), around) for around in _candidates(work, brackets)]
    matched = {around: 0 if found is None else found.matched for found, around in tried}
    return sorted(matched, key=lambda around: -matched[around])[:_SEEDS]


def _evenly(count: int, most: int) -> Index:
    """At most ``most`` row numbers spread over ``count``."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.intp))


def _candidates(work: Work, brackets: Brackets) -> list[int]:
    """Offsets under which many begin-to-begin distances agree, most first."""
    rows = _evenly(len(work), _SAMPLE)
    high = (work.first[rows][:, None] - brackets.start[None, :] * MS).ravel()
    length = np.repeat(work.last[rows] - work.first[rows], len(brackets))
    room = np.tile(np.where(brackets.closed, (brackets.end - brackets.start + 1) * MS, _FAR), len(rows))
    high = high[length < room]
    if len(high) == 0:
        return []
    bins, counts = np.unique(high // _BIN_NS, return_counts=True)
    # A true offset may straddle two bins.
    follows = np.append(bins[1:] == bins[:-1] + 1, False)
    score = counts + np.where(follows, np.append(counts[1:], 0), 0)
    order = np.lexsort((bins, -score))[:_CANDIDATES]
    return [int(b) * _BIN_NS + _BIN_NS for b in bins[order]]
