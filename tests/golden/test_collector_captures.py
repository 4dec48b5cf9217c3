"""Captures of our own collector, recorded on an H200, against what nsys recorded of the same program in turn.

The figures of nsys are those that ``benchmarks/collector`` took from its SQLite exports; ``results/h200.json`` there
has all rounds.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.quality import Severity
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import ROOT

PROVER = str(ROOT / "prover" / "prover.toml")
NSYS_COUNTS = {"kernels": 3966, "copies": 207, "memsets": 40}
NSYS_MEDIANS = {
    "bit_reverse": 18_912, "ntt_butterfly": 4_960, "msm_window_sum": 241_072.5, "msm_bucket_reduce": 381_105,
    "msm_bucket_accumulate": 4_623_464.5, "pointwise_multiply_subtract": 5_952, "scale": 4_352,
}  # fmt: skip
"""ns. A kernel that ran twice only is left out."""
NSYS_SHARES = {
    "mutex_wait": (43.103, 1.594), "kernel": (40.761, 1.407), "cpu": (3.803, 0.842), "alloc": (3.033, 0.896),
    "host_register": (3.028, 0.427), "upload_issue": (1.331, 0.724), "free": (1.208, 0.172),
    "host_unregister": (1.152, 0.207), "mem_info": (1.001, 0.278), "upload": (0.881, 0.03), "launch": (0.333, 0.261),
}  # fmt: skip
"""Percent of the sections' time, median of six runs, and how far six runs under one tool lie apart."""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    for packed in (ROOT / "captures").rglob("*.nvcap.xz"):
        place = folder / packed.parent.name
        place.mkdir()
        (place / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))
    return folder


@pytest.fixture(scope="module")
def rounds(captures: Path) -> tuple[Attribution, Trace]:
    log = ROOT / "captures" / "prover_rounds" / "app.log"
    return attribute_files(captures / "prover_rounds", log=log, pipeline=PROVER)


def test_the_same_work_as_under_nsys(rounds: tuple[Attribution, Trace]) -> None:
    trace = rounds[1]
    assert trace.source.kind == "nvprof-capture"
    assert {name: trace[name].num_rows for name in NSYS_COUNTS} == NSYS_COUNTS
    assert trace["kernels"]["api_call"].null_count == 0
    assert not [item for item in trace.quality if item.severity in {Severity.DATA_LOSS, Severity.ERROR}]


def test_kernels_take_as_long_as_under_nsys(rounds: tuple[Attribution, Trace]) -> None:
    kernels = rounds[1]["kernels"]
    names = np.array(kernels["name"].to_pylist())
    took = kernels["end_ns"].to_numpy() - kernels["start_ns"].to_numpy()
    for name, median in NSYS_MEDIANS.items():
        assert float(np.median(took[names == name])) == pytest.approx(median, rel=0.02, abs=100), name


def test_time_goes_where_it_goes_under_nsys(rounds: tuple[Attribution, Trace]) -> None:
    sections = [p.categories for p in rounds[0].partitions]
    whole = sum(sum(categories.values()) for categories in sections)
    for name, (share, apart) in NSYS_SHARES.items():
        own = 100 * sum(categories.get(name, 0) for categories in sections) / whole
        assert own == pytest.approx(share, abs=max(0.5, apart)), name


def test_every_partition_of_the_log_has_its_section(rounds: tuple[Attribution, Trace]) -> None:
    """And, without nsys' view of the system's calls, its waits and the driver's own locks."""
    found = rounds[0]
    assert found.clock.method == "marks"
    assert len({(p.job, p.partition) for p in found.partitions}) == 40
    rows = {o.category: o for o in found.overheads}
    assert rows["mutex_wait"].calls == 40
    assert (rows["upload_issue"].driver_lock_ns or 0) > 10_000_000
    assert set(rows["upload_issue"].blockers) >= {"host_register"}


def test_samples_lie_on_the_kernels_clock(captures: Path) -> None:
    """Sampling began half a second late, which is said; in the time it saw, SMs were active when kernels ran."""
    log = ROOT / "captures" / "prover_metrics" / "app.log"
    found, trace = attribute_files(captures / "prover_metrics", log=log, pipeline=PROVER)
    assert [q.slug for q in found.quality if q.slug == "gpu-metrics-partial"]
    samples = trace["gpu_metrics"].to_pandas()
    active = samples[samples.metric.str.startswith("SMs Active")].sort_values("time_ns")
    kernels = trace["kernels"].to_pandas()
    sampled_from = int(active.time_ns.iloc[1])
    during = attribute_files(
        captures / "prover_metrics", window=f"{sampled_from}:{int(kernels.end_ns.max())}", pipeline=PROVER
    )[0]
    rungs = {r.rung: r.fraction for r in during.ladder if r.fraction is not None}
    assert not [q.slug for q in during.quality if q.slug == "gpu-metrics-partial"]
    assert 0.6 < rungs["sm_active"] < rungs["kernel_busy"] < 0.9
    assert float(active[active.time_ns > kernels.end_ns.max() + 1_000_000].value.max()) < 1


def test_a_capture_can_be_read_alone(captures: Path) -> None:
    """One file of the folder, without its log."""
    path = next((captures / "prover_rounds").iterdir())
    assert load_trace(path)["kernels"].num_rows == NSYS_COUNTS["kernels"]
