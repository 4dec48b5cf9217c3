"""The utilisation ladder: from what the log claims down to what the silicon did, over one window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.metrics import METRIC_RUNGS, Samples
from nvprof_tools.model.attribution import Rung, Window
from nvprof_tools.timeline.intervals import Ints, Spans, subtract, sum_exact, union, within

RUNGS = (
    "timeline_sum",
    "timeline_bracket",
    "mutex_held",
    "nvml_utilisation",
    "device_busy",
    "gr_active",
    "kernel_busy",
    "sm_active",
    "warps_in_flight",
    "sm_issue",
    "dram_read",
    "dram_write",
    "pcie_rx",
    "pcie_tx",
)
_EVIDENCE = {
    "timeline_sum": "TIMELINE",
    "timeline_bracket": "TIMELINE",
    "nvml_utilisation": "NVML",
    "device_busy": "KERNEL+MEMCPY+MEMSET",
    "kernel_busy": "KERNEL",
}


@dataclass(frozen=True)
class Rungs:
    """The sets of time that rungs are made of, of one device; null: not measured.

    ``brackets``: the log's, unclipped, one row each; ``held``: the mutex; ``held_by``: its evidence.
    """

    brackets: tuple[Ints, Ints] | None
    held: tuple[Ints, Ints] | None
    held_by: str
    busy: Spans | None
    kernels: Spans | None


def ladder(
    device: int,
    window: Window,
    sets: Rungs,
    samples: Mapping[str, Samples],
    causes: Callable[[Spans], dict[str, int]],
) -> list[Rung]:
    """Every rung of one device, top first. ``samples`` are by rung, NVML's among them. ``causes`` says what the device
    view gives for a set of time, category → ns: what lies between two rungs."""
    low, high = window.start_ns, window.end_ns
    whole = Spans(np.array([low], np.int64), np.array([high], np.int64))
    nested: dict[str, Spans | None] = {
        "timeline_bracket": None if sets.brackets is None else within(union(*sets.brackets), low, high),
        "mutex_held": None if sets.held is None else within(union(*sets.held), low, high),
        "device_busy": None if sets.busy is None else within(sets.busy, low, high),
        "kernel_busy": None if sets.kernels is None else within(sets.kernels, low, high),
    }
    rungs: list[Rung] = []
    above = whole
    for rung in RUNGS:
        evidence = sets.held_by if rung == "mutex_held" else _EVIDENCE.get(rung, "GPU_METRICS")
        if rung in METRIC_RUNGS or rung == "nvml_utilisation":
            rungs.append(_sampled(device, rung, evidence, samples.get(rung), whole, window.wall_ns))
            continue
        time = nested.get(rung)
        drop: dict[str, int] = {}
        busy_ns: int | None = None
        if rung == "timeline_sum" and sets.brackets is not None:
            start, end = np.maximum(sets.brackets[0], low), np.minimum(sets.brackets[1], high)
            keep = end > start
            busy_ns = sum_exact(end[keep], start[keep])
        elif time is not None:
            busy_ns = time.total
            drop = causes(subtract(above, time))
            above = time
        fraction = None if busy_ns is None or window.wall_ns == 0 else busy_ns / window.wall_ns
        rungs.append(Rung(device, rung, busy_ns, fraction, evidence, drop))
    return rungs


def _sampled(device: int, rung: str, evidence: str, samples: Samples | None, whole: Spans, wall: int) -> Rung:
    mean = None if samples is None else samples.mean(whole)
    if samples is None or mean is None:
        return Rung(device, rung, None, None, evidence)
    return Rung(device, rung, round(mean / 100 * wall), mean / 100, f"{evidence}: {samples.name}")
