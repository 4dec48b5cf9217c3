"""Sweeps, sums, cuts and look-ups: the native functions, the vectorised ways without them and plain loops agree."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.depth import settled

from nvprof_tools.attribution import charge, engine, segment_sums
from nvprof_tools.attribution.engine import Layer, Segments
from nvprof_tools.attribution.evidence import Evidence, Rows
from nvprof_tools.attribution.sections import Owners, Sections
from nvprof_tools.native import interval_functions, library
from nvprof_tools.native.interval_functions import SweepPieces
from nvprof_tools.timeline import lanes as lanes_module
from nvprof_tools.timeline.intervals import Codes, Ints, Spans
from nvprof_tools.timeline.lanes import Lanes
from tests.native.pages.decoder import decoder

Found = TypeVar("Found")
FAR = 2**62
ORIGINS = st.sampled_from([0, 0, 0, -FAR, FAR])
often, usually = settled(200), settled(120)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    decoder()


@contextmanager
def native(on: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.SWITCH, str(decoder()) if on else "0")
        yield


def natively(ask: Callable[[], Found]) -> Found:
    with native(True):
        return ask()


def both(ask: Callable[[], Found]) -> tuple[Found, Found]:
    """With the library and without it."""
    with native(False):
        without = ask()
    return natively(ask), without


def ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def codes(values: Sequence[int]) -> Codes:
    return np.array(values, np.int32)


def columns(rows: Sequence[tuple[int, ...]], count: int) -> list[Ints]:
    return [ints([row[i] for row in rows]) for i in range(count)]


def disjoint(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Spans in order, none empty; some touch."""

    def laid(steps: list[tuple[int, int]], at: int) -> list[tuple[int, int]]:
        made = []
        for gap, length in steps:
            made.append((at + gap, at + gap + length))
            at += gap + length
        return made

    return st.builds(laid, st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=most), st.integers(-4, 8))


# --- Sweeps ---

WORDS = ("a", "b", "c", "d")
Painted = list[tuple[int, int, int, str, str | None]]
"""Lane, start, end, category, sub-key."""


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
    own = None if label is None else draw(st.sampled_from([codes(label), ints(label)]))
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


def shown(segments: Segments) -> Painted:
    rows = zip(*(c.tolist() for c in _arrays(segments)), strict=True)
    return [
        (lane, start, end, segments.categories[kind], None if label < 0 else segments.details[label])
        for lane, start, end, kind, label in rows
    ]


def _arrays(segments: Segments) -> list[Ints | Codes]:
    return [segments.lane, segments.start, segments.end, segments.category, segments.detail]


def assert_same(a: Segments, b: Segments) -> None:
    assert (a.categories, a.details) == (b.categories, b.details)
    for one, other in zip(_arrays(a), _arrays(b), strict=True):
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


@dataclass(frozen=True)
class Tiled:
    """Walls and the segments that fill them."""

    lanes: Lanes
    segments: Segments

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        """Begin, end and wall of each segment."""
        s = self.segments
        return list(zip(s.start.tolist(), s.end.tolist(), s.lane.tolist(), strict=True))


CATEGORIES, DETAILS = ("kernel", "cpu", "launch"), ("x", "y")
PIECE = st.tuples(st.integers(1, 5), st.integers(0, 2), st.integers(-1, 1))


@st.composite
def tiled(draw: st.DrawFn) -> Tiled:
    origin = draw(ORIGINS)
    walls = draw(st.lists(st.tuples(st.integers(-9, 9), st.lists(PIECE, max_size=6)), max_size=4))
    rows = []
    bounds = []
    for lane, (low, pieces) in enumerate(walls):
        at = origin + low
        for length, category, detail in pieces:
            rows.append((lane, at, at + length, category, detail))
            at += length
        bounds.append((origin + low, at))
    lanes = Lanes.of(*columns(bounds, 2))
    lane, start, end, category_of, detail_of = columns(rows, 5)
    segments = Segments(
        lanes,
        lane.astype(np.int32),
        start,
        end,
        category_of.astype(np.int32),
        CATEGORIES,
        detail_of.astype(np.int32),
        DETAILS,
    )
    return Tiled(lanes, segments)


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
    with pytest.raises(engine.InvariantError, match="1 segments do not fill 1 walls"):
        engine.sweep(lanes, [], "rest")


# --- Sums ---

SUMMED = st.tuples(*[st.integers(-2, 3)] * 3, *[st.integers(-9, 9)] * 2)


@usually
@given(ORIGINS, st.lists(SUMMED, max_size=25), st.booleans())
def test_lengths_are_summed_by_group_and_key(origin: int, rows: list[tuple[int, ...]], labelled: bool) -> None:
    """A group's number may be anything; a sum of nothing is a sum."""
    rows.sort(key=lambda row: row[0])
    group, code, label, begin, end = columns(rows, 5)
    expected: dict[tuple[int, int], int] = {}
    for own, kind, sub, low, high in rows:
        if kind >= 0 and (sub >= 0 or not labelled):
            key = own, kind * 4 + sub if labelled else kind
            expected[key] = expected.get(key, 0) + high - low
    found = natively(
        lambda: interval_functions.sums(
            group.astype(np.int32),
            code.astype(np.int32),
            label.astype(np.int32) if labelled else None,
            begin + origin,
            end + origin,
            (4, 4),
        )
    )
    assert found is not None
    groups, keys, sums = (values.tolist() for values in found)
    assert list(zip(groups, keys, sums, strict=True)) == [(*key, ns) for key, ns in sorted(expected.items())]


@usually
@given(tiled())
def test_segments_are_summed(case: Tiled) -> None:
    totals: list[dict[str, int]] = [{} for _ in range(len(case.lanes))]
    details: list[dict[str, dict[str, int]]] = [{} for _ in range(len(case.lanes))]
    for lane, start, end, word, detail in shown(case.segments):
        totals[lane][word] = totals[lane].get(word, 0) + end - start
        if detail is not None:
            own = details[lane].setdefault(word, {})
            own[detail] = own.get(detail, 0) + end - start
    for found in both(lambda: segment_sums.totals(case.segments)):
        assert found == totals
        assert all(list(own) == sorted(own, key=CATEGORIES.index) for own in found)
    for broken_down in both(lambda: segment_sums.details(case.segments)):
        assert broken_down == details
        for by_word in broken_down:
            assert list(by_word) == sorted(by_word, key=CATEGORIES.index)
            assert all(list(own) == sorted(own, key=DETAILS.index) for own in by_word.values())


@usually
@given(ORIGINS, disjoint(25), disjoint(25), st.data())
def test_what_a_set_of_time_shares(
    origin: int, rows: list[tuple[int, int]], time: list[tuple[int, int]], data: st.DataObject
) -> None:
    code = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    begin, end = columns(rows, 2)
    low, high = columns(time, 2)
    inside = {at for a, b in time for at in range(a, b)}
    expected = [0, 0, 0, 0]
    for (a, b), own in zip(rows, code, strict=True):
        expected[own] += len(inside.intersection(range(a, b)))
    found = natively(
        lambda: interval_functions.shared(begin + origin, end + origin, codes(code), 4, low + origin, high + origin)
    )
    assert found is not None
    assert found.tolist() == expected


@usually
@given(tiled(), disjoint(8), st.data())
def test_segments_inside_a_set_of_time(case: Tiled, time: list[tuple[int, int]], data: st.DataObject) -> None:
    if not len(case.lanes):
        return
    lane = data.draw(st.integers(0, len(case.lanes) - 1))
    origin = int(case.lanes.start[lane])
    low, high = columns(time, 2)
    inside = {origin + at for a, b in time for at in range(a, b)}
    expected: dict[str, int] = {}
    for word in CATEGORIES:
        mine = [(a, b) for own, a, b, kind, _ in shown(case.segments) if own == lane and kind == word]
        ns = sum(len(inside.intersection(range(a, b))) for a, b in mine)
        if ns:
            expected[word] = ns
    for found in both(lambda: segment_sums.inside(case.segments, lane, Spans(low + origin, high + origin))):
        assert list(found.items()) == list(expected.items())


# --- Cuts ---


@usually
@given(tiled(), st.lists(st.tuples(st.integers(0, 3), st.integers(-6, 40), st.integers(-6, 40)), max_size=8), st.data())
def test_segments_are_cut_to_stretches(case: Tiled, asked: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Stretches in any order, which overlap, lie outside their wall or are reversed; rows with gaps between them."""
    s = case.segments
    asked = [(lane % len(case.lanes), a, b) for lane, a, b in asked] if len(case.lanes) else []
    lane, low, high = columns(asked, 3)
    low, high = (case.lanes.start[lane] + bound for bound in (low, high))
    shift = data.draw(st.sampled_from([0, 7, -5, -int(s.start[0]) if len(s) else 0]))

    def expected(rows: list[int]) -> list[tuple[int, ...]]:
        made = []
        for own, a, b in zip(lane.tolist(), low.tolist(), high.tolist(), strict=True):
            for row in rows:
                times = (
                    [t for t in range(int(s.start[row]), int(s.end[row])) if a <= t < b] if s.lane[row] == own else []
                )
                if times:
                    made.append((times[0] + shift, times[-1] + 1 + shift, int(s.category[row]), int(s.detail[row])))
        return made

    every = list(range(len(s)))
    for found in both(lambda: s.cut(lane, low, high, shift)):
        assert list(zip(*(values.tolist() for values in found), strict=True)) == expected(every)
        assert [values.dtype for values in found] == [np.int64, np.int64, np.int32, np.int32]
    kept = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(s), max_size=len(s))))
    first = np.searchsorted(s.lane[kept], np.arange(len(case.lanes) + 1)).astype(np.uint64)
    rows = (s.start[kept], s.end[kept], s.category[kept], s.detail[kept])
    itself = natively(lambda: interval_functions.cut(first, rows, lane, low, high, shift))
    assert itself is not None
    assert list(zip(*(values.tolist() for values in itself), strict=True)) == expected(kept.tolist())


# --- Look-ups ---

NEAR = st.integers(-9, 9)
TIMES = st.one_of(NEAR, NEAR.map(lambda t: t - FAR), NEAR.map(lambda t: t + FAR))
KEYS = st.one_of(st.integers(-2, 3), st.sampled_from([5000, -FAR, FAR]))


@usually
@given(
    st.lists(st.lists(st.tuples(TIMES, TIMES), max_size=8), max_size=4),
    st.lists(st.tuples(st.integers(0, 4), TIMES), max_size=20),
    st.sampled_from(["all", "slots", "no"]),
)
def test_the_last_of_a_slot_that_covers(
    slots: list[list[tuple[int, int]]], asked: list[tuple[int, int]], rising: str
) -> None:
    """Instants that rise, that rise in each slot, that come in any order: then the library says so."""
    if rising != "no":
        asked.sort(key=lambda one: (one[0] if rising == "slots" else 0, one[1]))
    asked = [(slot if slot < len(slots) else -1, at) for slot, at in asked]
    owned = [sorted(own, key=lambda one: one[0]) for own in slots]
    first = np.cumsum([0, *map(len, owned)]).astype(np.uint64)
    begin, end = columns([one for own in owned for one in own], 2)
    slot, at = columns(asked, 2)
    found = natively(lambda: interval_functions.locate(first, begin, end, slot, at))
    if any(a > b for own in range(len(slots)) for a, b in itertools.pairwise([t for s, t in asked if s == own])):
        assert found is None
        return
    assert found is not None
    for (own, instant), row in zip(asked, found.tolist(), strict=True):
        rows = [] if own < 0 else [i for i, (a, b) in enumerate(owned[own]) if a <= instant < b]
        assert row == (int(first[own]) + rows[-1] if rows else -1)


@often
@given(
    st.lists(st.tuples(KEYS, TIMES, TIMES), max_size=14),
    st.lists(st.tuples(KEYS, TIMES), max_size=20),
    st.booleans(),
    st.booleans(),
)
def test_the_owner_at_an_instant(
    owners: list[tuple[int, int, int]], asked: list[tuple[int, int]], rising: bool, nested: bool
) -> None:
    """Owners in any order, nested and reversed ones, keys that own nothing. Of owners that begin together it is the
    last one given."""
    if nested:
        owners = [(key, min(a, b), max(a, b)) for key, a, b in owners]
    if rising:
        asked.sort(key=lambda one: one[1])
    owner = columns(owners, 3)
    key, at = columns(asked, 2)
    expected = []
    for own, instant in asked:
        running = [(a, i) for i, (k, a, b) in enumerate(owners) if k == own and a <= instant < b]
        expected.append(max(running)[1] if running else -1)
    for found in both(lambda: lanes_module.locate(*owner, key, at)):
        assert found.tolist() == expected


@pytest.mark.parametrize("asked", [[FAR + 4], [FAR + 5, FAR + 4]])
def test_a_reversed_owner_from_end_to_end_of_time(asked: list[int]) -> None:
    """Its end is farther below the other times than a number says."""
    one = np.ones(len(asked), np.int64)
    for found in both(lambda: lanes_module.locate(one[:1], ints([FAR + 3]), ints([-FAR - 3]), one, ints(asked))):
        assert found.tolist() == [-1] * len(asked)


@pytest.mark.parametrize("rising", [True, False])
def test_many_owners(rising: bool) -> None:
    """Deep nests and many that have ended, by the library, by packed numbers and by ranks."""
    random = np.random.default_rng(7)
    owner, instants = 3_000, 40_000
    key = random.integers(0, 40, owner)
    start = random.integers(0, 100_000, owner)
    end = start + random.integers(-10, 3_000, owner)
    at = random.integers(-10, 110_000, instants)
    at = np.sort(at) if rising else at
    asked = random.integers(-1, 42, instants)
    with_it, without = both(lambda: lanes_module.locate(key, start, end, asked, at))
    far = 2**45  # times too far apart to be packed go by their ranks
    by_rank = both(lambda: lanes_module.locate(key, start * far, end * far, asked, at * far))
    for found in (without, *by_rank):
        np.testing.assert_array_equal(with_it, found)
    for row in range(0, instants, 200):
        running = np.flatnonzero((key == asked[row]) & (start <= at[row]) & (at[row] < end))
        assert with_it[row] == (max(running, key=lambda i: (start[i], i)) if len(running) else -1)


# --- The oldest of all ---


@usually
@given(st.lists(st.tuples(TIMES, TIMES, st.integers(-2, 3)), max_size=14))
def test_the_least_age_of_all_that_cover(rows: list[tuple[int, int, int]]) -> None:
    """Between two bounds nothing changes: every bound, and the instant before it, tells all."""
    rows.sort(key=lambda row: row[0])
    found = natively(lambda: interval_functions.oldest(*columns(rows, 3)))
    assert found is not None
    pieces = list(zip(*(values.tolist() for values in found), strict=True))
    bounds = {t for a, b, _ in [*rows, *pieces] for t in (a, b)}
    for at in bounds | {t - 1 for t in bounds}:
        covering = [age for a, b, age in rows if a <= at < b]
        assert [age for a, b, age in pieces if a <= at < b] == ([min(covering)] if covering else [])
    assert all(a < b for a, b, _ in pieces)
    assert all(b[0] > a[1] or (b[0] == a[1] and b[2] != a[2]) for a, b in itertools.pairwise(pieces))


@dataclass(frozen=True)
class Called:
    """Sections, the threads that work for them, and the calls of these."""

    sections: list[tuple[int, int, int]]
    helpers: list[tuple[int, int, int, int]]
    calls: list[tuple[int, int, int]]


@st.composite
def called(draw: st.DrawFn) -> Called:
    """Start, end and caller of sections; thread, start, end and section of helpers, inside their section; start, end
    and thread of calls, which may outlast their section."""
    sections = [
        (start, start + length, caller)
        for start, length, caller in draw(
            st.lists(st.tuples(st.integers(-9, 20), st.integers(1, 12), st.integers(0, 3)), max_size=6)
        )
    ]
    helpers = []
    for row, (start, end, _) in enumerate(sections):
        for thread in draw(st.lists(st.integers(4, 6), max_size=2)):
            low, high = sorted(draw(st.tuples(*[st.integers(start, end)] * 2)))
            helpers.append((thread, low, high, row))
    call = st.tuples(st.integers(-12, 34), st.integers(-1, 9), st.integers(0, 7))
    calls = [(start, start + length, thread) for start, length, thread in draw(st.lists(call, max_size=20))]
    return Called(sections, helpers, sorted(calls) if draw(st.booleans()) else calls)


@often
@given(called(), disjoint(8), st.data())
def test_the_oldest_section_in_a_call(case: Called, rest: list[tuple[int, int]], data: st.DataObject) -> None:
    count = len(case.sections)
    mine = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    start, end, caller = columns(case.sections, 3)
    none = np.zeros(count, np.int64)
    sections = Sections(start, end, caller, none, none, none.astype(bool), True)
    owned = [(k, a, b, row) for row, (a, b, k) in enumerate(case.sections)] + case.helpers
    owner = columns(owned, 4)
    call = columns(case.calls, 3)
    nothing = np.zeros(len(case.calls), np.int64)
    evidence = cast(Evidence, _Calls(Rows(call[0], call[1], call[2], nothing, nothing)))
    spans = Spans(*columns(rest, 2))

    def ask() -> tuple[Any, ...]:
        owners = Owners(*owner, np.zeros(len(owned), bool))
        where, section = charge._oldest_in_call(spans, np.array(mine, bool), evidence, sections, owners)
        return where.start.tolist(), where.end.tolist(), section.tolist()

    in_call: dict[int, set[int]] = {}
    for low, high, thread in case.calls:
        working = [(a, i) for i, (k, a, b, _) in enumerate(owned) if k == thread and a <= low < b]
        row = owned[max(working)[1]][3] if working else -1
        if row >= 0 and mine[row]:
            for at in range(low, min(high, case.sections[row][1])):
                in_call.setdefault(at, set()).add(row)
    age = {row: (case.sections[row][0], case.sections[row][2], row) for row in range(count)}
    expected = {at: min(in_call[at], key=age.__getitem__) for a, b in rest for at in range(a, b) if at in in_call}
    with_it, without = both(ask)
    assert with_it == without
    found = list(zip(*with_it, strict=True))
    assert {at: section for a, b, section in found for at in range(a, b)} == expected
    assert sum(b - a for a, b, _ in found) == len(expected)


@dataclass(frozen=True)
class _Calls:
    """What of all evidence is asked for."""

    calls: Rows


def test_without_the_library() -> None:
    one, number = np.zeros(1, np.int64), np.zeros(1, np.int32)
    first = np.array([0, 1], np.uint64)
    pieces = SweepPieces(one, one, number, number, number)
    with native(False):
        assert interval_functions.sweep([], one, one, one, 0) is None
        assert interval_functions.filled(pieces, one, one) is None
        assert interval_functions.sums(number, number, None, one, one, (1, 1)) is None
        assert interval_functions.shared(one, one, number, 1, one, one) is None
        assert interval_functions.cut(first, (one, one, number, number), one, one, one, 0) is None
        assert interval_functions.locate(first, one, one, one, one) is None
        assert interval_functions.oldest(one, one, one) is None
