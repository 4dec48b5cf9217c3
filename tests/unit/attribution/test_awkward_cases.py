"""Inputs often added up wrong: overlap, idle streams, copies between kernels, runs and brackets that overlap."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.errors import UsageError
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export
from tests.fixture_files import fixture_log, fixture_trace

US = 1_000


def answer(export: Export, folder: Path, window: str) -> Attribution:
    trace = load_trace(export.write(folder / "trace.sqlite"))
    return attribute(trace, None, [load_pipeline("generic")], Options(window=window))


def rung(found: Attribution, name: str) -> float:
    value = next(r.fraction for r in found.ladder if r.rung == name)
    assert value is not None
    return value


def test_computing_and_communicating_at_once_is_busy_once(tmp_path: Path) -> None:
    # 1,626.1 µs of compute and 627.5 µs of communication in 2,008.6 µs, 30.3 µs idle: 98.5 %, not 112.5 %.
    export = Export("2025.3", duration=3_000_000)
    export.board(0, ordinal=0)
    export.kernel(0, 1_626_100, "gemm", stream=7)
    export.kernel(1_350_800, 1_978_300, "ncclDevKernel_AllReduce", stream=20)
    found = answer(export, tmp_path, "0:2008600")
    assert round(100 * rung(found, "device_busy"), 1) == 98.5
    assert found.devices[0].categories["kernel"] == 1_978_300
    assert found.devices[0].wall_ns - 1_978_300 == 30_300


def test_one_stream_idle_beside_a_busy_one_costs_nothing(tmp_path: Path) -> None:
    export = Export("2025.3", duration=1_000_000)
    export.board(0, ordinal=0)
    export.kernel(0, 100_000, "long", stream=7)
    export.kernel(0, 10_000, "short", stream=8)
    export.kernel(59_000, 69_000, "short", stream=8)
    found = answer(export, tmp_path, "0:100000")
    assert found.gaps == ()
    assert found.devices[0].categories == {"kernel": 100_000}


def test_copies_between_kernels_are_copies(tmp_path: Path) -> None:
    export = Export("2025.3", duration=1_000_000)
    export.board(0, ordinal=0)
    export.kernel(0, 10_000)
    export.copy(12_000, 20_000, srcKind=1)
    export.memset(20_000, 21_000)
    export.kernel(25_000, 40_000)
    view = answer(export, tmp_path, "0:40000").devices[0].categories
    assert view == {"kernel": 25_000, "upload": 8_000, "memset": 1_000, "unattributed": 6_000}


def test_a_graph_traced_as_a_whole_is_busy_and_its_launch_is_charged_once(tmp_path: Path) -> None:
    export = Export("2025.3", duration=1_000_000)
    export.board(0, ordinal=0)
    export.call(0, 5_000, "cudaGraphLaunch_v10000", correlation=1)
    export.graph(4_000, 30_000, correlation=1)
    found = answer(export, tmp_path, "0:40000")
    assert found.devices[0].categories["kernel"] == 26_000
    assert found.devices[0].stages == {"graph": 26_000}
    assert found.devices[0].categories["launch"] == 4_000


def test_brackets_of_two_workers_overlap_and_their_union_does_not(tmp_path: Path) -> None:
    found = attribute_files(fixture_trace("p9_gw2"), log=fixture_log("p9_gw2"))[0]
    assert rung(found, "timeline_sum") > 1.7
    assert rung(found, "timeline_bracket") == 1.0


def test_of_three_runs_in_one_log_the_captured_one_is_taken(tmp_path: Path) -> None:
    own = fixture_log("p9_gw2").read_text()
    log = tmp_path / "three.log"
    log.write_text(fixture_log("p9_nonvtx").read_text() + own + fixture_log("p9_barrier").read_text())
    found = attribute_files(fixture_trace("p9_gw2"), log=log)[0]
    alone = attribute_files(fixture_trace("p9_gw2"), log=fixture_log("p9_gw2"))[0]
    assert found.inputs.log_run == 2
    assert found.partitions == alone.partitions


def test_a_partition_that_failed_is_open_and_counted(tmp_path: Path) -> None:
    lines = fixture_log("p9_gw2").read_text().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if ",GPU_END," in line)
    log = tmp_path / "failed.log"
    log.write_text("".join(lines[:last] + lines[last + 1 :]))
    found = attribute_files(fixture_trace("p9_gw2"), log=log)[0]
    assert len(found.partitions) == 10
    unended = [p for p in found.partitions if p.bracket_end_ns is None]
    assert len(unended) == 1
    assert unended[0].bracket_start_ns is not None
    assert unended[0].categories["kernel"] > 0


def test_without_a_lock_the_only_open_section_has_the_work_of_other_threads(tmp_path: Path) -> None:
    """A framework's own thread launches for whoever is open; with two open nobody can say, and nobody gets it."""
    export = Export("2025.3", duration=1_000_000)
    export.board(0, ordinal=0)
    export.nvtx(10_000, 60_000, "gpu_section", thread=100)
    export.nvtx(70_000, 130_000, "gpu_section", thread=100)
    export.nvtx(110_000, 150_000, "gpu_section", thread=101)
    for number, (at, until) in enumerate([(25_000, 30_000), (80_000, 90_000), (121_000, 125_000)], 1):
        export.call(at - 5_000, at - 3_000, "cudaLaunchKernel", correlation=number, thread=200)
        export.kernel(at, until, correlation=number)
    found = answer(export, tmp_path, "0:200000")
    assert [p.categories.get("kernel", 0) for p in found.partitions] == [5_000, 10_000, 0]


def test_samples_of_half_the_window_are_said_to_be_that(tmp_path: Path) -> None:
    """Sampling began late: the rung is the mean of what was sampled, and a note says how much that is."""
    export = Export("2025.3", duration=1_000_000)
    export.kernel(0, 200_000)
    for time in range(100_000, 200_000, 10_000):
        export.metric(time, 80)
    found = answer(export, tmp_path, "0:200000")
    assert rung(found, "sm_active") == 0.8
    assert [q.message for q in found.quality if q.slug == "gpu-metrics-partial"] == [
        "GPU metrics were sampled in 50% of the window on device 0: their rungs tell of that part alone"
    ]
    (tmp_path / "again").mkdir()
    whole = answer(export, tmp_path / "again", "100000:200000")
    assert not [q for q in whole.quality if q.slug == "gpu-metrics-partial"]


def test_a_job_that_is_not_there_is_a_typing_error() -> None:
    with pytest.raises(UsageError) as caught:
        attribute_files(fixture_trace("p9_gw2"), log=fixture_log("p9_gw2"), job="6cdff066")
    assert caught.value.slug == "unknown-job"
    assert "6cdff066-dc7f-41aa-ae5a-ccbb439bd9a3" in caught.value.hint


def _stopped_after(ends: int, folder: Path) -> Path:
    """The log of ``p9_gw2`` as it stood when so many brackets had ended."""
    lines = fixture_log("p9_gw2").read_text("utf-8", "surrogateescape").splitlines(keepends=True)
    last = [row for row, line in enumerate(lines) if "GPU_END" in line][ends - 1]
    path = folder / f"{ends}.log"
    path.write_text("".join(lines[: last + 1]), "utf-8", "surrogateescape")
    return path


@functools.cache
def _whole() -> Attribution:
    return attribute_files(fixture_trace("p9_gw2"), log=fixture_log("p9_gw2"))[0]


@pytest.mark.parametrize("ends", [1, 2, 3, 4, 7])
def test_a_log_that_stops_early(ends: int, tmp_path: Path) -> None:
    """Copied while the daemon runs: what it covers is attributed, with the whole log's clock."""
    trace, whole = fixture_trace("p9_gw2"), _whole()
    found, _ = attribute_files(trace, log=_stopped_after(ends, tmp_path))
    assert found.pipeline == "cuzk"
    assert found.clock.offset_ns is not None and whole.clock.offset_ns is not None
    assert abs(found.clock.offset_ns - whole.clock.offset_ns) < 1_000_000
    closed = {
        (p.job, p.partition): p for p in found.partitions if p.bracket_end_ns is not None and p.section is not None
    }
    assert len(closed) >= ends - 1
    for partition in whole.partitions:
        own = closed.get((partition.job, partition.partition))
        if own is not None:
            assert (own.start_ns, own.end_ns) == (partition.start_ns, partition.end_ns)


@pytest.mark.parametrize("anchored", [True, False])
def test_a_log_whose_brackets_never_end(anchored: bool, tmp_path: Path) -> None:
    """It says nothing of the GPU's time, and nothing bounds the clocks' distance: neither is a number."""
    lines = fixture_log("p9_gw2").read_text("utf-8", "surrogateescape").splitlines(keepends=True)
    path = tmp_path / "endless.log"
    kept = [line for line in lines if "GPU_END" not in line and (anchored or "starting cuzk engine" not in line)]
    path.write_text("".join(kept), "utf-8", "surrogateescape")
    found, _ = attribute_files(fixture_trace("p9_gw2"), log=path)
    assert found.clock.uncertainty_ns is None
    assert found.clock.low_ns is None
    assert (found.clock.method, found.clock.offset_ns is None) == (("anchor", False) if anchored else ("none", True))
    rungs = {rung.rung: rung.busy_ns for rung in found.ladder}
    assert rungs["timeline_sum"] is None and rungs["timeline_bracket"] is None
    assert rungs["kernel_busy"]
