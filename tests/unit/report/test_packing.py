"""Rows for overlapping intervals, against a walk that tries every row."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.report.packing import outermost, pack

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40).map(
    lambda rows: sorted((s, s + length) for s, length in rows)
)


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([s for s, _ in rows], np.int64), np.array([e for _, e in rows], np.int64)


@given(intervals, st.one_of(st.none(), st.integers(1, 4)))
def test_first_free_row(rows: list[tuple[int, int]], limit: int | None) -> None:
    want, ends = [], []
    for start, end in rows:
        free = next((k for k, e in enumerate(ends) if e <= start), None)
        if free is None and limit is not None and len(ends) >= limit:
            want.append(-1)
            continue
        if free is None:
            ends.append(end)
            free = len(ends) - 1
        ends[free] = end
        want.append(free)
    got = pack(*columns(rows), limit).tolist()
    assert len(set(got) - {-1}) <= max(len(ends), 1)
    for k in set(got) - {-1}:
        mine = [r for r, g in zip(rows, got, strict=True) if g == k]
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(mine))
    assert [g == -1 for g in got] == [w == -1 for w in want]


@given(intervals)
def test_the_deepest_overlap_is_the_number_of_rows(rows: list[tuple[int, int]]) -> None:
    real = [(s, e) for s, e in rows if e > s]
    depth = max((sum(s <= t < e for s, e in real) for t in range(81)), default=0)
    assert len(set(pack(*columns(real)).tolist())) == depth


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=30))
def test_outermost(parts: list[tuple[int, int]]) -> None:
    rows = sorted({(s, s + length) for s, length in parts}, key=lambda r: (r[0], -r[1]))
    got = outermost(*columns(rows)).tolist()
    want = [not any(j < i and rows[j][1] >= end for j in range(i)) for i, (_, end) in enumerate(rows)]
    assert got == want
