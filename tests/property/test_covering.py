"""Which interval covers an instant: the native look-up, the vectorised one and a plain loop agree on anything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.native import interval_functions, library
from nvprof_tools.timeline import lanes
from tests.native.pages.decoder import decoder
from tests.oracle.depth import settled

TIMES = st.one_of(st.integers(-8, 8), st.integers(-(2**63), 2**63 - 1))


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    decoder()


def loop(begin: list[int], end: list[int], at: int) -> int:
    covering = [i for i, (a, b) in enumerate(zip(begin, end, strict=True)) if a <= at < b]
    return covering[-1] if covering else -1


@settled(150)
@given(st.lists(st.tuples(TIMES, TIMES), max_size=25), st.lists(TIMES, max_size=25), st.booleans())
def test_the_last_that_covers(intervals: list[tuple[int, int]], instants: list[int], rising: bool) -> None:
    """Reversed and empty intervals cover nothing; instants come in any order."""
    intervals.sort(key=lambda one: one[0])
    begin, end = [a for a, _ in intervals], [b for _, b in intervals]
    instants = sorted(instants) if rising else instants
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.SWITCH, str(decoder()))
        found = interval_functions.covering(*(np.array(values, np.int64) for values in (begin, end, instants)))
    assert found is not None
    assert found.tolist() == [loop(begin, end, at) for at in instants]


INTERVALS = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9), st.integers(-1, 2)), max_size=20)


@settled(150)
@given(INTERVALS)
def test_the_innermost_label(intervals: list[tuple[int, int, int]]) -> None:
    """Instant by instant what the last interval that covers it says, and no two pieces that could be one."""
    intervals.sort(key=lambda one: one[0])
    begin, length, label = np.array(intervals, np.int64).reshape(-1, 3).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.SWITCH, str(decoder()))
        found = interval_functions.innermost(begin, begin + length, label)
    assert found is not None
    expected = {}
    for at in range(-10, 20):
        row = loop(begin.tolist(), (begin + length).tolist(), at)
        if row >= 0 and label[row] >= 0:
            expected[at] = int(label[row])
    pieces = list(zip(*(values.tolist() for values in found), strict=True))
    assert {at: shown for low, high, shown in pieces for at in range(low, high)} == expected
    assert all(b[0] > a[1] or (b[0] == a[1] and b[2] != a[2]) for a, b in itertools.pairwise(pieces))
    spans, shown = lanes._innermost(begin, begin + length, label)
    assert [spans.start.tolist(), spans.end.tolist(), shown.tolist()] == [values.tolist() for values in found]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.SWITCH, "0")
    assert interval_functions.covering(*(np.zeros(1, np.int64) for _ in range(3))) is None
    assert interval_functions.innermost(*(np.zeros(1, np.int64) for _ in range(3))) is None
