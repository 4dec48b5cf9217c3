"""Many walls on one axis, against each wall by itself as a set of integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.depth import thorough

from nvprof_tools.errors import SourceError
from nvprof_tools.timeline.intervals import Ints, Spans, union
from nvprof_tools.timeline.lanes import Lanes, locate

LEAST, MOST = -(2**63), 2**63 - 1
TIME = st.integers(-10, 20)
Row = tuple[int, int, int]
"""Lane, start, end."""


@st.composite
def walls_and_rows(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[Row]]:
    """One to three walls, some empty, and rows that belong to one each, some outside it."""
    pairs = draw(st.lists(st.tuples(TIME, TIME), min_size=1, max_size=3))
    walls = [(min(p), max(p)) for p in pairs]
    lane = st.integers(0, len(walls) - 1)
    return walls, draw(st.lists(st.tuples(lane, TIME, TIME), max_size=8))


def column(rows: list[Row], i: int) -> Ints:
    return np.array([row[i] for row in rows], np.int64)


def lanes_of(walls: list[tuple[int, int]]) -> Lanes:
    return Lanes.of(np.array([a for a, _ in walls], np.int64), np.array([b for _, b in walls], np.int64))


def lifted(lanes: Lanes, spans: Spans) -> set[tuple[int, int]]:
    """Every (lane, instant) that spans on the axis cover."""
    lane, start, end = lanes.lift(spans)
    return {(k, t) for k, a, b in zip(lane.tolist(), start.tolist(), end.tolist(), strict=True) for t in range(a, b)}


def covered(walls: list[tuple[int, int]], rows: list[Row]) -> set[tuple[int, int]]:
    """Every (lane, instant) in a row and in its wall."""
    return {(k, t) for k, a, b in rows for t in range(max(a, walls[k][0]), min(b, walls[k][1]))}


@thorough
@given(walls_and_rows())
def test_rows_come_back_cut_to_their_wall(case: tuple[list[tuple[int, int]], list[Row]]) -> None:
    walls, rows = case
    lanes = lanes_of(walls)
    placed = lanes.place(column(rows, 0), column(rows, 1), column(rows, 2))
    assert lifted(lanes, placed) == covered(walls, rows)
    assert placed.total == len(covered(walls, rows))


@thorough
@given(walls_and_rows())
def test_walls_fill_the_axis_and_never_touch(case: tuple[list[tuple[int, int]], list[Row]]) -> None:
    walls, _ = case
    lanes = lanes_of(walls)
    assert lifted(lanes, lanes.walls) == covered(walls, [(k, a, b) for k, (a, b) in enumerate(walls)])
    assert len(lanes) == len(walls)
    assert len(lanes.walls) == sum(a < b for a, b in walls)


@thorough
@given(walls_and_rows())
def test_one_lane_shifted(case: tuple[list[tuple[int, int]], list[Row]]) -> None:
    walls, rows = case
    lanes = lanes_of(walls)
    for k in range(len(walls)):
        spans = union(column(rows, 1), column(rows, 2))
        moved, kept = lanes.shifted(k, spans)
        everywhere = [(k, int(a), int(b)) for a, b in zip(spans.start, spans.end, strict=True)]
        assert lifted(lanes, moved) == covered(walls, everywhere)
        assert int(kept.sum()) == len(moved)


@thorough
@given(walls_and_rows())
def test_innermost_is_the_latest_to_begin(case: tuple[list[tuple[int, int]], list[Row]]) -> None:
    walls, rows = case
    lanes = lanes_of(walls)
    label = np.arange(len(rows), dtype=np.int64)
    spans, shown = lanes.innermost(column(rows, 0), column(rows, 1), column(rows, 2), label)
    lane, start, end = lanes.lift(spans)
    seen = {}
    for k, a, b, name in zip(lane.tolist(), start.tolist(), end.tolist(), shown.tolist(), strict=True):
        for t in range(a, b):
            assert (k, t) not in seen
            seen[k, t] = name
    assert seen.keys() == covered(walls, rows)
    for (k, t), name in seen.items():
        # A row that began before the wall is cut to it, so all such rows count as beginning there.
        begins = {
            i: max(a, walls[k][0])
            for i, (lane_of, a, b) in enumerate(rows)
            if lane_of == k and max(a, walls[k][0]) <= t < b
        }
        assert begins[name] == max(begins.values())


@thorough
@given(
    st.lists(st.tuples(st.integers(-2, 2), TIME, TIME), max_size=8),
    st.lists(st.tuples(st.integers(-2, 2), TIME), max_size=8),
)
def test_locate_finds_the_latest_owner_still_running(owners: list[Row], asked: list[tuple[int, int]]) -> None:
    key = np.array([k for k, _ in asked], np.int64)
    at = np.array([t for _, t in asked], np.int64)
    found = locate(column(owners, 0), column(owners, 1), column(owners, 2), key, at)
    for (k, t), row in zip(asked, found.tolist(), strict=True):
        running = [i for i, (owner, a, b) in enumerate(owners) if owner == k and a <= t < b]
        if not running:
            assert row == -1
        else:
            assert row in running
            assert owners[row][1] == max(owners[i][1] for i in running)


def test_walls_at_the_ends_of_time() -> None:
    lanes = lanes_of([(LEAST, LEAST + 5), (MOST - 5, MOST)])
    rows = [(0, LEAST, LEAST + 2), (0, LEAST + 4, MOST), (1, LEAST, MOST - 3)]
    placed = lanes.place(column(rows, 0), column(rows, 1), column(rows, 2))
    assert placed.total == 2 + 1 + 2
    lane, start, end = lanes.lift(placed)
    assert list(zip(lane.tolist(), start.tolist(), end.tolist(), strict=True)) == [
        (0, LEAST, LEAST + 2),
        (0, LEAST + 4, LEAST + 5),
        (1, MOST - 5, MOST - 3),
    ]


@pytest.mark.parametrize("walls", [[(LEAST, MOST)], [(0, 2**61), (0, 2**61)], [(-(2**62), 2**62 - 1)]])
def test_walls_longer_than_the_axis_are_refused(walls: list[tuple[int, int]]) -> None:
    with pytest.raises(SourceError):
        lanes_of(walls)
