"""Means of counters over groups of launches, weighted with the trace's kernel time.

Launches that share a kernel, stage, device and profile are one *cell*: everything is summed over the few cells, never
over the launches again. Times are exact integers, kept as two halves so that no sum can wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution import roofline
from nvprof_tools.attribution.counter_match import distinct_rows
from nvprof_tools.attribution.counter_profiles import Profiles
from nvprof_tools.model.attribution import KernelCounters
from nvprof_tools.model.counters import CounterTable
from nvprof_tools.timeline.intervals import Index, Ints

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
STALLS_SHOWN = 5


@dataclass(frozen=True)
class Figures:
    """A profile's mean of each figure of ``roofline.METRICS``, percent, and of each stall reason, percent of a warp's
    cycles between two issues; NaN: none of its launches has it."""

    percent: Mapping[str, Floats]
    stalls: Mapping[str, Floats]


def figures_of(counters: CounterTable, profiles: Profiles) -> Figures:
    """Means over a profile's launches. Values that are no number have been left out by the reader."""
    sizes = np.array([len(m) for m in profiles.members], np.int64)
    flat = np.concatenate(profiles.members) if profiles.members else np.empty(0, np.intp)
    owner = np.repeat(np.arange(len(sizes)), sizes)

    def means(values: Floats) -> Floats:
        picked = values[flat]
        known = np.isfinite(picked)
        count = np.bincount(owner[known], minlength=len(sizes))
        total = np.bincount(owner[known], picked[known], minlength=len(sizes))
        mean: Floats = np.divide(total, count, out=np.full(len(sizes), np.nan), where=count > 0)
        return mean

    percent = {figure: means(counters.first_metric(metrics)) for figure, metrics in roofline.METRICS.items()}
    stalls = {
        name[len(roofline.STALL_PREFIX) : -len(roofline.STALL_SUFFIX)]: means(counters.metric(name))
        for name in counters.metrics
        if name.startswith(roofline.STALL_PREFIX) and name.endswith(roofline.STALL_SUFFIX)
    }
    whole = np.zeros(len(sizes))
    for values in stalls.values():
        whole += np.nan_to_num(values)
    shares = {
        reason: np.divide(100 * values, whole, out=np.full(len(sizes), np.nan), where=whole > 0)
        for reason, values in stalls.items()
    }
    return Figures(percent, shares)


@dataclass(frozen=True)
class Cells:
    """One row a cell: launches, those paired one to one, and the sum of their durations in two halves."""

    kernel: Ints
    stage: Ints
    device: Ints
    profile: Ints
    launches: Ints
    exact: Ints
    high: Ints
    low: Ints

    @staticmethod
    def of(start: Ints, end: Ints, kernel: Index, stage: Index, device: Ints, profile: Index, exact: Flags) -> Cells:
        """Cells of launches, one row each: clipped times, kernel, stage, device and profile (−1: none)."""
        first, cell = distinct_rows([kernel, stage, device, profile])
        count = len(first)
        high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.add.at(high, cell, (end >> 32) - (start >> 32))
        np.add.at(low, cell, (end & 0xFFFFFFFF) - (start & 0xFFFFFFFF))
        return Cells(
            kernel[first].astype(np.int64),
            stage[first].astype(np.int64),
            device[first].astype(np.int64),
            profile[first].astype(np.int64),
            np.bincount(cell, minlength=count),
            np.bincount(cell[exact], minlength=count),
            high,
            low,
        )

    def ns(self, group: Index, count: int, chosen: Flags | None = None) -> list[int]:
        """Exact kernel time of each of ``count`` groups; ``group`` is each cell's."""
        chosen = np.ones(len(group), bool) if chosen is None else chosen
        high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.add.at(high, group[chosen], self.high[chosen])
        np.add.at(low, group[chosen], self.low[chosen])
        return [(int(h) << 32) + int(x) for h, x in zip(high, low, strict=True)]

    @property
    def matched(self) -> Flags:
        """Cells that have a profile."""
        return self.profile >= 0

    def mean(self, group: Index, count: int, values: Floats) -> tuple[Floats, list[int]]:
        """Mean of a profile's figure over each group's kernel time, NaN where unknown, and the ns it is known for."""
        if not len(values):
            return np.full(count, np.nan), [0] * count
        value = np.where(self.matched, values[np.maximum(self.profile, 0)], np.nan)
        known = np.isfinite(value)
        weight = self.high[known].astype(np.float64) * 2.0**32 + self.low[known]
        total = np.bincount(group[known], weight * value[known], minlength=count)
        time = np.bincount(group[known], weight, minlength=count)
        mean = np.divide(total, time, out=np.full(count, np.nan), where=time > 0)
        return mean, self.ns(group, count, known)


def grouped(cells: Cells, figures: Figures, group: Ints) -> tuple[list[KernelCounters], list[int]]:
    """A row a group, kernel and stage left open, and the groups' numbers. ``group`` is each cell's."""
    keys, inverse = np.unique(group, return_inverse=True)
    inverse = inverse.reshape(-1)
    count = len(keys)
    total, known = cells.ns(inverse, count), cells.ns(inverse, count, cells.matched)
    launches, hits, exact = (
        np.zeros(count, np.int64) for _ in range(3)
    )  # sums of whole numbers stay whole: bincount with weights would not
    np.add.at(launches, inverse, cells.launches)
    np.add.at(hits, inverse[cells.matched], cells.launches[cells.matched])
    np.add.at(exact, inverse, cells.exact)
    means = {figure: cells.mean(inverse, count, values) for figure, values in figures.percent.items()}
    stalls = {reason: cells.mean(inverse, count, values)[0] for reason, values in figures.stalls.items()}
    out = []
    for i in range(count):
        sm, memory, dram = (means[f][0][i] for f in (roofline.SM, roofline.MEMORY, roofline.DRAM))
        covered = min(means[roofline.SM][1][i], max(means[f][1][i] for f in (roofline.MEMORY, roofline.DRAM)))
        bound = roofline.bound(_known(sm), _known(memory), _known(dram)) if 2 * covered >= total[i] > 0 else None
        out.append(
            KernelCounters(
                kernel=None,
                stage="",
                launches=int(launches[i]),
                total_ns=total[i],
                matched_launches=int(hits[i]),
                matched_ns=known[i],
                sm_throughput_pct=_known(sm),
                dram_throughput_pct=_known(dram),
                occupancy_pct=_known(means[roofline.OCCUPANCY][0][i]),
                theoretical_occupancy_pct=_known(means[roofline.THEORETICAL][0][i]),
                issue_pct=_known(means[roofline.ISSUE][0][i]),
                stalls=_top({reason: values[i] for reason, values in stalls.items()}),
                bound=bound,
                match=_how(int(hits[i]), int(exact[i])),
            )
        )
    return out, keys.tolist()


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _top(stalls: Mapping[str, float]) -> dict[str, float]:
    """The largest stall reasons; issuing itself is none."""
    real = {r: float(v) for r, v in stalls.items() if r != roofline.NOT_A_STALL and np.isfinite(v) and v > 0}
    return dict(sorted(real.items(), key=lambda item: (-item[1], item[0]))[:STALLS_SHOWN])


def _how(matched: int, exact: int) -> str:
    if not matched:
        return "none"
    return "exact" if exact == matched else "mixed" if exact else "class"
