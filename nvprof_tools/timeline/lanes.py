"""Many walls on one axis, so that one sweep serves every section (or device, or thread) at once.

Wall ``k`` becomes a lane of the axis: a stretch as long as the wall, one ns apart from its neighbours so that unions
never join two lanes. Times are clipped to their lane's wall on the way in and mapped back exactly on the way out.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.errors import SourceError
from nvprof_tools.native import interval_functions
from nvprof_tools.native.interval_functions import covering, innermost
from nvprof_tools.timeline.intervals import Index, Ints, Spans, distinct, ranges, union

_AXIS_END = 2**62


@dataclass(frozen=True)
class Lanes:
    """Walls ``[start, end)``, ns, one a lane, and where each lane begins on the axis (``base``, strictly rising)."""

    start: Ints
    end: Ints
    base: Ints

    @staticmethod
    def of(start: Ints, end: Ints) -> Lanes:
        """Lanes for these walls; ``end >= start`` is the caller's to ensure.

        :raises SourceError: the walls together are longer than the axis (146 years).
        """
        length = end.astype(object) - start.astype(object) + 1 if len(start) else np.empty(0, object)
        if sum(length) >= _AXIS_END:
            raise SourceError(
                "walls-too-long",
                "the walls of this run add up to more than 146 years",
                "give a window with --window A:B",
            )
        lengths = length.astype(np.int64)
        return Lanes(start, end, np.cumsum(lengths) - lengths)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def walls(self) -> Spans:
        """Every lane's wall on the axis; empty walls have no span."""
        return union(self.base, self.base + (self.end - self.start))

    def place(self, lane: Index | Ints, start: Ints, end: Ints) -> Spans:
        """The union, on the axis, of intervals that belong to lanes; what lies outside a lane's wall is cut off."""
        low, high, _ = self._on_axis(lane, start, end)
        return union(low, high)

    def _on_axis(self, lane: Index | Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, npt.NDArray[np.bool_] | None]:
        """Intervals cut to their walls, on the axis, without the empty ones; and which of them are left, null: all."""
        low = np.maximum(start, self.start[lane])
        high = np.minimum(end, self.end[lane])
        keep = high > low
        if keep.all():
            left = None
        else:
            lane, low, high, left = lane[keep], low[keep], high[keep], keep
        shift = (self.base - self.start)[lane]
        low += shift
        high += shift
        return low, high, left

    def shifted(self, lane: int, spans: Spans) -> tuple[Spans, npt.NDArray[np.bool_]]:
        """Sorted, disjoint spans of one lane on the axis, cut to its wall, and which of them are left."""
        low = np.maximum(spans.start, self.start[lane])
        high = np.minimum(spans.end, self.end[lane])
        keep = high > low
        shift = self.base[lane] - self.start[lane]
        return Spans(low[keep] + shift, high[keep] + shift), keep

    def innermost(self, lane: Index | Ints, start: Ints, end: Ints, label: Ints) -> tuple[Spans, Ints]:
        """Labelled intervals flattened on the axis: at each instant the latest to begin gives the label.

        The spans are sorted and disjoint but may touch, where labels differ.
        """
        low, high, left = self._on_axis(lane, start, end)
        label = label if left is None else label[left]
        if bool((low[1:] < low[:-1]).any()):
            order = np.argsort(low, kind="stable")
            low, high, label = low[order], high[order], label[order]
        pieces = innermost(low, high, label)
        return _innermost(low, high, label) if pieces is None else (Spans(*pieces[:2]), pieces[2])

    def lift(self, spans: Spans) -> tuple[Index, Ints, Ints]:
        """``(lane, start, end)`` of spans on the axis, back in their walls' time."""
        lane = np.searchsorted(self.base, spans.start, side="right") - 1
        shift = self.start[lane] - self.base[lane]
        return lane, spans.start + shift, spans.end + shift


def _innermost(low: Ints, high: Ints, label: Ints) -> tuple[Spans, Ints]:
    """:meth:`Lanes.innermost` for intervals on the axis that are not empty, in order of ``low``."""
    edges = distinct(low, high)
    if len(edges) < 2:
        return Spans(edges[:0], edges[:0]), label[:0]
    zero = np.zeros(len(low), np.int64)
    top = locate(zero, low, high, np.zeros(len(edges) - 1, np.int64), edges[:-1])
    shown = np.where(top >= 0, label[top], -1)
    fresh = np.append(True, shown[1:] != shown[:-1])
    begins = edges[:-1][fresh]
    ends = np.append(begins[1:], edges[-1])
    some = shown[fresh] >= 0
    return Spans(begins[some], ends[some]), shown[fresh][some]


def locate(owner_key: Ints, owner_start: Ints, owner_end: Ints, key: Ints, at: Ints) -> Index:
    """For each ``(key, at)`` the row of the owner interval of that key that covers ``at``; −1 for none.

    Owners of one key may overlap: the latest to start wins, where it still runs; else the nearest earlier one.
    O((n + m) log n), however deep owners nest and however many of them have ended.
    """
    found = np.full(len(key), -1, np.intp)
    if len(owner_key) == 0 or len(key) == 0:
        return found
    keys, starts, ends = owner_key, owner_start, owner_end
    order = np.arange(len(keys))
    if not _rises(keys, starts):
        order = by_key_and_start(keys, starts)
        keys, starts, ends = keys[order], starts[order], ends[order]
    fresh = np.append(True, keys[1:] != keys[:-1])
    group = np.cumsum(fresh) - 1
    unique_keys = keys[fresh]
    slot = _slots_of(unique_keys, key)
    first = np.append(np.flatnonzero(fresh), len(keys)).astype(np.uint64)
    row = interval_functions.locate(first, starts, ends, slot, at)
    if row is not None:
        return np.append(order, -1)[row]
    known = np.flatnonzero(slot >= 0)
    if len(known) < len(key):
        slot, at = slot[known], at[known]
    if len(known) == 0:
        return found
    low = min(int(starts.min()), int(at.min()))
    high = max(int(ends.max()), int(starts.max()), int(at.max()))
    stride = high - low + 1
    if stride * len(unique_keys) < _AXIS_END:
        # An owner that ends before all else is reversed: as far below as it says it might not fit.
        begin, end, asked = starts - low, np.maximum(ends, low) - low, at - low
    else:  # Ranks replace times, so that (key, time) packs into one int64 whatever the times are.
        times = distinct(starts, ends, at)
        stride = len(times)
        begin, end, asked = (np.searchsorted(times, t) for t in (starts, ends, at))
    base = group * stride
    begin, end, asked = begin + base, end + base, asked + slot * stride
    # An owner of an earlier key ends below every instant of a later one, so one comparison decides.
    row = covering(begin, end, asked)
    if row is None:
        row = _covering(begin, end, asked)
    found[known] = np.append(order, -1)[row]
    return found


def _slots_of(unique_keys: Ints, key: Ints) -> Ints:
    """Each key's place among the sorted ``unique_keys``; −1 where it is none of them."""
    first, last = int(unique_keys[0]), int(unique_keys[-1])
    if last - first <= 2 * len(key) + 1024:
        table = np.full(last - first + 2, -1, np.int64)
        table[unique_keys - first] = np.arange(len(unique_keys))
        # What lies outside goes to the spare entry at the end.
        inside = (key >= first) & (key <= last)
        return np.asarray(table[np.where(inside, key - first, -1)], np.int64)
    slot = np.searchsorted(unique_keys, key)
    return np.where(unique_keys[np.minimum(slot, len(unique_keys) - 1)] == key, slot, -1)


def by_key_and_start(key: Ints, start: Ints) -> Index:
    """``np.lexsort((start, key))``, faster for rows that are in order of their starts and of few keys."""
    first, last = (int(key.min()), int(key.max())) if len(key) else (0, 0)
    if last - first < 1 << 16 and bool((start[1:] >= start[:-1]).all()):
        return np.argsort((key - first).astype(np.uint16), kind="stable")  # numbers of 16 bits go by radix
    return np.lexsort((start, key))


def _rises(key: Ints, start: Ints) -> bool:
    """Whether rows are sorted by key, then by start."""
    same = key[1:] == key[:-1]
    return bool(((key[1:] > key[:-1]) | (same & (start[1:] >= start[:-1]))).all())


def _covering(begin: Ints, end: Ints, asked: Ints) -> Index:
    """For each instant the last interval that covers it, −1 for none; ``begin`` rises."""
    found = np.full(len(asked), -1, np.intp)
    row = np.searchsorted(begin, asked, side="right") - 1
    some = np.flatnonzero(row >= 0)
    some = some[np.maximum.accumulate(end)[row[some]] > asked[some]]
    found[some] = _last_above(end, row[some], asked[some])
    return found


def _last_above(values: Ints, row: Index, least: Ints) -> Index:
    """For each ``(row, least)`` the last ``i <= row`` with ``values[i] > least``; there must be one.

    Maxima over blocks of 1, 2, 4, … values: up from ``row`` to the first block on its left that holds such a value,
    and down again inside it.
    """
    place = row.copy()
    left = np.flatnonzero(values[row] <= least)
    if len(left) == 0:
        return place
    levels = [values]
    while len(levels[-1]) > 1:
        below = levels[-1]
        even = below[: len(below) // 2 * 2].reshape(-1, 2).max(axis=1)
        levels.append(np.append(even, below[-1]) if len(below) % 2 else even)
    node, least = row[left], least[left]
    up = np.zeros(len(left), np.int64)
    going = np.arange(len(left))
    for level, most in enumerate(levels):
        here = node[going]
        odd = (here & 1).astype(bool)
        hit = odd & (most[here - odd] > least[going])
        node[going] = np.where(hit, here - 1, here >> 1)
        up[going[hit]] = level
        going = going[~hit]
        if len(going) == 0:
            break
    for level in range(int(up.max(initial=0)), 0, -1):
        going = np.flatnonzero(up >= level)
        below = levels[level - 1]
        right = node[going] * 2 + 1
        inside = right < len(below)
        take = inside & (below[np.minimum(right, len(below) - 1)] > least[going])
        node[going] = np.where(take, right, right - 1)
    place[left] = node
    return place


def overlapping(
    owner_key: Ints, owner_start: Ints, owner_end: Ints, key: Ints, start: Ints, end: Ints
) -> tuple[Index, Index]:
    """Every ``(row, owner)`` where the interval ``[start, end)`` of a key meets an owner interval of the same key.

    Sorted by row, then by the owner's start.
    """
    none = np.empty(0, np.intp)
    if len(owner_key) == 0 or len(key) == 0:
        return none, none
    order = np.lexsort((owner_start, owner_key))
    keys, starts, ends = owner_key[order], owner_start[order], owner_end[order]
    unique_keys, group = np.unique(keys, return_inverse=True)
    times = distinct(starts, ends, start, end)
    stride = len(times) + 1
    # Owners of one key may overlap: how far those up to each reach is what can be searched; then each is asked.
    reach = np.maximum.accumulate(group * stride + np.searchsorted(times, ends))
    begin = group * stride + np.searchsorted(times, starts)
    slot = np.searchsorted(unique_keys, key)
    known = (slot < len(unique_keys)) & (np.append(unique_keys, 0)[slot] == key) & (end > start)
    low = np.searchsorted(reach, slot * stride + np.searchsorted(times, start), side="right")
    high = np.searchsorted(begin, slot * stride + np.searchsorted(times, end), side="left")
    at, row = ranges(low, np.where(known, high, low))
    meets = (keys[at] == key[row]) & (ends[at] > start[row]) & (starts[at] < end[row])
    return row[meets], order[at[meets]]


def slots(start: Ints, end: Ints) -> tuple[Ints, int]:
    """Deal intervals to as few slots as never overlap: ``(slot of each, how many)``. One step an interval."""
    slot = np.full(len(start), -1, np.int64)
    free: list[tuple[int, int]] = []
    count = 0
    for row in np.lexsort((end, start)).tolist():
        if free and free[0][0] <= int(start[row]):
            _, own = heapq.heappop(free)
        else:
            own, count = count, count + 1
        slot[row] = own
        heapq.heappush(free, (int(end[row]), own))
    return slot, count
