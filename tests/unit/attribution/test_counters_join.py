from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from counter_builders import (
    DRAM,
    ISSUE_ELAPSED,
    MEMORY,
    OCCUPANCY,
    SM,
    THEORETICAL,
    TIME,
    Kernel,
    Profiled,
    counters,
    trace,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.attribution.counters import CounterJoin, counter_rungs, join_counters
from nvprof_tools.model.attribution import KernelCounters
from nvprof_tools.model.trace import Trace


def join(of: Trace, profiled: Sequence[Profiled], **kwargs: object) -> CounterJoin:
    rows = len(of["kernels"])
    return join_counters(of, counters(profiled), np.zeros(rows, np.int64), ["stage"], **kwargs)  # type: ignore[arg-type]


def kernels(found: CounterJoin) -> dict[str | None, KernelCounters]:
    return {k.kernel: k for k in found.kernels}


def slugs(found: CounterJoin) -> dict[str, str]:
    return {item.slug: item.message for item in found.quality}


def test_launches_that_pair_off_are_exact() -> None:
    of = trace([Kernel(0, 10, launch=0), Kernel(20, 50, launch=15)])
    found = join(of, [Profiled({SM: 10}), Profiled({SM: 70})])
    row = kernels(found)["k"]
    assert row.match == "exact"
    assert found.exact_launches == found.matched_launches == row.matched_launches == 2
    assert row.sm_throughput_pct == pytest.approx((10 * 10 + 70 * 30) / 40)


def test_pairs_go_by_launch_order_not_by_execution() -> None:
    """The second kernel was launched first: the first profiled launch is its."""
    of = trace([Kernel(0, 10, launch=-5), Kernel(20, 50, launch=-9)])
    found = join(of, [Profiled({SM: 10}), Profiled({SM: 70})])
    assert kernels(found)["k"].sm_throughput_pct == pytest.approx((70 * 10 + 10 * 30) / 40)


def test_more_launches_than_profiled_get_the_mean_of_the_class() -> None:
    of = trace([Kernel(i * 10, i * 10 + 5) for i in range(5)])
    found = join(of, [Profiled({SM: 10}), Profiled({SM: 40})])
    row = kernels(found)["k"]
    assert (row.match, row.matched_launches, found.exact_launches) == ("class", 5, 0)
    assert row.sm_throughput_pct == pytest.approx(25.0)


def test_another_shape_does_not_stand_for_it() -> None:
    of = trace([Kernel(0, 10, grid=(2, 1, 1))])
    found = join(of, [Profiled({SM: 10})])
    assert kernels(found)["k"].match == "none"
    assert kernels(found)["k"].sm_throughput_pct is None
    assert "another grid or block size only for k (100.0 %)" in slugs(found)["counters-other-size"]
    assert "counters-missing" not in slugs(found)
    assert "counters-unused" in slugs(found)


@pytest.mark.parametrize("lacking", ["trace", "counters"])
def test_no_shape_matches_nothing(lacking: str) -> None:
    none = {"grid": None}
    of = trace([Kernel(0, 10, **(none if lacking == "trace" else {}))])  # type: ignore[arg-type]
    found = join(of, [Profiled({SM: 10}, **(none if lacking == "counters" else {}))])  # type: ignore[arg-type]
    assert found.matched_launches == 0


def test_symbols_decide_where_both_have_them() -> None:
    """Equal demangled names with other symbols are other kernels."""
    of = trace([Kernel(0, 10, mangled="_Za"), Kernel(20, 30, mangled="_Zb")])
    found = join(of, [Profiled({SM: 10}, mangled="_Zb")])
    assert found.profile.tolist() == [-1, 0]


def test_a_symbol_on_one_side_only_leaves_it_to_the_name() -> None:
    of = trace([Kernel(0, 10, "k<(int)1, ns::T>(T2 *)", None)])
    assert join(of, [Profiled({SM: 10}, "k<1, T>(T2 *)", "_Z1k")]).matched_launches == 1


def test_a_lenient_name_that_fits_two_kernels_decides_nothing() -> None:
    of = trace([Kernel(0, 10, "a::k(int)"), Kernel(20, 30, "b::k(int)")])
    found = join(of, [Profiled({SM: 10}, "k(int)")])
    assert found.matched_launches == 0
    assert "counters-ambiguous" in slugs(found)
    assert "counters-unused" not in slugs(found)


def test_a_base_name_decides_only_where_there_is_no_more() -> None:
    of = trace([Kernel(0, 10, "k<int>(T1)"), Kernel(20, 30, "other(int)", name="other")])
    assert join(of, [Profiled({SM: 10}, "k<float>(T1)")]).matched_launches == 0
    assert join(of, [Profiled({SM: 10}, "k")]).matched_launches == 0
    assert join(of, [Profiled({SM: 10}, None)]).matched_launches == 1


def test_a_base_name_of_several_instances_decides_nothing() -> None:
    of = trace([Kernel(0, 10, "k<int>(T1)"), Kernel(20, 30, "k<float>(T1)")])
    found = join(of, [Profiled({SM: 10}, None)])
    assert found.matched_launches == 0
    assert "counters-ambiguous" in slugs(found)


def test_the_strictest_name_wins() -> None:
    """A report knows the symbol, a page beside it the short name: the report's counters are taken."""
    of = trace([Kernel(0, 10, "ns::k(int)", "_Zk")])
    found = join(of, [Profiled({SM: 10}, "k(int)"), Profiled({SM: 90}, "ns::k(int)", "_Zk", report=1)])
    assert kernels(found)["k"].sm_throughput_pct == 90.0


def test_two_processes_pair_with_two() -> None:
    of = trace([Kernel(0, 10, process=1), Kernel(20, 30, process=0), Kernel(40, 50, process=1)])
    twice = [Profiled({SM: 10}, process=7), Profiled({SM: 20}, process=8), Profiled({SM: 30}, process=7)]
    found = join(of, twice)
    assert found.exact_launches == 3
    assert found.profile.tolist() != [-1, -1, -1]
    # One process with three launches is no pair for two with two and one.
    assert join(of, [Profiled({SM: v}, process=7) for v in (10, 20, 30)]).exact_launches == 0


def test_launches_pair_within_their_nvtx_state() -> None:
    """The whole class does not pair off, but the launches inside `tail` do."""
    rows = [Kernel(0, 10, launch=1), Kernel(20, 30, launch=21), Kernel(40, 60, launch=41)]
    of = trace(rows, [(0, 5, 0, "head"), (20, 100, 0, "outer"), (40, 50, 0, "tail")])
    found = join(of, [Profiled({SM: 10}, nvtx="outer/tail"), Profiled({SM: 50}, nvtx="elsewhere")])
    row = kernels(found)["k"]
    assert (row.match, found.exact_launches, row.matched_launches) == ("mixed", 1, 3)
    # Inside `tail` its own counters; the others take the mean of the class.
    assert row.sm_throughput_pct == pytest.approx((10 * 20 + 30 * 10 + 30 * 10) / 40)


def test_the_range_of_the_launching_thread_counts() -> None:
    of = trace([Kernel(0, 10, launch=5, thread=1), Kernel(20, 30, launch=5, thread=2)], [(0, 100, 2, "tail")])
    found = join(of, [Profiled({SM: 80}, nvtx="tail")])
    assert kernels(found)["k"].match == "mixed"
    assert found.exact_launches == 1


def test_values_that_are_no_number_are_left_out() -> None:
    of = trace([Kernel(i * 10, i * 10 + 5) for i in range(3)])
    found = join(of, [Profiled({SM: 10, DRAM: 1}), Profiled({SM: 30})])
    row = kernels(found)["k"]
    assert (row.sm_throughput_pct, row.dram_throughput_pct) == (pytest.approx(20.0), pytest.approx(1.0))
    assert row.occupancy_pct is None


def test_durations_of_the_profiler_count_nowhere() -> None:
    of = trace([Kernel(0, 10), Kernel(20, 25), Kernel(30, 31)])
    a = join(of, [Profiled({SM: 10, TIME: 1}), Profiled({SM: 40, TIME: 10**9})])
    b = join(of, [Profiled({SM: 10, TIME: 10**9}), Profiled({SM: 40, TIME: 1})])
    assert a.kernels == b.kernels
    assert a.total_ns == 16


def test_a_window_clips() -> None:
    of = trace([Kernel(0, 100), Kernel(200, 300, "o(int)", name="o"), Kernel(400, 500)])
    found = join(of, [Profiled({SM: 10})], window=(50, 250))
    assert (found.launches, found.total_ns, found.matched_ns) == (2, 100, 50)
    assert {(k.kernel, k.total_ns, k.matched_ns) for k in found.kernels} == {
        ("k", 50, 50),
        ("o", 50, 0),
        (None, 100, 50),
    }


def test_a_mask_chooses_rows() -> None:
    of = trace([Kernel(0, 100), Kernel(200, 300)])
    found = join(of, [Profiled({SM: 10})], mask=np.array([False, True]))
    assert (found.launches, found.profile.tolist()) == (1, [-1, 0])


def test_stages() -> None:
    of = trace([Kernel(0, 10), Kernel(20, 30, "o(int)", name="o"), Kernel(40, 70, "p(int)", name="p")])
    table = counters([Profiled({SM: 90, MEMORY: 10}), Profiled({SM: 10, MEMORY: 70}, "o(int)", name="o")])
    found = join_counters(of, table, np.array([0, 0, -1]), ["ntt"])
    stages = {k.stage: k for k in found.kernels if k.kernel is None}
    assert set(stages) == {"ntt", "other"}
    assert stages["ntt"].sm_throughput_pct == pytest.approx(50.0)
    # 50 % and 40 %: neither unit is busy over the stage as a whole.
    assert stages["ntt"].bound == "latency"
    assert stages["other"].bound is None
    assert [k.bound for k in found.kernels if k.kernel in {"k", "o"}] == ["compute", "memory"]
    assert "other (0.0 %)" in slugs(found)["counters-stage-below-half"]


@pytest.mark.parametrize(("matched", "bound"), [(50, "compute"), (49, None)])
def test_below_half_of_a_stages_time_no_bound_is_named(matched: int, bound: str | None) -> None:
    of = trace([Kernel(0, matched), Kernel(200, 300 - matched + 200 - 200, "o(int)", name="o")])
    found = join(of, [Profiled({SM: 90, MEMORY: 10})])
    stage = kernels(found)[None]
    assert stage.total_ns == 100
    assert stage.bound == bound
    assert stage.sm_throughput_pct == pytest.approx(90.0)
    assert ("counters-stage-below-half" in slugs(found)) == (bound is None)


def test_stall_reasons_are_shares_of_a_warps_time() -> None:
    def stalls(**ratios: float) -> dict[str, float]:
        return {f"smsp__average_warps_issue_stalled_{r}_per_issue_active.ratio": v for r, v in ratios.items()}

    of = trace([Kernel(0, 10)])
    found = join(of, [Profiled(stalls(wait=2, barrier=5, selected=1, sleeping=0, a=0.5, b=0.5, c=0.5, d=0.5))])
    assert kernels(found)["k"].stalls == pytest.approx({"barrier": 50, "wait": 20, "a": 5, "b": 5, "c": 5})


def test_rungs() -> None:
    of = trace([Kernel(0, 60), Kernel(100, 140, "o(int)", name="o")])
    found = join(of, [Profiled({SM: 50, ISSUE_ELAPSED: 25, OCCUPANCY: 20, THEORETICAL: 30})])
    rungs = {r.rung: r for r in counter_rungs(found, 0, 100, 200)}
    assert (rungs["kernel_sm_throughput"].busy_ns, rungs["kernel_sm_throughput"].fraction) == (50, 0.25)
    assert "60 % of kernel time" in rungs["kernel_sm_throughput"].evidence
    assert rungs["kernel_issue"].busy_ns == 25
    assert rungs["kernel_dram_throughput"].busy_ns is None
    assert all(r.busy_ns is None for r in counter_rungs(found, 1, 100, 200))
    assert all(r.busy_ns is None for r in counter_rungs(found, 0, None, 200))


def test_rungs_below_half_are_not_measured() -> None:
    of = trace([Kernel(0, 40), Kernel(100, 160, "o(int)", name="o")])
    assert {r.fraction for r in counter_rungs(join(of, [Profiled({SM: 50})]), 0, 100, 200)} == {None}


def test_rungs_are_a_devices_own() -> None:
    of = trace([Kernel(0, 10), Kernel(0, 10, "o(int)", name="o", device=1)])
    found = join(of, [Profiled({SM: 50}), Profiled({SM: 20}, "o(int)", name="o")])
    assert [counter_rungs(found, d, 100, 100)[0].busy_ns for d in (0, 1)] == [50, 20]


def test_coverage_says_how() -> None:
    of = trace([Kernel(0, 10), Kernel(20, 30), Kernel(40, 120, "o(int)", name="o")])
    found = join(of, [Profiled({SM: 1})])
    item = next(i for i in found.quality if i.slug == "counters-coverage")
    assert item.message == "counters cover 20.0 % of kernel time (2 of 3 launches, 66.7 %; 2 by kernel and shape)"
    assert (item.severity, item.count) == ("notice", 1)
    assert (found.time_fraction, found.launch_fraction) == (0.2, 2 / 3)


def test_whole_coverage_is_no_notice() -> None:
    found = join(trace([Kernel(0, 10)]), [Profiled({SM: 1})])
    assert [(i.slug, i.severity.value, i.count) for i in found.quality] == [("counters-coverage", "info", 0)]


def test_missing_kernels_come_with_the_command_that_gets_them() -> None:
    names = ["acc<fp2_t>(T1)", "acc<fp_t>(T1)", "sort(int)"]
    of = trace([Kernel(i * 100, i * 100 + 10 * (3 - i), n, name=n.split("<")[0]) for i, n in enumerate(names)])
    found = join(of, [Profiled({SM: 1}, names[1], name="acc")])
    item = next(i for i in found.quality if i.slug == "counters-missing")
    assert item.message == "no counters for acc<fp2_t> (50.0 %), sort (16.7 %)"
    assert "--filter-mode per-launch-config --launch-count 4" in item.hint
    assert "'regex:acc<.*fp2_t" in item.hint


@pytest.mark.parametrize(
    "name", ["k'; rm -rf ~; '(int)", "$(reboot)(int)", "k`id`<int>(T1)", "a\nb(int)", "\x1b[31mk(int)"]
)
def test_a_hostile_name_reaches_no_shell_command(name: str) -> None:
    found = join(trace([Kernel(0, 10, name, name=name)]), [Profiled({SM: 1}, "x(int)", name="x")])
    for item in found.quality:
        assert not set(item.hint) & set("`$\n\x1b;")
        assert item.hint.count("'") in {0, 2}
        assert "\n" not in item.message
        assert "\x1b" not in item.message


def test_no_kernels_in_the_window() -> None:
    found = join(trace([]), [Profiled({SM: 1})])
    assert (found.launches, found.kernels, found.time_fraction) == (0, (), None)
    assert [i.slug for i in found.quality] == ["counters-no-kernels"]
    assert counter_rungs(found, 0, 0, 0)[0].busy_ns is None


def test_empty_and_reversed_kernels_count_nothing() -> None:
    found = join(trace([Kernel(5, 5), Kernel(9, 3), Kernel(10, 20)]), [Profiled({SM: 1})])
    assert (found.launches, found.total_ns) == (1, 10)


def test_times_of_any_size_add_up() -> None:
    low, high = -(2**63), 2**63 - 1
    of = trace([Kernel(low, high), Kernel(low, high), Kernel(low, high)])
    found = join(of, [Profiled({SM: 7})])
    assert found.total_ns == found.matched_ns == 3 * (2**64 - 1)
    assert kernels(found)["k"].total_ns == found.total_ns
    assert kernels(found)["k"].sm_throughput_pct == pytest.approx(7.0)


NAMES = ["a(int)", "b<1>(T1)", "b<2>(T1)", "ns::c(int)"]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 1000), st.integers(0, 1)), max_size=25),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.floats(0, 100)), max_size=10),
)
def test_against_a_brute_force_join(
    launched: list[tuple[int, int, int, int]], profiled: list[tuple[int, int, float]]
) -> None:
    """Class means by hand, launch by launch; with one process and no ranges exactness is a matter of counts."""
    at, rows = 0, []
    for name, grid, length, stage in launched:
        rows.append((Kernel(at, at + length, NAMES[name], grid=(grid, 1, 1), name=NAMES[name][0]), stage))
        at += length
    of = trace([k for k, _ in rows])
    table = counters([Profiled({SM: v}, NAMES[n], grid=(g, 1, 1), name=NAMES[n][0]) for n, g, v in profiled])
    found = join_counters(of, table, np.array([s for _, s in rows], np.int64), ["s0", "s1"])
    by_class: dict[tuple[str | None, object], list[float]] = {}
    for n, g, v in profiled:
        by_class.setdefault((NAMES[n], (g, 1, 1)), []).append(v)
    of_class: dict[tuple[str | None, object], int] = {}
    for k, _ in rows:
        of_class[k.signature, k.grid] = of_class.get((k.signature, k.grid), 0) + 1
    expected: dict[int, list[tuple[int, float]]] = {0: [], 1: []}
    matched = exact = 0
    used: dict[tuple[str | None, object], int] = {}
    for k, stage in rows:
        key = k.signature, k.grid
        values = by_class.get(key)
        if values is None:
            continue
        matched += 1
        if len(values) == of_class[key]:
            exact += 1
            value = values[used.get(key, 0)]
            used[key] = used.get(key, 0) + 1
        else:
            value = sum(values) / len(values)
        expected[stage].append((k.end - k.start, value))
    assert (found.launches, found.matched_launches, found.exact_launches) == (len(rows), matched, exact)
    assert found.matched_ns == sum(w for part in expected.values() for w, _ in part)
    for k in found.kernels:
        if k.kernel is None:
            part = expected[int(k.stage[1])]
            assert k.matched_ns == sum(w for w, _ in part)
            mean = sum(w * v for w, v in part) / sum(w for w, _ in part) if part else None
            assert k.sm_throughput_pct == (None if mean is None else pytest.approx(mean))
    assert sum(k.total_ns for k in found.kernels if k.kernel is None) == found.total_ns
    assert sum(k.total_ns for k in found.kernels if k.kernel is not None) == found.total_ns


def test_the_same_rows_give_the_same_answer_in_any_order() -> None:
    rows = [Kernel(i * 10, i * 10 + i + 1, NAMES[i % 4], name=NAMES[i % 4][0]) for i in range(12)]
    table = [Profiled({SM: 10 * i}, NAMES[i], name=NAMES[i][0]) for i in range(4)]
    assert join(trace(rows), table).kernels == join(trace(rows[::-1]), table[::-1]).kernels
