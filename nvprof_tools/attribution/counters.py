"""Kernel counters joined to the launches of a trace: per kernel and per stage, weighted by the trace's kernel time.

Counters are taken on a replayed launch, alone on the device, under the profiler's clocks and with cold caches. Its
duration is therefore another quantity than the launch's in the trace; only shares of peak and ratios carry over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution import roofline
from nvprof_tools.attribution.counter_figures import Cells, Figures, figures_of, grouped
from nvprof_tools.attribution.counter_match import Kind, counter_kinds, match_kinds, trace_kinds
from nvprof_tools.attribution.counter_profiles import assign, launch_order
from nvprof_tools.attribution.counter_quality import Coverage, items
from nvprof_tools.model.attribution import KernelCounters, Rung
from nvprof_tools.model.counters import CounterTable
from nvprof_tools.model.kernel_names import labels
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Index, Ints

Flags = npt.NDArray[np.bool_]

NO_STAGE = "other"
RUNGS: Mapping[str, str] = {
    "kernel_sm_throughput": roofline.SM,
    "kernel_issue": roofline.ISSUE_ELAPSED,
    "kernel_dram_throughput": roofline.DRAM,
}
"""Rungs below ``kernel_busy``: kernel time × a share of peak."""


@dataclass(frozen=True)
class DeviceCounters:
    """One device's kernel time with counters: ``weighted`` maps a figure of ``roofline.METRICS`` to
    ``(ns it is known for, mean percent over them)``."""

    total_ns: int
    matched_ns: int
    weighted: Mapping[str, tuple[int, float]]


@dataclass(frozen=True)
class CounterJoin:
    """The join. ``kernels``: one row a kernel and stage, then one a stage (``kernel`` null), each by falling time.

    ``launches``/``total_ns``: kernels in the window and the sum of their durations in it; ``matched_…``: those that
    counters stand for; ``exact_launches``: those paired one to one. ``profile[k]`` is kernel row ``k``'s profile, −1
    for none.
    """

    kernels: tuple[KernelCounters, ...]
    launches: int
    total_ns: int
    matched_launches: int
    matched_ns: int
    exact_launches: int
    devices: Mapping[int, DeviceCounters]
    profile: Index
    quality: tuple[QualityItem, ...]

    @property
    def time_fraction(self) -> float | None:
        """Matched share of kernel time; null: no kernel time."""
        return self.matched_ns / self.total_ns if self.total_ns else None

    @property
    def launch_fraction(self) -> float | None:
        """Matched share of launches; null: no launch."""
        return self.matched_launches / self.launches if self.launches else None


def join_counters(
    trace: Trace,
    counters: CounterTable,
    stage_codes: Ints,
    stage_names: Sequence[str],
    *,
    window: tuple[int, int] | None = None,
    mask: Flags | None = None,
) -> CounterJoin:
    """Join counters to a trace's kernels.

    :param stage_codes: each kernel row's place in ``stage_names``; −1: none.
    :param window: ``(start_ns, end_ns)``, half-open; kernels count by their part inside it. Null: the whole capture.
    :param mask: kernel rows to count; null: all.
    """
    table = trace["kernels"]
    start, end = ints(table, "start_ns"), ints(table, "end_ns")
    if window is not None:
        start, end = np.maximum(start, window[0]), np.minimum(end, window[1])
    counted = (end > start) if mask is None else (end > start) & mask
    kinds, profiled = trace_kinds(table), counter_kinds(counters)
    match = match_kinds(kinds.kinds, profiled.kinds)
    profiles = assign(kinds, profiled, match, launch_order(trace), counters, counted)
    rows = np.flatnonzero(counted)
    figures = figures_of(counters, profiles)
    kernel, kernel_labels = _labels(kinds.kinds, kinds.of_launch[rows])
    stage_words = [*stage_names, NO_STAGE]
    stage = np.where(stage_codes[rows] >= 0, stage_codes[rows], len(stage_names)).astype(np.intp)
    device = ints(table, "device")[rows]
    cells = Cells.of(start[rows], end[rows], kernel, stage, device, profiles.of_launch[rows], profiles.exact[rows])
    per_kernel, keys = grouped(cells, figures, cells.kernel * len(stage_words) + cells.stage)
    per_stage, stage_keys = grouped(cells, figures, cells.stage)
    kernel_rows = [
        replace(row, kernel=kernel_labels[key // len(stage_words)], stage=stage_words[key % len(stage_words)])
        for row, key in zip(per_kernel, keys, strict=True)
    ]
    stage_rows = [replace(row, stage=stage_words[key]) for row, key in zip(per_stage, stage_keys, strict=True)]
    ordered = [*sorted(kernel_rows, key=_by_time), *sorted(stage_rows, key=_by_time)]
    coverage = Coverage(
        launches=len(rows),
        total_ns=sum(row.total_ns for row in stage_rows),
        matched_launches=int(cells.launches[cells.matched].sum()),
        matched_ns=sum(row.matched_ns for row in stage_rows),
        exact_launches=int(cells.exact.sum()),
        kernels=tuple(kernel_rows),
        stages=tuple(stage_rows),
        other_shape=frozenset(_label_set(match.other_shape, kinds.of_launch[rows], kernel, kernel_labels)),
        unused_launches=int(np.isin(profiled.of_launch, list(match.unused - match.ambiguous)).sum()),
        ambiguous_launches=int(np.isin(profiled.of_launch, list(match.ambiguous)).sum()),
    )
    return CounterJoin(
        kernels=tuple(ordered),
        launches=coverage.launches,
        total_ns=coverage.total_ns,
        matched_launches=coverage.matched_launches,
        matched_ns=coverage.matched_ns,
        exact_launches=coverage.exact_launches,
        devices=_devices(cells, figures),
        profile=profiles.of_launch,
        quality=tuple(items(coverage)),
    )


def counter_rungs(join: CounterJoin, device: int, kernel_busy_ns: int | None, wall_ns: int) -> tuple[Rung, ...]:
    """Rungs below ``kernel_busy`` of one device: kernel time × a mean share of peak, under the counters' clocks.

    The mean is over the kernel time that has counters. Below half of it nothing is said for the whole: null.
    """
    found = join.devices.get(device)
    out = []
    for rung, figure in RUNGS.items():
        known, mean = (0, float("nan")) if found is None else found.weighted[figure]
        if found is None or kernel_busy_ns is None or not known or 2 * known < found.total_ns:
            out.append(Rung(device, rung, None, None, "KERNEL × ncu"))
            continue
        share = known / found.total_ns
        busy = round(kernel_busy_ns * mean / 100)
        evidence = f"KERNEL × {roofline.METRICS[figure][0]}, {100 * share:.0f} % of kernel time"
        out.append(Rung(device, rung, busy, busy / wall_ns if wall_ns else None, evidence))
    return tuple(out)


def _devices(cells: Cells, figures: Figures) -> dict[int, DeviceCounters]:
    keys, inverse = np.unique(cells.device, return_inverse=True)
    inverse = inverse.reshape(-1)
    total, matched = (cells.ns(inverse, len(keys), chosen) for chosen in (None, cells.matched))
    means = {figure: cells.mean(inverse, len(keys), values) for figure, values in figures.percent.items()}
    return {
        int(key): DeviceCounters(
            total[i], matched[i], {figure: (known[i], float(mean[i])) for figure, (mean, known) in means.items()}
        )
        for i, key in enumerate(keys.tolist())
    }


def _labels(kinds: Sequence[Kind], of_row: Index) -> tuple[Index, list[str]]:
    """A number and a short name for each row's kernel, whatever its shape."""
    full = [kind.signature or kind.name or kind.mangled or "" for kind in kinds]
    used = sorted({full[i] for i in np.unique(of_row).tolist()})
    place = {name: i for i, name in enumerate(used)}
    table = np.array([place.get(name, -1) for name in full], np.intp)
    return table[of_row] if len(of_row) else np.empty(0, np.intp), labels(used)


def _label_set(kinds: set[int], of_row: Index, kernel: Index, words: Sequence[str]) -> set[str]:
    if not kinds:
        return set()
    hit = np.isin(of_row, list(kinds))
    return {words[i] for i in np.unique(kernel[hit]).tolist()}


def _by_time(row: KernelCounters) -> tuple[int, str, str]:
    return -row.total_ns, row.kernel or "", row.stage
