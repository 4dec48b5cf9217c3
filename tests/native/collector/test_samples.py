"""PM samples: metrics that fit, times on the trace's clock, and refusals that leave all else alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.native.collector.conftest import Ran, cupti_include

Run = Callable[..., Ran]
BEHIND_NS = 5_000_000_000

pytestmark = pytest.mark.skipif(
    not any((path / "cupti_pmsampling.h").is_file() for path in cupti_include()), reason="headers without PM sampling"
)


def test_samples_of_two_devices(run: Run) -> None:
    capture = run("samples", env={"NVPROF_COLLECTOR_PM": "1000"}).only()
    names = {
        (row["deviceId"], row["metricId"]): (capture.text(row["name"]), capture.text(row["source"]), row["scale"])
        for row in capture.table("gpu_metric_name")
    }
    assert [names[0, metric][0] for metric in range(4)] == [
        "SMs Active [Throughput %]",
        "SM Issue [Throughput %]",
        "DRAM Read Bandwidth [Throughput %]",
        "DRAM Write Bandwidth [Throughput %]",
    ]
    assert len(names) == 8
    assert names[1, 2][1] == "dram__read_throughput.avg.pct_of_peak_sustained_elapsed", "the first name is not known"
    samples = capture.table("gpu_metric")
    assert {row["deviceId"] for row in samples} == {0, 1}
    for row in samples:
        assert row["value"] == 10_000 * row["metricId"] + 500
        assert row["end"] - row["start"] == 1_000_000
        assert 0 <= row["start"] - row["gpuStart"] - BEHIND_NS < 2_000_000
    assert capture.infos["pm"]["state"] == "on"
    assert "PCIe" in next(one["message"] for one in capture.notices if one["slug"] == "pm-refused")
    assert capture.slugs()["pm-overflow"] == 1


@pytest.mark.parametrize("call", ["cuptiPmSamplingEnable", "cuptiProfilerInitialize", "cuptiPmSamplingStart"])
def test_refused(run: Run, call: str) -> None:
    capture = run("samples", env={"NVPROF_COLLECTOR_PM_HZ": "1000", "FAKE_PM_REFUSES": call}).only()
    assert capture.infos["pm"]["state"] == "refused"
    assert call in next(one["message"] for one in capture.notices if one["slug"] == "pm-refused")
    assert "gpu_metric" not in capture.rows
    assert capture.end is not None
    assert capture.end["complete"] is True


def test_broken_off(run: Run) -> None:
    env = {"NVPROF_COLLECTOR_PM": "1000", "FAKE_PM_REFUSES": "cuptiPmSamplingDecodeData"}
    assert run("samples", env=env).only().slugs()["pm-stopped"] == 2


def test_not_asked_for(run: Run) -> None:
    capture = run("samples").only()
    assert "pm" not in capture.infos
    assert capture.slugs() == {}
