from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.model.arrays import strings
from nvprof_tools.sources.ncu_numbers import Marks, parse


def read(cells: list[str]) -> list[float]:
    marks = Marks()
    array = strings(cells)
    marks.observe(array)
    return [float(v) for v in parse(array, marks).value]


def test_a_european_page() -> None:
    """117.344 ns is 117,344 ns where 65,77 % and 27.595.520 bytes stand beside it."""
    assert read(["117.344", "65,77", "27.595.520"]) == [117344.0, 65.77, 27595520.0]


def test_the_same_figures_of_an_english_page() -> None:
    assert read(["117,344", "65.77", "27,595,520"]) == [117344.0, 65.77, 27595520.0]


@pytest.mark.parametrize("grouped", ["1 698,25", "1\u00a0698,25", "1\u202f698,25", "1'698,25", "1’698,25", "1.698,25"])
def test_grouping_marks(grouped: str) -> None:
    assert read([grouped, "0,50"]) == [1698.25, 0.5]


def test_indian_grouping() -> None:
    assert read(["12,34,567.00"]) == [1234567.0]


def test_spaces_group_more_than_once() -> None:
    assert read(["1 234 567 890", "0.5"]) == [1234567890.0, 0.5]


def test_lone_groups_are_thousands_whatever_the_mark_and_said_to_be_guessed() -> None:
    """The profiler prints two decimals or six: three digits after a mark are a group."""
    for cell in ("117.344", "117,344"):
        array, marks = strings([cell]), Marks()
        marks.observe(array)
        assert parse(array, marks).value.tolist() == [117344.0]
        assert marks.guessed


def test_three_decimals_stay_decimals_where_the_page_tells() -> None:
    assert read(["5.123", "1,234.50"]) == [5.123, 1234.5]


def test_exponents() -> None:
    assert read(["4.0e-05", "1.5E+3", "2e3"]) == [4.0e-05, 1500.0, 2000.0]
    assert read(["4,05e-05", "3,25"]) == [4.05e-05, 3.25]


def test_what_is_no_number_is_told_apart() -> None:
    cells = strings(["nan", "-nan(ind)", "inf", "1e999", "n/a", "(!) n/a", "no data", "", "PolicySpread", "12"])
    found = parse(cells, Marks())
    assert found.nan.tolist() == [True] * 4 + [False] * 6
    assert found.empty.tolist() == [False] * 4 + [True] * 4 + [False] * 2
    assert found.number.tolist() == [False] * 9 + [True]


def test_null_cells_are_empty() -> None:
    found = parse(pa.array([None, "1"], pa.string()), Marks())
    assert found.empty.tolist() == [True, False]


def _printed(value: int, decimals: int, group: str, decimal: str) -> str:
    """A number of ``decimals`` digits after the mark, digits grouped by threes: written by hand, not by a locale."""
    sign, digits = ("-" if value < 0 else ""), str(abs(value)).rjust(decimals + 1, "0")
    whole, rest = (digits[:-decimals], digits[-decimals:]) if decimals else (digits, "")
    pieces = []
    while len(whole) > 3:
        pieces.insert(0, whole[-3:])
        whole = whole[:-3]
    return sign + group.join([whole, *pieces]) + (decimal + rest if decimals else "")


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(10**15), 10**15), st.sampled_from([0, 2, 6])), min_size=1, max_size=20),
    st.sampled_from([(",", "."), (".", ","), (" ", ","), ("\u202f", ","), ("'", ".")]),
)
def test_any_page_of_any_locale_reads_back(numbers: list[tuple[int, int]], locale: tuple[str, str]) -> None:
    group, decimal = locale
    # One cell that no other locale prints, as every real page has.
    cells = [_printed(v, d, group, decimal) for v, d in numbers] + [_printed(25, 2, group, decimal)]
    found = read(cells)
    for (value, decimals), got in zip(numbers, found, strict=False):
        assert got == pytest.approx(value / 10**decimals, rel=1e-12)


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=20))
def test_any_text_is_one_of_four_things(cells: list[str]) -> None:
    array, marks = strings(cells), Marks()
    marks.observe(array)
    found = parse(array, marks)
    kinds = found.number.astype(int) + found.nan.astype(int) + found.empty.astype(int)
    assert (kinds <= 1).all()
    assert [math.isfinite(v) for v in found.value] == found.number.tolist()
