"""`compare` on runs whose truth is known: repeats of one configuration, two configurations, and from logs alone."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from nvprof_tools.golden import inputs
from nvprof_tools.golden.compare import compare
from nvprof_tools.golden.measure import Measured
from nvprof_tools.model.comparison import Comparison

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"
PINNED = [f"pinned_{i}" for i in range(1, 5)]
PAGEABLE = [f"pageable_{i}" for i in range(1, 5)]


def side(letter: str, *names: str) -> list[inputs.Loaded]:
    return inputs.load_side(letter, inputs.Request(tuple(RUNS / f"{name}.log" for name in names)))


@pytest.fixture(scope="module")
def measured() -> dict[str, Measured]:
    out = {}
    for name in (*PINNED, *PAGEABLE):
        out[name], *_ = inputs.measured(side("A", name), [])[0]
    return out


@pytest.mark.parametrize(("a", "b"), list(permutations(PINNED, 2)) + list(permutations(PAGEABLE, 2)))
def test_repeats_show_no_evidence_or_a_small_change(measured: dict[str, Measured], a: str, b: str) -> None:
    found = compare([measured[a]], [measured[b]])
    assert found.verdict == "no-evidence" or abs(found.size or 1) < 0.08
    assert found.headline.fraction is not None
    assert abs(found.headline.fraction) < 0.08


@pytest.mark.parametrize(("a", "b"), list(product(PINNED, PAGEABLE)))
def test_pageable_memory_is_slower_by_14_to_26_percent_for_every_pair(
    measured: dict[str, Measured], a: str, b: str
) -> None:
    found = compare([measured[a]], [measured[b]])
    assert found.verdict == "slower"
    assert found.grounds == "headline"
    assert found.size is not None
    assert 0.14 <= found.size <= 0.26
    assert compare([measured[b]], [measured[a]]).verdict == "faster"


def test_the_headline_is_the_wall_of_the_brackets_by_the_proofs(measured: dict[str, Measured]) -> None:
    """pinned_1: GPU_START at 401 ms, last GPU_END at 2,777 ms, two proofs."""
    assert compare([measured["pinned_1"]], [measured["pinned_2"]]).headline.a_ns == pytest.approx(
        (2777 - 401) * 1e6 / 2
    )


def several(measured: dict[str, Measured], a: list[str], b: list[str]) -> Comparison:
    return compare([measured[n] for n in a], [measured[n] for n in b])


def test_several_runs_a_side_use_the_spread_between_runs(measured: dict[str, Measured]) -> None:
    found = several(measured, PINNED[:3], PAGEABLE[:3])
    assert found.runs_as_units
    assert found.verdict == "slower"
    walls = {name: measured[name].wall_ns / 2 for name in (*PINNED, *PAGEABLE)}
    a, b = ([walls[n] for n in names] for names in (PINNED[:3], PAGEABLE[:3]))
    assert found.size == pytest.approx(np.mean(b) / np.mean(a) - 1)
    one = compare([measured["pinned_1"]], [measured["pageable_1"]])
    assert found.headline.detectable_ns < one.headline.detectable_ns


@pytest.mark.parametrize("split", [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))])
@pytest.mark.parametrize("names", [PINNED, PAGEABLE])
def test_no_division_of_one_configuration_moves(
    measured: dict[str, Measured], names: list[str], split: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    found = several(measured, [names[i] for i in split[0]], [names[i] for i in split[1]])
    assert found.verdict in {"no-evidence", "inconclusive"}
    assert found.moved == ()


def test_a_limit_finer_than_the_data_is_inconclusive_and_says_how_many_runs_would_do(
    measured: dict[str, Measured],
) -> None:
    found = compare([measured["pinned_1"]], [measured["pinned_3"]], fail_over=0.03)
    assert found.verdict == "inconclusive"
    assert found.runs_needed is not None
    assert found.runs_needed > 2


def test_random_splits_of_one_runs_steady_partitions_raise_no_false_alarm(measured: dict[str, Measured]) -> None:
    """200 seeded splits, with nothing assumed of the spread between runs: one run is all there is."""
    from nvprof_tools.golden.statistics import Run, Settings, estimate

    settings = Settings(run_spread=0, category_spread=0, draws=999)
    alarms = 0
    for name in ("pinned_1", "pinned_3"):
        run = measured[name]
        units = np.stack([run.increments, *(run.columns[c][~run.cold] for c in ("gpu_bracket", "synthesis"))], axis=1)
        rng = np.random.default_rng(7)
        for _ in range(100):
            order = rng.permutation(len(units))
            halves = Run.of(units[order[: len(units) // 2]]), Run.of(units[order[len(units) // 2 :]])
            found = estimate([halves[0]], [halves[1]], units.mean(axis=0), np.zeros(3), settings, pair=False)
            alarms += bool(found.significant.any())
    assert alarms / 200 <= 0.05


def test_a_log_can_be_held_against_itself(measured: dict[str, Measured]) -> None:
    found = compare([measured["pinned_1"]], [measured["pinned_1"]])
    assert found.verdict == "no-evidence"
    assert found.headline.change_ns == 0
