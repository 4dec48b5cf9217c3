"""Sums, cuts and look-ups: the native functions, the vectorised ways without them and plain loops agree."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.attribution import charge, segment_sums
from nvprof_tools.attribution.evidence import Evidence, Rows
from nvprof_tools.attribution.sections import Owners, Sections
from nvprof_tools.native import interval_functions
from nvprof_tools.native.interval_functions import SweepPieces
from nvprof_tools.timeline import lanes as lanes_module
from nvprof_tools.timeline.intervals import Spans, subtract
from tests.native.pages.decoder import decoder
from tests.oracle.depth import settled
from tests.property.interval_cases import (
    CATEGORIES,
    DETAILS,
    FAR,
    ORIGINS,
    Tiled,
    both,
    codes,
    columns,
    disjoint,
    ints,
    native,
    natively,
    shown,
    tiled,
)

often, usually = settled(80), settled(50)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    decoder()


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
        made: list[tuple[int, ...]] = []
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

NEAR = st.integers(-5, 5)
TIMES = st.one_of(NEAR, NEAR, NEAR, NEAR.map(lambda t: t - FAR), NEAR.map(lambda t: t + FAR))
KEYS = st.one_of(st.integers(-2, 3), st.sampled_from([5000, -FAR, FAR]))


@often
@given(
    ORIGINS,
    st.lists(st.lists(st.tuples(NEAR, st.integers(-2, 6)), max_size=8), max_size=2),
    st.lists(st.tuples(st.integers(0, 2), st.integers(-6, 12)), max_size=20),
    st.sampled_from(["all", "slots", "no"]),
)
def test_the_last_of_a_slot_that_covers(
    origin: int, slots: list[list[tuple[int, int]]], asked: list[tuple[int, int]], rising: str
) -> None:
    """Instants that rise, that rise in each slot, that come in any order: then the library says so."""
    if rising != "no":
        asked.sort(key=lambda one: (one[0] if rising == "slots" else 0, one[1]))
    asked = [(slot if slot < len(slots) else -1, origin + at) for slot, at in asked]
    owned = [[(origin + a, origin + a + length) for a, length in sorted(own, key=lambda one: one[0])] for own in slots]
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
    owner_key, start, end = columns(owners, 3)
    key, at = columns(asked, 2)
    expected = []
    for own, instant in asked:
        running = [(a, i) for i, (k, a, b) in enumerate(owners) if k == own and a <= instant < b]
        expected.append(max(running)[1] if running else -1)
    for found in both(lambda: lanes_module.locate(owner_key, start, end, key, at)):
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
    thread_of, from_, until, section_of = columns(owned, 4)
    call = columns(case.calls, 3)
    nothing = np.zeros(len(case.calls), np.int64)
    evidence = cast(Evidence, _Calls(Rows(call[0], call[1], call[2], nothing, nothing)))
    spans = Spans(*columns(rest, 2))

    def ask() -> tuple[Any, ...]:
        owners = Owners(thread_of, from_, until, section_of, np.zeros(len(owned), bool))
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


@usually
@given(ORIGINS, disjoint(15), disjoint(15))
def test_what_a_set_of_time_leaves(origin: int, rows: list[tuple[int, int]], time: list[tuple[int, int]]) -> None:
    """Touching rows stay two."""
    begin, end = columns(rows, 2)
    low, high = columns(time, 2)
    covered = {at for a, b in time for at in range(a, b)}
    expected = []
    for a, b in rows:
        for at in range(a, b):
            if at in covered:
                continue
            if expected and expected[-1][1] == at > a:
                expected[-1] = (expected[-1][0], at + 1)
            else:
                expected.append((at, at + 1))
    for left in both(
        lambda: subtract(Spans(begin + origin, end + origin), Spans(low + origin, high + origin)),
    ):
        assert list(zip(left.start - origin, left.end - origin, strict=True)) == expected
