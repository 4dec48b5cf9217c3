"""Permutation tests against relabellings counted one by one, in plain Python."""

from __future__ import annotations

import math
from itertools import combinations, product
from statistics import fmean, variance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.golden.permutation import block_length, block_means, signs, smallest_p, two_sample

VALUES = st.lists(st.integers(0, 40), min_size=2, max_size=5)


def welch(a: list[int], b: list[int]) -> float:
    spread = variance(a) / len(a) + variance(b) / len(b)
    size = abs(fmean(a) - fmean(b))
    if spread == 0:
        return math.inf if size else 0.0
    return size / math.sqrt(spread)


def counted(a: list[int], b: list[int]) -> float:
    pooled = a + b
    bar = welch(a, b)
    hits = total = 0
    for chosen in combinations(range(len(pooled)), len(a)):
        left = [pooled[i] for i in chosen]
        right = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        hits += welch(left, right) >= bar * (1 - 1e-9)
        total += 1
    return hits / total


@given(VALUES, VALUES)
@settings(max_examples=150, deadline=None)
def test_two_samples_agree_with_relabellings_counted_one_by_one(a: list[int], b: list[int]) -> None:
    found = two_sample(np.array(a, float)[:, None], np.array(b, float)[:, None], 9_999, 0)
    assert found[0] == pytest.approx(counted(a, b))


@given(st.lists(st.integers(-30, 30), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_paired_differences_agree_with_sign_flips_counted_one_by_one(differences: list[int]) -> None:
    def statistic(values: list[int]) -> float:
        size = abs(fmean(values))
        rest = fmean([v * v for v in values]) - size * size
        if rest <= 1e-12:
            return math.inf if size else 0.0
        return size / math.sqrt(rest)

    bar = statistic(differences)
    flips = [
        statistic([d * s for d, s in zip(differences, row, strict=True)])
        for row in product((1, -1), repeat=len(differences))
    ]
    expected = sum(x >= bar * (1 - 1e-9) for x in flips) / len(flips)
    assert signs(np.array(differences, float)[:, None], 9_999, 0)[0] == pytest.approx(expected)


def test_drawn_relabellings_come_near_the_exact_answer_and_repeat_for_a_seed() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, (8, 2)), rng.normal([0, 1.2], 1, (8, 2))
    exact = two_sample(a, b, 20_000, 0)
    drawn = two_sample(a, b, 5_000, 7)
    assert drawn == pytest.approx(exact, abs=0.02)
    assert np.array_equal(drawn, two_sample(a, b, 5_000, 7))
    assert not np.array_equal(drawn, two_sample(a, b, 5_000, 8))


def test_a_column_without_any_spread_is_no_evidence_and_a_clean_step_is_all_of_it() -> None:
    same = np.ones((6, 1))
    assert two_sample(same, same, 9_999, 0)[0] == 1
    step = two_sample(same, same + 1, 9_999, 0)[0]
    assert step == pytest.approx(2 / math.comb(12, 6))
    assert signs(np.zeros((6, 1)), 9_999, 0)[0] == 1


@pytest.mark.parametrize(
    ("a", "b", "paired", "expected"),
    [(5, 5, False, 2 / 252), (3, 3, False, 0.1), (8, 8, True, 2 / 256), (60, 60, False, 1e-4)],
)
def test_smallest_p_value(a: int, b: int, paired: bool, expected: float) -> None:
    assert smallest_p(a, b, 9_999, paired) == pytest.approx(expected)


@given(st.integers(2, 700), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_blocks_keep_every_unit_once(count: int, length: int) -> None:
    units = np.arange(count, dtype=float)[:, None]
    means = block_means(units, min(length, count))
    sizes = [length] * (len(means) - 1) if length <= count else []
    sizes.append(count - sum(sizes))
    assert (means[:, 0] * sizes).sum() == pytest.approx(units.sum())


def test_few_units_stay_single_and_many_are_gathered() -> None:
    assert [block_length(n) for n in (2, 10, 63)] == [1, 1, 1]
    assert block_length(2_000) > 5
    assert 1_000_000 / block_length(1_000_000) <= 400
