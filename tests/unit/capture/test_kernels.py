"""Which kernels are counted, and why there may be no counters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nvprof_tools.capture.kernels import Wish, dearest, explain, options
from nvprof_tools.capture.tools import Tool
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_trace

STAND_INS = Path(__file__).resolve().parents[2] / "capture_stand_ins"


def test_the_kernels_with_the_most_time_come_first() -> None:
    trace = load_trace(fixture_trace("prover_two_workers"))
    sums: Counter[str] = Counter()
    for row in trace["kernels"].to_pylist():
        sums[row["name"]] += row["end_ns"] - row["start_ns"]
    expected = [name for name, _ in sums.most_common()]
    assert dearest(trace, 3) == expected[:3]
    assert dearest(trace, 100) == expected
    assert expected[0] == "msm_bucket_accumulate"


def test_without_kernels_there_is_nothing_to_count() -> None:
    assert dearest(load_trace(fixture_trace("public/centerformer_poolformer_nvtx_only")), 3) == []


@pytest.mark.parametrize(("fails", "count"), [("", "--launch-count=3"), ("help", "--launch-count=6")])
def test_launches_are_counted_by_shape_where_ncu_can(monkeypatch: pytest.MonkeyPatch, fails: str, count: str) -> None:
    monkeypatch.setenv("NCU_FAILS", fails)
    chosen = options(Wish(extra=("--x",)), ["a", "b"], Tool("ncu", STAND_INS / "ncu", None), "out")
    assert "--kernel-name=regex:^(a|b)$" in chosen
    assert count in chosen
    assert ("--filter-mode=per-launch-config" in chosen) == (not fails)
    assert chosen[-1] == "--x"


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - no permission", "counters-not-permitted"),
        ("==WARNING== No kernels were profiled.", "counters-empty"),
        ("==ERROR== The application returned an error code (11).", "counters-failed"),
        ("", "counters-failed"),
    ],
)
def test_why_there_are_no_counters(said: str, slug: str) -> None:
    error = explain(said, 1)
    assert error.slug == slug
    assert "==" not in error.message
