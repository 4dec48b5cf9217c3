"""Which interval covers an instant: the native look-up, the vectorised one and a plain loop agree on anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.native import library
from tests.native.pages.decoder import decoder

TIMES = st.one_of(st.integers(-8, 8), st.integers(-(2**63), 2**63 - 1))


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    decoder()


def loop(begin: list[int], end: list[int], at: int) -> int:
    covering = [i for i, (a, b) in enumerate(zip(begin, end, strict=True)) if a <= at < b]
    return covering[-1] if covering else -1


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(TIMES, TIMES), max_size=25), st.lists(TIMES, max_size=25), st.booleans())
def test_the_last_that_covers(intervals: list[tuple[int, int]], instants: list[int], rising: bool) -> None:
    """Reversed and empty intervals cover nothing; instants come in any order."""
    intervals.sort(key=lambda one: one[0])
    begin, end = [a for a, _ in intervals], [b for _, b in intervals]
    instants = sorted(instants) if rising else instants
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.SWITCH, str(decoder()))
        found = library.covering(*(np.array(values, np.int64) for values in (begin, end, instants)))
    assert found is not None
    assert found.tolist() == [loop(begin, end, at) for at in instants]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.SWITCH, "0")
    assert library.covering(*(np.zeros(1, np.int64) for _ in range(3))) is None
