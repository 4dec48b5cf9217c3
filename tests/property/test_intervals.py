"""Interval algebra against sets of integers, and over the whole int64 range against points chosen by hand."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from oracle.depth import thorough

from nvprof_tools.timeline import intervals
from nvprof_tools.timeline.intervals import Ints, Spans

LEAST, MOST = -(2**63), 2**63 - 1
SMALL = st.integers(-12, 25)
EDGE = st.sampled_from([LEAST, LEAST + 1, -(2**62), -(2**32), -1, 0, 1, 2**31, 2**32 + 1, 2**62, MOST - 1, MOST])
ANY = st.one_of(EDGE, st.integers(LEAST, MOST))
Rows = list[tuple[int, int]]


def rows_of(time: st.SearchStrategy[int]) -> st.SearchStrategy[Rows]:
    """Rows in any order: some empty, some reversed."""
    return st.lists(st.tuples(time, time), max_size=8)


def columns(rows: Rows) -> tuple[Ints, Ints]:
    return np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows], np.int64)


def spans(rows: Rows) -> Spans:
    return intervals.union(*columns(rows))


def points(rows: Rows) -> set[int]:
    """Every integer that the rows cover."""
    return {t for a, b in rows for t in range(a, b)}


def listed(s: Spans) -> Rows:
    return list(zip(s.start.tolist(), s.end.tolist(), strict=True))


def runs(covered: set[int]) -> Rows:
    """The longest intervals that make up a set of integers."""
    starts = sorted(t for t in covered if t - 1 not in covered)
    ends = sorted(t + 1 for t in covered if t + 1 not in covered)
    return list(zip(starts, ends, strict=True))


@thorough
@given(rows_of(SMALL))
def test_union(rows: Rows) -> None:
    assert listed(spans(rows)) == runs(points(rows))
    assert spans(rows).total == len(points(rows))


@thorough
@given(rows_of(SMALL), rows_of(SMALL))
def test_two_sets(a: Rows, b: Rows) -> None:
    x, y = points(a), points(b)
    assert listed(intervals.intersect(spans(a), spans(b))) == runs(x & y)
    assert listed(intervals.subtract(spans(a), spans(b))) == runs(x - y)


@thorough
@given(rows_of(SMALL), SMALL, SMALL)
def test_complement(rows: Rows, low: int, high: int) -> None:
    assert listed(intervals.complement(spans(rows), low, high)) == runs(set(range(low, high)) - points(rows))


@thorough
@given(rows_of(SMALL), st.lists(SMALL, max_size=8))
def test_covers(rows: Rows, at: list[int]) -> None:
    assert intervals.covers(spans(rows), np.array(at, np.int64)).tolist() == [t in points(rows) for t in at]


@thorough
@given(rows_of(SMALL), SMALL, SMALL)
def test_within(rows: Rows, low: int, high: int) -> None:
    found = intervals.within(spans(rows), low, high)
    assert listed(found) == runs(points(rows) & set(range(low, high)))


@thorough
@given(rows_of(SMALL), rows_of(SMALL))
def test_pairs_are_those_that_overlap(a: Rows, b: Rows) -> None:
    left, right = listed(spans(a)), listed(spans(b))
    i, j = intervals.pairs(spans(a), spans(b))
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == [
        (p, q) for p, x in enumerate(left) for q, y in enumerate(right) if points([x]) & points([y])
    ]


@thorough
@given(rows_of(SMALL), rows_of(SMALL))
def test_pieces_cut_out_may_touch(rows: Rows, pieces: Rows) -> None:
    whole = spans(rows)
    # Every span of `whole` is cut into touching pieces at the borders of `pieces`; then some of them are taken out.
    cuts = sorted({t for piece in pieces for t in piece})
    touching: Rows = []
    for a, b in listed(whole):
        edges = [a, *(t for t in cuts if a < t < b), b]
        touching += list(itertools.pairwise(edges))
    out = touching[::2]
    left = intervals.without(whole, Spans(*columns(out)))
    assert points(listed(left)) == points(rows) - points(out)
    assert all(a < b for a, b in listed(left))


# --- any int64 ------------------------------------------------------------------------------------------------------


def is_canonical(s: Spans) -> bool:
    """Sorted, not empty, neither overlapping nor touching."""
    edges = [t for span in listed(s) for t in span]
    return all(a < b for a, b in itertools.pairwise(edges))


def near(*rows: Rows) -> list[int]:
    """Instants on both sides of every border."""
    borders = {t for r in rows for span in r for t in span}
    return sorted({t + d for t in borders for d in (-1, 0, 1) if LEAST <= t + d <= MOST})


def inside(rows: Rows, t: int) -> bool:
    return any(a <= t < b for a, b in rows)


@thorough
@given(rows_of(ANY), rows_of(ANY))
def test_sets_of_any_int64(a: Rows, b: Rows) -> None:
    x, y = spans(a), spans(b)
    both, rest = intervals.intersect(x, y), intervals.subtract(x, y)
    for s in (x, y, both, rest):
        assert is_canonical(s)
    at = near(a, b)
    for s, wanted in (
        (x, [inside(a, t) for t in at]),
        (both, [inside(a, t) and inside(b, t) for t in at]),
        (rest, [inside(a, t) and not inside(b, t) for t in at]),
    ):
        assert intervals.covers(s, np.array(at, np.int64)).tolist() == wanted
    assert x.total == both.total + rest.total


@thorough
@given(st.lists(st.tuples(ANY, ANY), max_size=12))
def test_sums_never_wrap(rows: Rows) -> None:
    start, end = columns(rows)
    assert intervals.sum_exact(end, start) == sum(b - a for a, b in rows)


@thorough
@given(rows_of(ANY), ANY, ANY)
def test_complement_of_any_int64(rows: Rows, low: int, high: int) -> None:
    left = intervals.complement(spans(rows), low, high)
    assert is_canonical(left)
    inside_wall = intervals.intersect(spans(rows), spans([(low, high)]))
    assert left.total + inside_wall.total == max(0, high - low)
