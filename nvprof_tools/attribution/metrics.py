"""GPU metric samples, averaged over any set of time. A sample's time is the start of its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import floats, ints, names
from nvprof_tools.timeline.intervals import Ints, Spans

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
    """One metric of one device as a step function: ``edges`` in ns, and up to each edge the time sampled and the area
    under the metric (percent × ns). Any set of time is then averaged in its own size."""

    name: str
    edges: Ints
    sampled: Ints
    area: npt.NDArray[np.float64]

    def covered(self, over: Spans) -> float:
        """How much of a set of time was sampled, ns."""
        return float(np.sum(self._until(self.sampled, over.end) - self._until(self.sampled, over.start)))

    def mean(self, over: Spans) -> float | None:
        """Time-weighted mean over the sampled part of a set of time; null where there is none."""
        total = self.covered(over)
        if total <= 0:
            return None
        return float(np.sum(self._until(self.area, over.end) - self._until(self.area, over.start))) / total

    def _until(self, running: npt.NDArray[np.int64] | npt.NDArray[np.float64], at: Ints) -> npt.NDArray[np.float64]:
        return np.asarray(np.interp(at - self.edges[0], self.edges - self.edges[0], running), np.float64)


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
    time, value = ints(table, "time_ns"), floats(table, "value")
    out: dict[str, Samples] = {}
    for row, word in enumerate(words):
        rung = rung_of(word)
        if rung is None or rung in out:
            continue
        mine = np.flatnonzero(own & (code == row) & ~np.isnan(value))
        if len(mine) >= 2:
            mine = mine[np.argsort(time[mine], kind="stable")]
            out[rung] = steps(word, time[mine], value[mine])
    return out


def steps(name: str, start: Ints, value: npt.NDArray[np.float64]) -> Samples:
    """Samples that each hold from their start to the next one's; two or more, in order of time."""
    period = int(np.median(np.diff(start)))
    end = np.append(start[1:], start[-1] + period)
    # A hole in the samples is not the value before it: an interval lasts two usual periods at most.
    end = np.minimum(end, start + 2 * period)
    length = end - start
    edges = np.stack([start, end], axis=1).ravel()
    sampled = np.repeat(np.cumsum(length), 2)
    sampled[::2] -= length
    area = np.repeat(np.cumsum(length * value), 2)
    area[::2] -= length * value
    return Samples(name, edges, sampled, area)
