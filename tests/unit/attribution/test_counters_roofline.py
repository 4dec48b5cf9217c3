from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.attribution.counter_match import distinct_rows
from nvprof_tools.attribution.roofline import bound


@pytest.mark.parametrize(
    ("sm", "memory", "dram", "expected"),
    [
        (67.4, 4.8, 0.7, "compute"),
        (53.7, 83.6, 83.6, "memory"),
        (16.9, 68.9, 53.0, "memory"),
        (10.0, None, 61.0, "memory"),
        (21.5, 25.1, 0.8, "latency"),
        (59.99, 59.99, None, "latency"),
        (60.0, 60.0, None, "compute"),
        (60.0, 60.01, None, "memory"),
        (90.0, None, None, None),
        (None, 90.0, 90.0, None),
        (float("nan"), 90.0, 90.0, None),
        (90.0, float("nan"), float("nan"), None),
        (90.0, float("nan"), 10.0, "compute"),
    ],
)
def test_the_rule(sm: float | None, memory: float | None, dram: float | None, expected: str | None) -> None:
    assert bound(sm, memory, dram) == expected


@settings(deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.tuples(*[st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))] * width), max_size=40
        )
    )
)
def test_distinct_rows_are_those_of_a_set(rows: list[tuple[int, ...]]) -> None:
    width = len(rows[0]) if rows else 1
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(width)]
    first, inverse = distinct_rows(columns)
    assert len(first) == len(set(rows))
    assert [rows[first[code]] for code in inverse.tolist()] == rows
    assert all(rows.index(rows[i]) == i for i in first.tolist())
