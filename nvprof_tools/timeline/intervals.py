"""Half-open interval algebra on sorted, disjoint spans: vectorised, integers in, integers out.

A :class:`Spans` is two int64 arrays of one length, ``start < end`` for every row, sorted, no two rows overlapping or
touching. Everything here is O(n log n) in numpy; nothing loops over rows in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nvprof_tools.native import interval_functions

Ints: TypeAlias = npt.NDArray[np.int64]
Index: TypeAlias = npt.NDArray[np.intp]
Codes: TypeAlias = npt.NDArray[np.int32]
"""Numbers of a short list: lanes, categories, sub-keys."""


@dataclass(frozen=True)
class Spans:
    """Sorted, disjoint, non-touching, non-empty half-open intervals in ns."""

    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Sum of the lengths, ns: the measure of the set. Exact for any int64 bounds."""
        return sum_exact(self.end, self.start)


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def sum_exact(end: Ints, start: Ints) -> int:
    """``sum(end - start)`` as a Python int, right for any int64 values: halves are added apart, so nothing wraps."""
    high = int(np.sum(end >> 32)) - int(np.sum(start >> 32))
    low = int(np.sum(end & 0xFFFFFFFF)) - int(np.sum(start & 0xFFFFFFFF))
    return (high << 32) + low


def distinct(*values: Ints) -> Ints:
    """The values of all arrays, sorted, each once. ``np.unique`` hashes first, which costs many sorts."""
    joined: Ints = np.concatenate(values)
    joined.sort()
    if len(joined) < 2:
        return joined
    once: Ints = joined[np.append(True, joined[1:] != joined[:-1])]
    return once


def union(start: Ints, end: Ints) -> Spans:
    """The set of time that any ``[start, end)`` covers; empty and reversed rows cover nothing."""
    keep = end > start
    if not keep.all():
        start, end = start[keep], end[keep]
    if len(start) == 0:
        return EMPTY
    if len(start) > 1 and not bool((start[1:] >= start[:-1]).all()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.empty(len(start), bool)
    first[0] = True
    np.greater(start[1:], reach[:-1], out=first[1:])
    at = np.flatnonzero(first)
    last = np.append(at[1:] - 1, len(start) - 1)
    return Spans(start[at].astype(np.int64, copy=False), reach[last].astype(np.int64, copy=False))


def pairs(a: Spans, b: Spans) -> tuple[Index, Index]:
    """Row numbers ``(i, j)`` of every overlapping pair, sorted by ``j`` then ``i``; ``b`` may be in any order."""
    low = np.searchsorted(a.end, b.start, side="right")
    high = np.searchsorted(a.start, b.end, side="left")
    return ranges(low, high)


def ranges(low: Index, high: Index) -> tuple[Index, Index]:
    """Every number ``i`` of each range ``[low[j], high[j])`` with its ``j``, in order of ``j`` then ``i``; a reversed
    range is empty."""
    count = np.maximum(high - low, 0)
    first = np.cumsum(count) - count
    j = np.repeat(np.arange(len(count), dtype=np.intp), count)
    i = np.arange(len(j), dtype=np.intp)
    i += np.repeat(low - first, count)
    return i, j


def intersect(a: Spans, b: Spans) -> Spans:
    """Time in both."""
    if len(a) == 0 or len(b) == 0:
        return EMPTY
    i, j = pairs(a, b)
    return Spans(np.maximum(a.start[i], b.start[j]), np.minimum(a.end[i], b.end[j]))


def subtract(a: Spans, b: Spans) -> Spans:
    """Time in ``a`` and not in ``b``."""
    found = interval_functions.subtract(a.start, a.end, b.start, b.end)
    if found is not None:
        return Spans(*found)
    return without(a, intersect(a, b))


def without(a: Spans, inside: Spans) -> Spans:
    """``a`` with ``inside`` cut out, where every piece of ``inside`` lies within one row of ``a``.

    The pieces are sorted and disjoint and may touch. What is left lies between consecutive boundaries, and both lists
    of boundaries stay in step once sorted.
    """
    if len(inside) == 0:
        return a
    start = np.concatenate([a.start, inside.end])
    end = np.concatenate([a.end, inside.start])
    start.sort(kind="stable")
    end.sort(kind="stable")
    keep = end > start
    return Spans(start[keep], end[keep])


def within(a: Spans, low: int, high: int) -> Spans:
    """What of ``a`` lies in ``[low, high)``: all but its ends is shared."""
    if high <= low:
        return EMPTY
    first, last = int(np.searchsorted(a.end, low, side="right")), int(np.searchsorted(a.start, high, side="left"))
    start, end = a.start[first:last], a.end[first:last]
    if len(start) and (start[0] < low or end[-1] > high):
        start, end = np.maximum(start, low), np.minimum(end, high)
    return Spans(start, end)


def complement(a: Spans, low: int, high: int) -> Spans:
    """``[low, high)`` without ``a``."""
    return subtract(union(np.array([low], np.int64), np.array([high], np.int64)), a)


def covers(a: Spans, at: Ints) -> npt.NDArray[np.bool_]:
    """For each instant, whether ``a`` covers it."""
    if len(a) == 0:
        return np.zeros(len(at), bool)
    i = np.searchsorted(a.start, at, side="right") - 1
    return np.asarray((i >= 0) & (at < a.end[np.maximum(i, 0)]))
