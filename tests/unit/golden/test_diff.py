"""Documents and segment tables held against each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.errors import SourceError, UsageError
from nvprof_tools.golden import segments
from nvprof_tools.golden.diff import Diff, compare
from nvprof_tools.golden.tolerance import for_path, tolerance_of
from nvprof_tools.model.attribution import DEVICE_SEGMENTS, SECTION_SEGMENTS

EXPECTED = {
    "schema": "x",
    "inputs": {"trace": {"sha256": "a"}},
    "window": {"start_ns": 0, "end_ns": 100},
    "ladder": [{"device": 0, "rung": "kernel_busy", "fraction": 0.5}],
    "partitions": [
        {"job": "j", "partition": 0, "wall_ns": 60_000_000, "categories": {"kernel": 40_000_000, "cpu": 20_000_000}},
        {"job": "j", "partition": 1, "wall_ns": 60_000_000, "categories": {"kernel": 60_000_000}},
    ],
    "quality": [{"slug": "rows-read", "message": "kernels: 3 rows", "count": 3}],
}


def changed(**parts: object) -> dict[str, object]:
    return {**EXPECTED, **parts}


def lines(actual: dict[str, object], tolerances: dict[str, object] | None = None) -> list[str]:
    read = {name: tolerance_of(name, value) for name, value in (tolerances or {}).items()}
    return Diff(compare(EXPECTED, actual, read), None).lines()


def test_the_same_document_has_no_difference_whatever_its_inputs_digests() -> None:
    assert lines(changed(inputs={"trace": {"sha256": "b"}})) == []
    assert Diff((), None).same


def test_figures_are_told_by_the_object_they_belong_to_the_largest_first() -> None:
    partitions = [
        {
            "job": "j",
            "partition": 0,
            "wall_ns": 61_000_000,
            "categories": {"kernel": 40_000_000, "mem_info": 21_000_000},
        },
        EXPECTED["partitions"][1],
    ]
    assert lines(changed(partitions=partitions)) == [
        "partition j/0: mem_info 0.000000 -> 21.000000 ms (+21.000000), cpu 20.000000 -> 0.000000 ms (-20.000000), "
        "wall_ns 60.000000 -> 61.000000 ms (+1.000000)"
    ]


def test_entries_are_matched_by_name_not_by_place() -> None:
    assert lines(changed(partitions=EXPECTED["partitions"][::-1])) == []
    only = lines(changed(partitions=EXPECTED["partitions"][:1]))
    assert len(only) == 1
    assert only[0].startswith("partition j/1: entry ")
    assert only[0].endswith("-> absent")


def test_what_was_not_measured_is_not_zero() -> None:
    gone = [{"device": 0, "rung": "kernel_busy", "fraction": None}]
    assert lines(changed(ladder=gone)) == ["ladder 0.kernel_busy: fraction 0.5 -> absent"]
    assert lines(changed(ladder=gone), {"ladder.*": {"points": 100}}) != []


def test_many_lines_are_cut_and_the_segment_stays() -> None:
    many = [{"job": "j", "partition": i, "wall_ns": 1} for i in range(200)]
    diff = Diff(compare({"partitions": []}, {"partitions": many}, {}), "first differing segment: …")
    told = diff.lines(most=10)
    assert len(told) == 12
    assert told[-2:] == ["… and 190 more lines", "first differing segment: …"]


@pytest.mark.parametrize(
    ("limit", "holds"),
    [({"ns": 5}, True), ({"ns": 4}, False), ({"share": "5 %"}, True), ({"share": 0.049}, False), ("ignore", True)],
)
def test_tolerances(limit: object, holds: bool) -> None:
    assert tolerance_of("x", limit).holds(100, 105) is holds
    assert tolerance_of("x", limit).holds(100, 95) is holds


def test_the_last_pattern_that_fits_counts() -> None:
    known = {
        n: tolerance_of(n, v)
        for n, v in {"partitions.*": {"ns": 9}, "*.cpu": "ignore", "partitions.j/0.*": {"ns": 1}}.items()
    }
    assert for_path(known, "partitions.j/0.categories.cpu").ns == 1
    assert for_path(known, "partitions.j/1.categories.cpu").ignore
    assert for_path(known, "window.start_ns").ns == 0


@pytest.mark.parametrize(
    "value", [None, {}, {"ns": "5"}, {"ms": 1}, {"share": "5"}, {"share": -1}, {"ns": float("inf")}, "skip", True]
)
def test_a_tolerance_that_means_nothing_is_refused(value: object) -> None:
    with pytest.raises(UsageError) as caught:
        tolerance_of("x", value)
    assert caught.value.slug == "golden-tolerance"


# --- segments --------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["kernel", "cpu", "mutex_wait"])
LANE = st.tuples(
    st.integers(-(2**40), 2**40),
    st.lists(st.tuples(st.integers(1, 10**6), WORDS, st.none() | WORDS), min_size=1, max_size=20),
)


def table_of(lanes: list[tuple[int, list[tuple[int, str, str | None]]]]) -> pa.Table:
    rows = []
    for lane, (first, parts) in enumerate(lanes):
        start = first
        for length, category, detail in parts:
            rows.append(
                {"section": lane, "start_ns": start, "end_ns": start + length, "category": category, "detail": detail}
            )
            start += length
    columns = []
    for field in SECTION_SEGMENTS:
        values = [row.get(field.name) for row in rows]
        words = pa.types.is_dictionary(field.type)
        columns.append(pa.array(values, pa.string()).dictionary_encode() if words else pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=SECTION_SEGMENTS)


@given(st.lists(LANE, max_size=4), st.lists(st.integers(-(2**41), 2**41), max_size=30))
@settings(max_examples=80, deadline=None)
def test_segments_read_back_whatever_the_events_are(
    tmp_path_factory: pytest.TempPathFactory, lanes: list, others: list[int]
) -> None:
    table = table_of(lanes)
    times = np.unique(np.array([0, *others, *table["start_ns"].to_pylist()[::2]], np.int64))
    path = tmp_path_factory.mktemp("segments") / "x.parquet"
    segments.write(table, path, times)
    assert segments.read(path, SECTION_SEGMENTS, times).to_pylist() == table.to_pylist()


@given(st.lists(LANE, min_size=1, max_size=3), st.data())
@settings(max_examples=80, deadline=None)
def test_the_first_difference_is_the_first(lanes: list, data: st.DataObject) -> None:
    table = table_of(lanes)
    assert segments.first_difference(table, table) is None
    rows = table.to_pylist()
    at = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.sampled_from(["start_ns", "category", "detail"]))
    other = [dict(row) for row in rows]
    for i in range(at, len(rows)):  # all that follows differs too
        other[i][column] = other[i][column] + 1 if column == "start_ns" else f"not {other[i][column]}"
    spoilt = pa.Table.from_pylist(other, SECTION_SEGMENTS)
    assert segments.first_difference(table, spoilt) == (rows[at], other[at])


def test_a_shorter_table_ends_first() -> None:
    table = table_of([(0, [(5, "cpu", None), (6, "kernel", None)])])
    assert segments.first_difference(table, table.slice(0, 1)) == (table.to_pylist()[1], None)


def test_damage_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(SourceError) as caught:
        segments.read(path, SECTION_SEGMENTS, np.zeros(1, np.int64))
    assert caught.value.slug == "golden-damaged"
    segments.write(table_of([(0, [(5, "cpu", None)])]), path, np.zeros(1, np.int64))
    with pytest.raises(SourceError):
        segments.read(path, DEVICE_SEGMENTS, np.zeros(1, np.int64))
    segments.write(table_of([(7, [(5, "cpu", None)])]), path, np.array([0, 7], np.int64))
    with pytest.raises(SourceError):
        segments.read(path, SECTION_SEGMENTS, np.zeros(1, np.int64))
