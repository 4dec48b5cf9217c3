"""Rows for intervals that overlap: each row holds disjoint intervals, in order of start."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def pack(start: Ints, end: Ints, rows: int | None = None) -> npt.NDArray[np.int32]:
    """The row of each interval, 0 on top, as few as are needed; -1 where ``rows`` are not enough.

    :param start, end: ns, sorted by start. Intervals that touch share a row.

    Only stretches in which intervals overlap are walked one by one; the rest, nearly all in practice, goes in bulk.
    """
    count = len(start)
    row = np.zeros(count, np.int32)
    if count < 2:
        return row
    before = np.maximum.accumulate(end)[:-1]
    fresh = np.concatenate([[True], start[1:] >= before])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], count)
    for begin, stop in zip(first[last - first > 1].tolist(), last[last - first > 1].tolist(), strict=True):
        row[begin:stop] = _walk(start[begin:stop].tolist(), end[begin:stop].tolist(), rows)
    return row


def _walk(starts: list[int], ends: list[int], rows: int | None) -> list[int]:
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    out = []
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        elif rows is not None and used >= rows:
            out.append(-1)
            continue
        else:
            row, used = used, used + 1
        out.append(row)
        heapq.heappush(busy, (end, row))
    return out


def outermost(start: Ints, end: Ints) -> Bools:
    """True for intervals that no earlier one covers; sorted by start, longer first."""
    if not len(start):
        return np.zeros(0, np.bool_)
    before = np.maximum.accumulate(end)
    return np.concatenate([[True], end[1:] > before[:-1]])
