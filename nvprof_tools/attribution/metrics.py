"""GPU metric samples, averaged over any set of time. A sample's time is the start of its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import ints, names
from nvprof_tools.timeline.intervals import Ints, Spans, overlap

METRIC_RUNGS: Mapping[str, tuple[str, ...]] = {
    "gr_active": ("gr active",),
    "sm_active": ("sms active", "sm active"),
    "warps_in_flight": ("compute warps in flight",),
    "sm_issue": ("sm issue",),
    "dram_read": ("dram read bandwidth", "dram read throughput"),
    "dram_write": ("dram write bandwidth", "dram write throughput"),
    "pcie_rx": ("pcie rx throughput", "pcie rx"),
    "pcie_tx": ("pcie tx throughput", "pcie tx"),
}
"""Rung → beginnings of the metric's name, lower case; only metrics in percent count."""


@dataclass(frozen=True)
class Samples:
    """One metric of one device: intervals ``[start, end)`` and the value over each, in percent."""

    name: str
    start: Ints
    end: Ints
    value: npt.NDArray[np.float64]

    def mean(self, over: Spans) -> float | None:
        """Time-weighted mean over a set of time; null where no sample lies in it."""
        weight = overlap(self.start, self.end, over)
        total = int(weight.sum())
        return None if total == 0 else float(np.dot(weight.astype(np.float64), self.value) / total)


def rung_of(metric: str) -> str | None:
    """The ladder rung a metric feeds, by the beginning of its name; null for others and for other units."""
    word = metric.lower()
    if "%" not in word:
        return None
    for rung, beginnings in METRIC_RUNGS.items():
        if word.startswith(beginnings):
            return rung
    return None


def samples(trace: Trace, device: int) -> dict[str, Samples]:
    """Rung → samples of one device; a sample's interval ends where the next begins, the last after the usual period."""
    table = trace["gpu_metrics"]
    if len(table) == 0:
        return {}
    code, words = names(table, "metric")
    own = ints(table, "device") == device
    time = ints(table, "time_ns")
    value = np.asarray(pc.fill_null(table.column("value"), float("nan")).to_numpy(), np.float64)
    out: dict[str, Samples] = {}
    for row, word in enumerate(words):
        rung = rung_of(word)
        if rung is None or rung in out:
            continue
        mine = np.flatnonzero(own & (code == row) & ~np.isnan(value))
        if len(mine) < 2:
            continue
        mine = mine[np.argsort(time[mine], kind="stable")]
        start = time[mine]
        period = int(np.median(np.diff(start)))
        end = np.append(start[1:], start[-1] + period)
        # A hole in the samples is not the value before it: an interval lasts two usual periods at most.
        out[rung] = Samples(word, start, np.minimum(end, start + 2 * period), value[mine])
    return out
