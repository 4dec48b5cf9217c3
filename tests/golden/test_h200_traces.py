"""The main job on real H200 traces against figures computed apart from this code.

``SPEC``: totals that independent implementations of the same definitions computed (ms). ``truth.csv``: what the traced
program itself measured around each step, which no profiler touched.
"""

from __future__ import annotations

import csv
from collections import Counter
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.errors import AlignmentError, ToolError
from nvprof_tools.model.attribution import Attribution
from tests.fixture_files import fixture_log, fixture_trace, fixture_truth

MS = 1_000_000

SECTIONS = {
    "p9_gw2": {
        "mutex_wait": 752.2, "kernel": 735.6, "cpu": 195.0, "host_register": 107.4, "launch": 81.1, "upload": 43.3,
        "host_unregister": 42.5, "mem_info": 26.6, "upload_issue": 19.4, "alloc": 16.5, "profiler": 12.0, "free": 6.8,
        "download": 4.2, "sync_wait": 1.6, "device_sync": 0.24,
    },
    "sim_w2": {
        "mutex_wait": 164.0, "host_register": 147.5, "host_unregister": 47.9, "kernel": 71.7, "alloc": 27.0,
    },
    "p9_barrier": {
        "cpu": 1349.5, "kernel": 737.5, "barrier_wait": 545.2, "mutex_wait": 400.6, "host_register": 105.2,
    },
}  # fmt: skip
SECTION_WALL = {"p9_gw2": 2044.5, "sim_w2": 505.4, "p9_barrier": 3304.7}
DEVICE = {
    "p9_gw2": {
        "kernel": 735.6, "cpu": 193.7, "launch": 81.1, "upload": 43.3, "mem_info": 26.6, "upload_issue": 19.4,
        "alloc": 16.5, "profiler": 12.0, "host_register": 10.7, "free": 6.8, "host_unregister": 4.6, "download": 4.2,
        "mutex_handover": 0.6,
    },
    "p9_barrier": {"kernel": 737.5, "barrier_wait": 545.2, "cpu": 356.1, "upload_issue": 35.8, "host_register": 32.7},
    "sim_w2": {
        "host_register": 135.3, "kernel": 71.7, "host_unregister": 43.3, "upload": 36.8, "alloc": 13.3,
        "sync_wait": 5.2, "upload_issue": 2.1, "cpu": 0.9, "mutex_handover": 0.5,
    },
    "p9_nonvtx": {
        "kernel": 334.9, "cpu": 130.9, "launch": 36.1, "upload": 17.8, "mem_info": 12.9, "upload_issue": 10.8,
        "profiler": 6.2, "alloc": 5.6, "download": 5.4, "host_register": 4.5, "free": 4.0, "host_unregister": 2.1,
        "sync_wait": 1.1, "mutex_handover": 0.5,
    },
}  # fmt: skip
LADDER = {
    "p9_gw2": {
        "timeline_bracket": 100.0, "mutex_held": 98.6, "device_busy": 67.7, "gr_active": 64.1, "kernel_busy": 63.6,
        "sm_active": 56.4, "sm_issue": 14.6,
    },
    "p9_nonvtx": {"timeline_bracket": 100.0, "mutex_held": 98.7, "device_busy": 62.5, "kernel_busy": 58.4},
}  # fmt: skip
EVERY = ("p9_gw2", "p9_nonvtx", "p9_barrier", "p9_cut", "p9_two_procs", "sim_w2", "torch_graph", "torch_graph_node")


@cache
def answer(name: str, with_log: bool = True) -> Attribution:
    log = fixture_log(name)
    return attribute_files(fixture_trace(name), log=log if with_log and log.exists() else None)[0]


def totals(found: Attribution) -> Counter[str]:
    out: Counter[str] = Counter()
    for partition in found.partitions:
        out.update(partition.categories)
    return out


def near(value_ms: float, partitions: int) -> object:
    return pytest.approx(value_ms, rel=0.005, abs=0.05 * partitions)


@pytest.mark.parametrize("name", SECTIONS)
def test_section_totals(name: str) -> None:
    found = answer(name)
    assert len(found.partitions) == 10
    assert sum(p.wall_ns or 0 for p in found.partitions) / MS == pytest.approx(SECTION_WALL[name], abs=0.06)
    got = totals(found)
    for category, expected in SECTIONS[name].items():
        assert got[category] / MS == pytest.approx(expected, rel=0.005, abs=0.06), category


@pytest.mark.parametrize("name", DEVICE)
def test_device_view(name: str) -> None:
    found = answer(name)
    view = found.devices[0].categories
    for category, expected in DEVICE[name].items():
        assert view[category] / MS == pytest.approx(expected, rel=0.005, abs=0.13), category
    assert sum(view.values()) == found.window.wall_ns


def test_sim_w2_device_idles_for_want_of_synthesis() -> None:
    view = answer("sim_w2").devices[0].categories
    assert (view["starved"] + view["drained"]) / MS == pytest.approx(39.7, abs=0.2)


@pytest.mark.parametrize(("name", "with_log"), [("p9_gw2", True), ("p9_gw2", False), ("p9_nonvtx", True)])
def test_ladder(name: str, with_log: bool) -> None:
    rungs = {r.rung: r.fraction for r in answer(name, with_log).ladder}
    for rung, expected in LADDER[name].items():
        fraction = rungs[rung]
        assert fraction is not None
        assert 100 * fraction == pytest.approx(expected, abs=0.2), rung
    assert rungs["nvml_utilisation"] is None


def test_the_log_inside_the_trace_gives_the_same_figures() -> None:
    with_file, stored = answer("p9_gw2"), answer("p9_gw2", False)
    assert stored.inputs.log is not None
    assert stored.inputs.log.kind == "embedded-log"
    assert stored.partitions == with_file.partitions
    assert stored.devices == with_file.devices
    assert stored.clock == with_file.clock


def test_driver_locks_and_who_blocks_whom() -> None:
    rows = {o.category: o for o in answer("p9_gw2").overheads}
    assert rows["launch"].driver_lock_ns == pytest.approx(71.7 * MS, abs=0.06 * MS)
    assert rows["mem_info"].driver_lock_ns == pytest.approx(24.6 * MS, abs=0.06 * MS)
    assert rows["alloc"].driver_lock_ns == pytest.approx(10.8 * MS, abs=0.06 * MS)
    locks = [row.driver_lock_ns or 0 for row in rows.values()]
    assert sum(locks) == pytest.approx(118.8 * MS, abs=0.06 * MS)
    pinning = sum(row.blockers.get(c, 0) for row in rows.values() for c in ("host_register", "host_unregister"))
    assert pinning == pytest.approx(109.7 * MS, abs=0.06 * MS)


def test_clocks() -> None:
    gw2 = answer("p9_gw2").clock
    assert gw2.method == "anchor"
    assert not gw2.anchor_rejected
    assert gw2.offset_ns == pytest.approx(1929.3 * MS, abs=0.05 * MS)
    assert gw2.low_ns is not None
    assert gw2.high_ns is not None
    assert gw2.anchor_ns is not None
    assert (gw2.low_ns - gw2.anchor_ns) / MS >= -0.39
    assert (gw2.high_ns - gw2.anchor_ns) / MS <= 0.13
    sim = answer("sim_w2").clock
    assert sim.method == "constraints"
    assert sim.anchor_rejected
    assert sim.offset_ns is not None
    assert 32.95 * MS <= sim.offset_ns <= 33.12 * MS
    assert any(q.slug == "clock-anchor-rejected" for q in answer("sim_w2").quality)


@pytest.mark.parametrize(("apart_s", "same_run"), [(0.04, True), (-10, False)])
def test_a_wall_clock_a_little_off_is_no_other_runs(apart_s: float, same_run: bool, tmp_path: Path) -> None:
    """With a partition's lines lost: of the same time the rest is enough; ten seconds off it is another run's log."""
    lines = fixture_log("p9_gw2").read_text("utf-8").splitlines()
    stamp = lines[0][4:31]
    moved = (datetime.fromisoformat(stamp) + timedelta(seconds=apart_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    kept = [line.replace(stamp, moved) for line in lines if not ("62a17fb6" in line and "partition=3" in line)]
    log = tmp_path / "app.log"
    log.write_text("\n".join(kept) + "\n", "utf-8")
    if not same_run:
        with pytest.raises(AlignmentError) as caught:
            attribute_files(fixture_trace("p9_gw2"), log=log)
        assert caught.value.slug == "log-trace-mismatch"
        return
    clock = attribute_files(fixture_trace("p9_gw2"), log=log)[0].clock
    assert clock.method == "constraints"
    assert clock.offset_ns == pytest.approx(1929.3 * MS, abs=0.5 * MS)


def test_p9_gw2_has_ten_partitions_of_two_jobs() -> None:
    found = answer("p9_gw2")
    assert len({(p.job, p.partition) for p in found.partitions}) == 10
    assert len({p.job for p in found.partitions}) == 2
    assert {p.worker for p in found.partitions} == {0, 1}
    assert [job.cold for job in found.jobs] == [True, False]


def truth(path: Path) -> dict[tuple[str, str], int]:
    """(job/partition, step) → ns the program measured."""
    out: dict[tuple[str, str], int] = {}
    with path.open() as lines:
        for row in csv.DictReader(lines):
            key = (row["job"], row["step"])
            out[key] = out.get(key, 0) + int(row["end_utc_ns"]) - int(row["start_utc_ns"])
    return out


STEPS = {
    "mutex_wait": ("mutex_acquire",),
    "host_register": ("host_register",),
    "host_unregister": ("host_unregister",),
}


@pytest.mark.parametrize("name", ["p9_gw2", "p9_barrier", "p9_nonvtx", "sim_w2"])
def test_against_what_the_program_measured(name: str) -> None:
    share, slack = (0.03, 0.1 * MS) if name == "p9_nonvtx" else (0.01, 0.05 * MS)
    measured, found = truth(fixture_truth(name)), answer(name)
    sums: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for partition in found.partitions:
        key = f"{partition.job}/{partition.partition}"
        for category, steps in STEPS.items():
            want = sum(measured[key, step] for step in steps)
            got = partition.categories.get(category, 0)
            # Where a lock is free the program still measures its own clock reads.
            assert abs(got - want) <= max(share * want, slack), (key, category, got, want)
            sums[category] += got
            expected[category] += want
        sync = partition.categories.get("device_sync", 0) + partition.categories.get("pool_trim", 0)
        assert abs(sync - measured[key, "device_sync"]) <= max(share * measured[key, "device_sync"], slack)
        sums["device_sync"] += sync
    for category, want in expected.items():
        assert sums[category] > 0, category
        assert sums[category] == pytest.approx(want, rel=share, abs=slack * len(found.partitions)), category
    assert sums["device_sync"] > 0


def test_p9_nonvtx_tells_the_workers_apart() -> None:
    found = answer("p9_nonvtx")
    assert len(found.partitions) == 8
    with fixture_truth("p9_nonvtx").open() as lines:
        rows = list(csv.DictReader(lines))
    thread = {row["job"]: row["thread"] for row in rows if row["step"] == "gpu_prove"}
    for partition in found.partitions:
        assert thread[f"{partition.job}/{partition.partition}"] == f"gpu-worker-{partition.worker}"
        # The section was made of the worker's own calls: its start and end are near the program's own.
        row = next(r for r in rows if r["step"] == "gpu_prove" and r["job"] == f"{partition.job}/{partition.partition}")
        assert partition.wall_ns == pytest.approx(int(row["end_utc_ns"]) - int(row["start_utc_ns"]), abs=2 * MS)


def test_p9_cut_says_what_the_capture_missed() -> None:
    found = answer("p9_cut")
    inside = [p for p in found.partitions if p.section is not None]
    assert len(inside) == 7
    assert [p.open for p in inside] == [False] * 6 + [True]
    outside = [p for p in found.partitions if p.section is None]
    assert len(outside) == 13
    assert all(p.wall_ns is None and p.categories == {} for p in outside)
    assert inside[-1].categories["unattributed"] > 0
    slugs = {q.slug for q in found.quality}
    assert {"window-clipped", "sections-open", "events-lost"} <= slugs
    with pytest.raises(ToolError) as error:
        attribute_files(fixture_trace("p9_cut"), log=fixture_log("p9_cut"), window="3200ms:3300ms")
    assert error.value.slug == "window-outside-capture"


def test_two_provers_in_one_capture_are_told_apart() -> None:
    first = answer("p9_two_procs")
    second = attribute_files(fixture_trace("p9_two_procs"), log=fixture_log("p9_two_procs"), run=2)[0]
    for found in (first, second):
        assert found.clock.method == "anchor"
        assert [p.partition for p in found.partitions] == [0, 1, 2, 3]
        assert any(q.slug == "sections-of-other-process" and q.count == 4 for q in found.quality)
    starts = [{p.start_ns for p in found.partitions} for found in (first, second)]
    assert not starts[0] & starts[1]


@pytest.mark.parametrize("name", EVERY)
def test_every_nanosecond_is_in_one_category(name: str) -> None:
    found = answer(name)
    for view in found.devices:
        assert sum(view.categories.values()) == view.wall_ns
        for category, parts in view.details.items():
            assert sum(parts.values()) <= view.categories[category]
        assert sum(view.stages.values()) <= view.categories.get("kernel", 0)
    for partition in found.partitions:
        if partition.wall_ns is not None:
            assert sum(partition.categories.values()) == partition.wall_ns
            for category, ns in (partition.driver_locks or {}).items():
                assert ns <= partition.categories[category]
    segments = found.device_segments
    for view in found.devices:
        mine = segments.filter(segments.column("device").to_numpy() == view.device)
        start, end = mine.column("start_ns").to_numpy(), mine.column("end_ns").to_numpy()
        assert start[0] == found.window.start_ns
        assert end[-1] == found.window.end_ns
        assert (start[1:] == end[:-1]).all()


@pytest.mark.parametrize("name", ["torch_graph", "torch_graph_node"])
def test_without_a_log_nothing_is_made_up(name: str) -> None:
    found = answer(name)
    assert found.pipeline == "generic"
    assert found.clock.method == "none"
    rungs = {r.rung: r for r in found.ladder}
    for rung in ("timeline_sum", "timeline_bracket", "mutex_held", "sm_active"):
        assert rungs[rung].busy_ns is None
        assert rungs[rung].fraction is None
    assert rungs["device_busy"].fraction is not None


def test_a_trace_and_a_foreign_log_do_not_belong_together() -> None:
    with pytest.raises(ToolError) as error:
        attribute_files(fixture_trace("p9_gw2"), log=fixture_log("p9_nonvtx"))
    assert error.value.slug == "log-trace-mismatch"
