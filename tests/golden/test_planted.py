"""Planted regressions are found, named and sized; another seed alone is nothing; halves of one run are one run."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.golden.compare import compare
from nvprof_tools.golden.measure import Measured, from_attribution
from nvprof_tools.golden.statistics import Run, Settings, estimate
from nvprof_tools.golden.steps import step_names, stepped
from nvprof_tools.model.comparison import Comparison
from nvprof_tools.model.trace import AppLog, Trace
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.sources.timeline_log import read_log
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_log, fixture_trace
from tests.golden.generated import MEANS_US, generated
from tests.golden.planted import slower_pinning


@cache
def model(seed: int, slow: tuple[tuple[str, float], ...] = ()) -> Measured:
    trace = generated(seed, dict(slow))
    pipeline = stepped(load_pipeline("generic"), trace)
    assert pipeline is not None
    return from_attribution(attribute(trace, None, (pipeline,)), trace, "model")


def moved(found: Comparison) -> list[str]:
    return [c.measure for c in found.moved]


@pytest.mark.parametrize(
    ("call", "factor", "category"),
    [
        ("cudaHostRegister", 6.0, "host_register"),
        ("pthread_mutex_lock", 10.0, "mutex_wait"),
        ("cudaMemGetInfo", 2.0, "mem_info"),
    ],
)
def test_a_planted_cost_is_named_and_sized_and_nothing_else_is(call: str, factor: float, category: str) -> None:
    found = compare([model(7)], [model(8, ((call, factor),))])
    assert found.verdict == "slower"
    assert moved(found) == [category]
    change = found.moved[0]
    assert change.change_ns == pytest.approx((factor - 1) * MEANS_US[call] * 1_000, rel=0.1)


def test_a_cost_of_a_twentieth_of_a_step_fails_a_limit_of_three_percent() -> None:
    """The whole run cannot show it; the category can."""
    found = compare([model(7)], [model(8, (("cudaMemGetInfo", 2.0),))], fail_over=0.03)
    assert found.grounds == "categories"
    assert found.verdict == "slower"
    assert found.size is not None
    assert 0.03 < found.size < 0.07


@pytest.mark.parametrize("seed", [8, 9, 10])
def test_another_seed_alone_raises_nothing(seed: int) -> None:
    found = compare([model(7)], [model(seed)])
    assert found.verdict == "no-evidence"
    assert found.moved == ()


def test_a_cost_taken_away_is_faster() -> None:
    found = compare([model(7, (("cudaHostRegister", 6.0),))], [model(8)])
    assert found.verdict == "faster"
    assert moved(found) == ["host_register"]


def test_steps_are_the_outermost_repeating_ranges() -> None:
    trace = generated(1, steps=9)
    assert set(step_names(trace)) == {f"step:{t}:{i}" for t in range(2) for i in range(9)}
    assert step_names(generated(1, steps=3)) == ()  # too few to be steps


# --- a real trace ----------------------------------------------------------------------------------------------------


@cache
def real() -> tuple[Trace, AppLog]:
    pipeline = load_pipeline("cuzk")
    return load_trace(fixture_trace("p9_gw2")), read_log(fixture_log("p9_gw2"), pipeline)


def attributed(trace: Trace, window: str | None = None) -> Measured:
    _, log = real()
    found = attribute(trace, log, (load_pipeline("cuzk"),), Options(window))
    return from_attribution(found, trace, "p9_gw2")


def test_slower_pinning_in_a_real_trace_is_named_with_its_size() -> None:
    trace, _ = real()
    found = compare([attributed(trace)], [attributed(slower_pinning(trace, 1.5))])
    change = next(c for c in found.changes if c.measure == "host_register")
    assert change.verdict == "slower"
    assert change.own_fraction == pytest.approx(0.5, abs=0.025)
    assert moved(found) == ["host_register"]
    # What pinning took, the wait for the mutex gave back: the whole did not move, and that is said too.
    assert found.verdict == "no-evidence"
    assert found.headline.change_ns == 0


def test_two_halves_of_a_real_trace_are_one_run() -> None:
    trace, log = real()
    found = attribute(trace, log, (load_pipeline("cuzk"),))
    start, end = found.window.start_ns, found.window.end_ns
    middle = (start + end) // 2
    halves = [attributed(trace, f"{a}:{b}") for a, b in ((start, middle), (middle, end))]
    result = compare([halves[0]], [halves[1]])
    assert result.verdict == "no-evidence"
    assert result.moved == ()
    assert sum(len(h.cold) for h in halves) <= 10  # no partition is in both


def test_splits_of_a_real_runs_steady_partitions_raise_no_false_alarm_in_any_category() -> None:
    """200 seeded splits, once with the assumed spread between runs and once without anything assumed."""
    trace, _ = real()
    run = attributed(trace)
    names = list(run.columns)
    units = np.stack([run.columns[n][~run.cold] for n in names], axis=1)
    reference = np.full(len(names), units[:, names.index("section")].mean())
    rng = np.random.default_rng(11)
    for spread in (0.0, 0.05):
        settings = Settings(draws=999)
        alarms = 0
        for _ in range(200):
            order = rng.permutation(len(units))
            a, b = Run.of(units[order[::2]]), Run.of(units[order[1::2]])
            alarms += bool(
                estimate([a], [b], reference, np.full(len(names), spread), settings, pair=False).significant.any()
            )
        assert alarms / 200 <= 0.05
