"""The answer in words holds the figures, all of them measured."""

from __future__ import annotations

from dataclasses import replace

import attribution_samples as samples
import pytest

from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.report.paragraph import finding, paragraph


def test_the_finding_of_the_rich_run() -> None:
    assert finding(samples.rich()) == (
        "The log says 100 %, SMs were active 56 %; "
        "pinning costs 150 ms itself and 110 ms more through the driver's lock."
    )


def test_samples_of_a_part_answer_no_claim_about_the_whole() -> None:
    a = samples.rich()
    partly = QualityItem("gpu-metrics-partial", Severity.NOTICE, 1, "sampled in 52% of the window")
    words = finding(replace(a, quality=(*a.quality, partly)))
    assert words.startswith("The log says 100 %, kernels ran 64 %; ")
    assert "SMs" not in paragraph(replace(a, quality=(*a.quality, partly)))


def test_each_rung_says_what_it_loses() -> None:
    text = paragraph(samples.rich())
    assert "Between the held mutex and the busy device (99.9 % to 67.8 %) lie 371 ms: cpu 194 ms, launch 81 ms" in text
    assert (
        "Between the busy device and running kernels (67.8 % to 63.7 %) lie 48 ms: upload 43 ms and download 4.2 ms."
        in text
    )
    assert "SMs were active 56.4 % of the window and issued in 14.6 % of their slots." in text


def test_locks_stages_bound_and_doubt() -> None:
    text = paragraph(samples.rich())
    assert (
        "119 ms of the sections pass waiting on locks inside the driver, 110 ms of them while another thread pins"
        in text
    )
    assert "Kernel time by stage: msm" in text
    assert "accumulate (msm) is compute-bound (SM throughput 62 %, DRAM throughput 11 %, occupancy 25 %)" in text
    assert "by its wall-clock line, ± 250 us" in text
    assert "not whole (1 item of data loss)" in text


def test_a_rejected_anchor_is_said_with_its_distance() -> None:
    a = samples.rich()
    clock = replace(a.clock, method="constraints", anchor_ns=a.clock.offset_ns + 772_126_000_000, anchor_rejected=True)
    assert "772,126 ms off and was rejected" in paragraph(replace(a, clock=clock))


@pytest.mark.parametrize("name", ["no_metrics", "no_log", "no_cuda", "empty", "one_event"])
def test_what_was_not_measured_is_left_out(name: str) -> None:
    a, _ = samples.AWKWARD[name]()
    text = paragraph(a)
    if name in {"no_metrics", "no_cuda", "empty", "one_event"}:
        assert "SM" not in text
        assert "driver" not in text
    if name in {"no_log", "no_cuda", "empty", "one_event"}:
        assert "log" not in text
    assert "None" not in text


def test_no_gpu_work_is_said_not_zero() -> None:
    assert finding(samples.no_cuda()) == "No GPU work was measured: there is no utilisation to explain."


def test_the_longest_idle_cause_leads_where_pinning_does_not() -> None:
    a = samples.rich()
    view = a.devices[0]
    moved = {**view.categories, "cpu": view.categories["cpu"] - 100_000_000, "barrier_wait": 300_000_000}
    changed = replace(a, devices=(replace(view, categories=moved),))
    assert finding(changed).endswith("the device idled 300 ms for waiting at the barrier for a CPU thread.")


def test_several_devices_are_averaged() -> None:
    assert finding(samples.ten_devices()).startswith("Averaged over 10 devices, the log says 100 %, kernels ran 50 %;")
    assert "lie 5,050 ms: cpu 5,050 ms" in paragraph(samples.ten_devices())
