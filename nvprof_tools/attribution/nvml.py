"""What the person watching saw: NVML's utilisation as a rung, its memory as a curve, throttling as a doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution.metrics import Samples, steps
from nvprof_tools.model.attribution import MemoryUse, Window
from nvprof_tools.model.nvml import THROTTLES
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Ints

RUNG = "nvml_utilisation"
_UNKNOWN = -(2**62)
_CURVE_POINTS = 2_000


@dataclass(frozen=True)
class Watched:
    """By device of the trace: utilisation as samples, memory in use; and what to know about them."""

    samples: Mapping[int, Samples] = field(default_factory=dict)
    memory: Mapping[int, MemoryUse] = field(default_factory=dict)
    quality: tuple[QualityItem, ...] = ()


def watch(table: pa.Table | None, trace: Trace, window: Window) -> Watched:
    """Put the samples on the trace's clock; null table: nobody watched.

    NVML's order of GPUs is taken for the trace's: both go by bus id, unless devices were hidden from the program.
    """
    if table is None or len(table) == 0:
        return Watched()
    epoch = trace.session.utc_epoch_ns
    if epoch is None:
        return Watched(quality=(_unplaced("the trace does not say when it began"),))
    device = ints(table, "device")
    if len(trace["devices"]) != len(np.unique(device)):
        return Watched(quality=(_unplaced("NVML shows other GPUs than the trace"),))
    time = ints(table, "time_utc_ns") - epoch
    samples: dict[int, Samples] = {}
    memory: dict[int, MemoryUse] = {}
    items: list[QualityItem] = []
    for row in np.unique(device).tolist():
        mine = np.flatnonzero(device == row)
        busy, used = ints(table, "gpu_pct", _UNKNOWN)[mine], ints(table, "used_bytes", _UNKNOWN)[mine]
        reasons = ints(table, "throttle_reasons", 0)[mine]
        at, known = time[mine], busy != _UNKNOWN
        if int(known.sum()) >= 2 and bool((np.diff(at[known]) > 0).all()):
            # A sample tells of the time before it.
            samples[row] = steps("GPU utilisation", at[known][:-1], busy[known][1:].astype(np.float64))
        seen = used != _UNKNOWN
        if seen.any():
            memory[row] = _curve(row, at[seen], used[seen])
        items += _throttled(row, at, reasons, window)
    return Watched(samples, memory, tuple(items))


def merged(measured: Sequence[MemoryUse], watched: Mapping[int, MemoryUse]) -> list[MemoryUse]:
    """The allocations where they were traced, else what NVML saw of the whole board."""
    return [watched.get(use.device, use) if use.peak_bytes is None else use for use in measured]


def _curve(device: int, time: Ints, used: Ints) -> MemoryUse:
    top = int(np.argmax(used))
    keep = np.unique(np.append(np.linspace(0, len(used) - 1, min(len(used), _CURVE_POINTS)).astype(np.int64), top))
    return MemoryUse(
        device, int(used[top]), int(time[top]), "NVML", tuple(time[keep].tolist()), tuple(used[keep].tolist())
    )


def _throttled(device: int, time: Ints, reasons: Ints, window: Window) -> list[QualityItem]:
    inside = (time >= window.start_ns) & (time < window.end_ns)
    slow = inside & ((reasons & sum(THROTTLES)) != 0)
    if not slow.any():
        return []
    names = [name for bit, name in THROTTLES.items() if bool(((reasons[slow] & bit) != 0).any())]
    share = int(slow.sum()) / int(inside.sum())
    return [
        QualityItem(
            "gpu-throttled",
            Severity.NOTICE,
            int(slow.sum()),
            f"GPU {device} was throttled in {share:.0%} of the NVML samples: {', '.join(names)}",
            "compare with runs at the same clocks only",
        )
    ]


def _unplaced(reason: str) -> QualityItem:
    return QualityItem(
        "nvml-unplaced", Severity.NOTICE, 1, f"NVML samples were left out: {reason}", "nvidia-smi's figure is not given"
    )
