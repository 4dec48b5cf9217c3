"""The statistics on data whose truth is known, because it is made here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ttest_ind

from nvprof_tools.golden.statistics import Estimates, Floats, Run, Settings, estimate, holm, inflation

MEANS = np.array([200.0, 74.0, 72.0, 20.0, 10.5, 8.0, 4.2, 0.5])
MEASURES = len(MEANS)
REFERENCE = np.full(MEASURES, 200.0)
NO_SPREAD = np.zeros(MEASURES)
ASSUMED = np.array([0.025] + [0.05] * (MEASURES - 1))
QUICK = Settings(draws=999)


def compare(
    a: list[Run], b: list[Run], spread: Floats = NO_SPREAD, *, pair: bool = False, s: Settings = QUICK
) -> Estimates:
    return estimate(a, b, REFERENCE, spread, s, pair=pair)


def partitions(
    rng: np.random.Generator, count: int, noise: float, run_noise: float = 0.0, likeness: float = 0.0
) -> Run:
    """A run: each partition's categories about MEANS, neighbours alike by ``likeness``, all off by ``run_noise``."""
    steps = rng.normal(size=(count, MEASURES))
    for i in range(1, count):
        steps[i] = likeness * steps[i - 1] + np.sqrt(1 - likeness**2) * steps[i]
    level = MEANS * (1 + rng.normal(size=MEASURES) * run_noise)
    return Run.of(np.maximum(level * (1 + noise * steps), 0))


# --- the pieces ------------------------------------------------------------------------------------------------------


def test_holm_by_its_definition() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.01, np.inf, 0.03]))[[0, 2]] == pytest.approx([0.02, 0.03])


@given(arrays(float, st.integers(1, 12), elements=st.floats(0, 1)))
def test_holm_never_helps_keeps_order_and_bounds_by_bonferroni(p: Floats) -> None:
    corrected = holm(p)
    assert (corrected >= p).all()
    assert (corrected <= np.minimum(p * len(p), 1) + 1e-12).all()
    assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()


def test_inflation_is_one_for_alternating_values_and_tells_a_known_autoregression() -> None:
    assert inflation(np.array([1.0, -1.0] * 20)[:, None])[0] == 1
    rng = np.random.default_rng(5)
    steps = rng.normal(size=20_000)
    for i in range(1, len(steps)):
        steps[i] = 0.5 * steps[i - 1] + np.sqrt(0.75) * steps[i]
    assert inflation(steps[:, None])[0] == pytest.approx(3.0, rel=0.1)  # (1 + 0.5) / (1 - 0.5)


def test_unpaired_p_values_are_welchs_where_neighbours_do_not_resemble_each_other() -> None:
    a = np.array([10.0, 14, 9, 15, 8, 13, 10, 14, 9, 13])
    b = np.array([16.0, 12, 15, 10, 17, 11, 16, 9, 14, 12])
    assert inflation(a[:, None])[0] == inflation(b[:, None])[0] == 1
    found = estimate([Run.of(a[:, None])], [Run.of(b[:, None])], np.array([12.0]), np.zeros(1), QUICK, pair=False)
    expected = ttest_ind(a, b, equal_var=False)
    assert found.p_value[0] == pytest.approx(expected.pvalue)
    low, high = ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert (found.low[0], found.high[0]) == pytest.approx((low, high))


def test_a_handful_of_units_share_one_variance_as_student_has_it() -> None:
    a, b = np.array([10.0, 14, 9, 15]), np.array([18.0, 13, 19])
    assert inflation(a[:, None])[0] == inflation(b[:, None])[0] == 1
    found = estimate([Run.of(a[:, None])], [Run.of(b[:, None])], np.array([12.0]), np.zeros(1), QUICK, pair=False)
    assert found.p_value[0] == pytest.approx(ttest_ind(a, b).pvalue)


# --- invariants ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.floats(0.001, 1e6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_units_of_time_do_not_matter_and_sides_are_symmetric(seed: int, factor: float, pair: bool) -> None:
    rng = np.random.default_rng(seed)
    a, b = partitions(rng, 7, 0.1), partitions(rng, 7, 0.1)
    here = compare([a], [b], ASSUMED, pair=pair)
    scaled = estimate(
        [Run(a.units * factor, a.levels * factor)], [Run(b.units * factor, b.levels * factor)],
        REFERENCE * factor, ASSUMED, QUICK, pair=pair,
    )  # fmt: skip
    assert scaled.p_adjusted == pytest.approx(here.p_adjusted)
    assert scaled.detectable == pytest.approx(here.detectable * factor)
    back = compare([b], [a], ASSUMED, pair=pair)
    assert back.difference == pytest.approx(-here.difference)
    assert back.p_value == pytest.approx(here.p_value)
    assert back.low == pytest.approx(-here.high)


def test_a_run_against_itself_shows_nothing_and_says_what_it_could_have_shown() -> None:
    run = partitions(np.random.default_rng(1), 10, 0.1)
    same = compare([run], [run], ASSUMED, pair=True)
    assert not same.significant.any()
    assert (same.difference == 0).all()
    assert (same.detectable >= 0.02 * REFERENCE).all()


def test_a_single_partition_a_side_shows_nothing_at_all() -> None:
    one, other = Run.of(MEANS[None, :]), Run.of(MEANS[None, :] * 3)
    found = compare([one], [other], ASSUMED)
    assert not found.significant.any()
    assert np.isinf(found.detectable).all()


def test_what_is_too_small_to_matter_is_no_part_of_the_family() -> None:
    found = compare([partitions(np.random.default_rng(2), 9, 0.1)], [partitions(np.random.default_rng(3), 9, 0.1)])
    assert found.family.tolist() == [True] * 7 + [False]  # 0.5 of 200 is under 2 %


# --- known truth -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("count", [5, 9, 30])
def test_random_splits_raise_false_alarms_in_any_measure_no_more_often_than_promised(count: int, pair: bool) -> None:
    """200 seeded splits without any assumed spread to hide behind."""
    rng = np.random.default_rng(count)
    alarms = 0
    for _ in range(200):
        whole = partitions(rng, 2 * count, 0.15).units[rng.permutation(2 * count)]
        alarms += compare([Run.of(whole[:count])], [Run.of(whole[count:])], pair=pair).significant.any()
    assert alarms / 200 <= 0.05


def test_runs_that_differ_by_the_assumed_spread_raise_no_alarm_though_their_partitions_swear_they_differ() -> None:
    rng = np.random.default_rng(11)
    alarms = naive = 0
    for _ in range(150):
        a, b = (partitions(rng, 40, 0.03, run_noise=0.03, likeness=0.3) for _ in range(2))
        alarms += compare([a], [b], ASSUMED, pair=True).significant.any()
        naive += compare([a], [b], NO_SPREAD, pair=True).significant.any()
    assert alarms / 150 <= 0.05
    assert naive / 150 > 0.3


@pytest.mark.parametrize("runs", [3, 4])
def test_several_runs_speak_for_themselves_when_they_spread_more_than_assumed(runs: int) -> None:
    rng = np.random.default_rng(13)
    alarms = 0
    for _ in range(200):
        sides = [[partitions(rng, 12, 0.03, run_noise=0.12) for _ in range(runs)] for _ in range(2)]
        alarms += compare(*sides, ASSUMED).significant.any()
    assert alarms / 200 <= 0.06


def test_neighbours_that_resemble_each_other_do_not_pass_for_evidence() -> None:
    rng = np.random.default_rng(17)
    alarms = 0
    for _ in range(150):
        a, b = (partitions(rng, 60, 0.15, likeness=0.5) for _ in range(2))
        alarms += compare([a], [b]).significant.any()
    assert alarms / 150 <= 0.06


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(19)
    held = []
    for _ in range(300):
        a, b = partitions(rng, 12, 0.1), partitions(rng, 12, 0.1)
        found = compare([a], [Run(b.units * 1.1, b.levels * 1.1)], s=Settings(draws=9))
        truth = 0.1 * MEANS
        held.append((found.low <= truth) & (truth <= found.high))
    assert 0.93 <= np.mean(held) <= 0.985


@pytest.mark.parametrize("assumed", [NO_SPREAD, ASSUMED])
def test_a_change_of_the_detectable_size_is_found_about_as_often_as_promised(assumed: Floats) -> None:
    """The detectable change is stated for 80 %; the extra gates cost a little of it."""
    rng = np.random.default_rng(23)
    at = 4
    found = 0
    for _ in range(120):
        a, b = (partitions(rng, 20, 0.1, run_noise=float(assumed[at])) for _ in range(2))
        reach = compare([a], [b], assumed).detectable[at]
        shifted = b.units.copy()
        shifted[:, at] += reach
        found += compare([a], [Run.of(shifted)], assumed).significant[at]
    assert found / 120 >= 0.6


def test_one_category_is_named_with_its_size_and_no_other() -> None:
    rng = np.random.default_rng(29)
    a, b = partitions(rng, 12, 0.08), partitions(rng, 12, 0.08)
    grown = b.units.copy()
    grown[:, 4] *= 1.6
    found = compare([a], [Run.of(grown)], ASSUMED)
    assert np.flatnonzero(found.significant).tolist() == [4]
    assert found.difference[4] == pytest.approx(0.6 * 10.5, rel=0.15)
    assert found.low[4] < 0.6 * 10.5 < found.high[4]


def test_three_runs_a_side_find_what_one_run_a_side_cannot() -> None:
    rng = np.random.default_rng(31)
    side_a = [partitions(rng, 20, 0.05, run_noise=0.004) for _ in range(5)]
    side_b = [partitions(rng, 20, 0.05, run_noise=0.004) for _ in range(5)]
    slower = [Run(r.units * 1.06, r.levels * 1.06) for r in side_b]
    assert not compare(side_a[:1], slower[:1], ASSUMED).significant[0]
    many = compare(side_a, slower, ASSUMED)
    assert many.significant[0]
    assert many.detectable[0] < compare(side_a[:1], slower[:1], ASSUMED).detectable[0]
