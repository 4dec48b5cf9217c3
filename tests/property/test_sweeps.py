"""Sweeps and walls filled: the native functions, the vectorised ways without them and plain loops agree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.attribution import engine
from nvprof_tools.attribution.engine import Layer, Segments
from nvprof_tools.errors import InvariantError
from nvprof_tools.native import interval_functions
from nvprof_tools.native.interval_functions import SweepPieces
from nvprof_tools.timeline.intervals import Codes, Spans
from nvprof_tools.timeline.lanes import Lanes
from tests.native.pages.decoder import decoder
from tests.oracle.depth import settled
from tests.property.interval_cases import (
    ORIGINS,
    Painted,
    Tiled,
    arrays,
    both,
    codes,
    columns,
    disjoint,
    ints,
    natively,
    shown,
    tiled,
)

often, usually = settled(80), settled(50)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    decoder()


# --- Sweeps ---

WORDS = ("a", "b", "c", "d")


@st.composite
def some_lanes(draw: st.DrawFn, most: int = 4) -> Lanes:
    """Walls of which some are empty; each begins anywhere in its own time."""
    walls = draw(st.lists(st.tuples(ORIGINS, st.integers(-5, 5), st.integers(0, 9)), max_size=most))
    return Lanes.of(ints([o + a for o, a, _ in walls]), ints([o + a + length for o, a, length in walls]))


@st.composite
def a_layer(draw: st.DrawFn) -> Layer:
    spans = draw(disjoint(8))
    whole = Spans(*columns(spans, 2))
    details = tuple(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
    labels = st.lists(st.integers(-1, len(details) - 1), min_size=len(spans), max_size=len(spans))
    label = draw(st.one_of(st.none(), labels))
    own = None if label is None else codes(label) if draw(st.booleans()) else ints(label)
    if draw(st.booleans()):
        return Layer(draw(st.sampled_from(WORDS)), whole, own, details)
    category = tuple(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
    kind = draw(st.lists(st.integers(0, len(category) - 1), min_size=len(spans), max_size=len(spans)))
    return Layer(category, whole, own, details, codes(kind))


def painted(lanes: Lanes, layers: Sequence[Layer], rest: str) -> Painted:
    """Each ns of each wall given to the first layer with a span that covers it; a piece is a run of one span."""
    made: Painted = []
    base = 0
    for lane, (start, end) in enumerate(zip(lanes.start.tolist(), lanes.end.tolist(), strict=True)):
        won = [_winner(layers, at) for at in range(base, base + end - start)]
        base += end - start + 1
        at = start
        for winner, run in itertools.groupby(won):
            length = len(list(run))
            made.append((lane, at, at + length, *_words(layers, winner, rest)))
            at += length
    return made


def _winner(layers: Sequence[Layer], at: int) -> tuple[int, int] | None:
    for number, layer in enumerate(layers):
        for row in range(len(layer.spans)):
            if layer.spans.start[row] <= at < layer.spans.end[row]:
                return number, row
    return None


def _words(layers: Sequence[Layer], winner: tuple[int, int] | None, rest: str) -> tuple[str, str | None]:
    if winner is None:
        return rest, None
    layer, row = layers[winner[0]], winner[1]
    label = -1 if layer.label is None else int(layer.label[row])
    category = layer.category if isinstance(layer.category, str) else layer.category[cast(Codes, layer.kind)[row]]
    return category, None if label < 0 else layer.details[label]


def assert_same(a: Segments, b: Segments) -> None:
    assert (a.categories, a.details) == (b.categories, b.details)
    for one, other in zip(arrays(a), arrays(b), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@often
@given(some_lanes(), st.lists(a_layer(), max_size=4), st.sampled_from([*WORDS, "rest"]))
def test_each_ns_goes_to_the_first_layer(lanes: Lanes, layers: list[Layer], rest: str) -> None:
    with_it, without = both(lambda: engine.sweep(lanes, layers, rest))
    assert shown(with_it) == painted(lanes, layers, rest)
    assert_same(with_it, without)


@usually
@given(some_lanes(), st.lists(a_layer(), max_size=3))
def test_the_native_sweep_itself(lanes: Lanes, layers: list[Layer]) -> None:
    """That the library answers; layers without spans go to it too."""
    details: dict[str, int] = {}
    ready = [engine._ready(layer, WORDS, details) for layer in layers]
    walls = (lanes.base, lanes.end - lanes.start, lanes.start)
    pieces = natively(lambda: interval_functions.sweep(ready, *walls, 4))
    assert pieces is not None
    made = Segments(
        lanes, pieces.wall, pieces.begin, pieces.end, pieces.kind, (*WORDS, "rest"), pieces.label, tuple(details)
    )
    assert shown(made) == painted(lanes, layers, "rest")


@pytest.mark.parametrize(
    ("walls", "longest", "counts"),
    [
        (60_000, 8, (90_000, 40_000)),  # parted by the first layer
        (120_000, 4, (5_000, 80_000)),  # parted by the walls
        (1, 500_000, (100_000, 100_000)),  # one wall, parted by the first layer
        (1, 500_000, (1, 200_000)),  # one wall and nothing to part it by
        (200_000, 3, ()),
    ],
)
def test_many_intervals_in_parts(walls: int, longest: int, counts: tuple[int, ...]) -> None:
    random = np.random.default_rng(walls + len(counts))
    length = random.integers(0 if walls > 1 else longest, longest + 1, walls)
    start = random.integers(-(2**40), 2**40, walls)
    lanes = Lanes.of(start, start + length)
    layers = []
    for count in counts:
        steps = random.integers(0, 5, 2 * count) + np.tile([0, 1], count)  # a gap, which may be none, and a length
        edges = np.cumsum(steps) - 7
        label = random.integers(-1, 3, count)
        kind = random.integers(0, 3, count).astype(np.int32)
        layers.append(Layer(("a", "b", "a"), Spans(edges[::2], edges[1::2]), label, ("x", "y", "z"), kind))
    with_it, without = both(lambda: engine.sweep(lanes, layers, "rest"))
    assert_same(with_it, without)
    # The axis painted, the first layer last: which category wins each ns.
    axis = np.full(int(lanes.base[-1] + length[-1]) + 1, with_it.categories.index("rest"))
    for layer in reversed(layers):
        low, high = np.maximum(layer.spans.start, 0), np.minimum(layer.spans.end, len(axis))
        for step in range(5):
            mine = np.flatnonzero(low + step < high)
            axis[low[mine] + step] = np.array([0, 1, 0])[cast(Codes, layer.kind)[mine]]
    walls_only = np.ones(len(axis), bool)
    walls_only[lanes.base + length] = False  # the ns between two lanes
    np.testing.assert_array_equal(np.repeat(with_it.category, with_it.end - with_it.start), axis[walls_only])


# --- Walls filled with pieces ---


def is_filled(lanes: Lanes, rows: Sequence[tuple[int, int, int]]) -> bool:
    """Every ns of every wall once and in order, by pieces of at least one ns."""
    walls = zip(lanes.start.tolist(), lanes.end.tolist(), strict=True)
    every = [(wall, at) for wall, (low, high) in enumerate(walls) for at in range(low, high)]
    return all(a < b for a, b, _ in rows) and [(wall, at) for a, b, wall in rows for at in range(a, b)] == every


def answers(lanes: Lanes, rows: Sequence[tuple[int, int, int]]) -> set[bool | None]:
    begin, end, wall = columns(rows, 3)
    none = np.full(len(rows), -1, np.int32)
    pieces = SweepPieces(begin, end, wall.astype(np.int32), none, none)
    itself = natively(lambda: interval_functions.filled(pieces, lanes.start, lanes.end))
    return {itself, *both(lambda: engine._filled(lanes, pieces))}


@usually
@given(tiled(), st.data())
def test_whether_pieces_fill_their_walls(case: Tiled, data: st.DataObject) -> None:
    rows = case.rows
    assert answers(case.lanes, rows) == {True} == {is_filled(case.lanes, rows)}
    for _ in range(data.draw(st.integers(1, 2)) if rows else 0):
        row = data.draw(st.integers(0, len(rows) - 1))
        begin, end, wall = rows[row]
        instead = data.draw(
            st.sampled_from(
                [
                    [],
                    [(begin, end, wall)] * 2,
                    [(begin, end, data.draw(st.integers(0, len(case.lanes) - 1)))],
                    [(begin + 1, end, wall)],
                    [(begin - 1, end, wall)],
                    [(begin, end + 1, wall)],
                    [(begin, end - 1, wall)],
                    [(begin, begin + 1, wall), (begin + 1, end, wall)],
                    [(end, begin, wall)],
                    [(begin, end + 2, wall), (end + 2, end, wall)],
                    [(begin, begin, wall), (begin, end, wall)],
                ]
            )
        )
        rows[row : row + 1] = instead
        if not rows:
            break
    assert answers(case.lanes, rows) == {is_filled(case.lanes, rows)}


GOOD = [(5, 8, 0), (8, 9, 0), (-3, 0, 2), (0, 4, 2), (4, 6, 2)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([*GOOD[:1], (8, 8, 0), *GOOD[2:]], id="an empty piece in place of the last one"),
        pytest.param([GOOD[0], (8, 8, 0), *GOOD[1:]], id="an empty piece between"),
        pytest.param([(5, 7, 0), *GOOD[1:]], id="gap"),
        pytest.param([(6, 8, 0), *GOOD[1:]], id="gap at the begin"),
        pytest.param([GOOD[0], *GOOD[2:]], id="gap at the end"),
        pytest.param(GOOD[:3] + GOOD[4:], id="a piece missing"),
        pytest.param([GOOD[0], (7, 9, 0), *GOOD[2:]], id="overlap"),
        pytest.param([GOOD[0], (8, 10, 0), *GOOD[2:]], id="beyond the end"),
        pytest.param(GOOD[:2], id="missing last wall"),
        pytest.param(GOOD[2:], id="missing first wall"),
        pytest.param([], id="nothing"),
        pytest.param([*GOOD, GOOD[-1]], id="extra piece"),
        pytest.param([*GOOD, (6, 7, 2)], id="extra piece at the end"),
        pytest.param([*GOOD[:2], (7, 8, 1), *GOOD[2:]], id="extra piece in an empty wall"),
        pytest.param([*GOOD, GOOD[0], GOOD[1]], id="first wall once more"),
        pytest.param([GOOD[1], GOOD[0], *GOOD[2:]], id="wrong order in a wall"),
        pytest.param([*GOOD[2:], *GOOD[:2]], id="wrong order of walls"),
        pytest.param([GOOD[0], *GOOD[2:], GOOD[1]], id="a wall in two places"),
        pytest.param([(8, 5, 0), *GOOD[1:]], id="reversed piece"),
        pytest.param([*GOOD[:3], (0, 7, 2), (7, 4, 2), GOOD[4]], id="reversed piece in an unbroken chain"),
        pytest.param([(5, 8, 0), (8, 9, 0), (-3, 0, 2), (0, 4, 1), (4, 6, 2)], id="another wall's"),
    ],
)
def test_pieces_that_do_not_fill(rows: list[tuple[int, int, int]]) -> None:
    lanes = Lanes.of(ints([5, 7, -3]), ints([9, 7, 6]))
    assert answers(lanes, GOOD) == {True}
    assert answers(lanes, rows) == {False} == {is_filled(lanes, rows)}


def test_a_broken_sweep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fill the walls never leaves the sweep."""
    lanes = Lanes.of(ints([0]), ints([9]))
    broken = SweepPieces(ints([0]), ints([8]), codes([0]), codes([0]), codes([-1]))
    monkeypatch.setattr(interval_functions, "sweep", lambda *_: broken)
    with pytest.raises(InvariantError, match="1 segments do not fill 1 walls"):
        engine.sweep(lanes, [], "rest")
