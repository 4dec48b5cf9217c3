"""Numbers as reports write them."""

from __future__ import annotations

import pytest

from nvprof_tools.attribution.categories import BUSY as ENGINE_BUSY
from nvprof_tools.attribution.categories import CATEGORIES
from nvprof_tools.report import words
from nvprof_tools.report.palette import CATEGORY_COLOURS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0.0"),
        (1, "<0.1"),
        (49_999, "<0.1"),
        (50_000, "0.1"),
        (735_600_000, "735.6"),
        (1_157_000_000, "1,157.0"),
    ],
)
def test_milliseconds(value: int | None, text: str) -> None:
    assert words.ms(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0, "0 ns"), (7, "7 ns"), (999, "999 ns"), (1_000, "1.00 us"), (6_140, "6.14 us"),
        (24_800, "24.8 us"), (999_900, "1.00 ms"), (4_740_000, "4.74 ms"), (150_000_000, "150 ms"),
        (1_160_000_000, "1.16 s"), (2_500_000_000_000, "2,500 s"),
    ],
)  # fmt: skip
def test_durations(value: int | None, text: str) -> None:
    assert words.duration(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(1.0, "100 %"), (0.564, "56 %"), (0.9964, "99.6 %"), (0.0141, "1.4 %"), (1.768, "177 %"), (0.0, "0.0 %")],
)
def test_spoken_percentages(fraction: float, text: str) -> None:
    assert words.spoken_percent(fraction) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1023, "1023 B"), (561 * 2**20, "561 MiB"), (5 * 2**40, "5.00 TiB"), (None, "-")]
)
def test_sizes(value: int | None, text: str) -> None:
    assert words.data_size(value) == text


def test_every_category_has_a_meaning_and_a_colour_of_its_own() -> None:
    assert set(words.CATEGORY_MEANING) == set(CATEGORIES) == set(CATEGORY_COLOURS)
    assert len(set(CATEGORY_COLOURS.values())) == len(CATEGORY_COLOURS)
    assert words.BUSY == ENGINE_BUSY
    assert set(words.COPYING) == set(ENGINE_BUSY) - {"kernel"}
    assert set(words.PHRASES) == set(CATEGORIES) - set(ENGINE_BUSY)
