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
from nvprof_tools.attribution.counter_match import Kind, counter_kinds, match_kinds, trace_kinds
from nvprof_tools.attribution.counter_profiles import Profiles, assign, launch_order
from nvprof_tools.attribution.counter_quality import Coverage, items
from nvprof_tools.model.attribution import KernelCounters, Rung
from nvprof_tools.model.counters import CounterTable
from nvprof_tools.model.kernel_names import labels
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Index, Ints, sum_exact

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NO_STAGE = "other"
STALLS_SHOWN = 5
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
    span = _Spans(start[rows], end[rows], profiles.of_launch[rows], profiles.exact[rows])
    figures = _figures(counters, profiles)

    kernel, kernel_labels = _labels(kinds.kinds, kinds.of_launch[rows])
    stage_words = [*stage_names, NO_STAGE]
    stage = np.where(stage_codes[rows] >= 0, stage_codes[rows], len(stage_names)).astype(np.intp)
    per_kernel, keys = _grouped(span, figures, kernel * len(stage_words) + stage)
    per_stage, stage_keys = _grouped(span, figures, stage)
    kernel_rows = [
        replace(row, kernel=kernel_labels[key // len(stage_words)], stage=stage_words[key % len(stage_words)])
        for row, key in zip(per_kernel, keys, strict=True)
    ]
    stage_rows = [replace(row, stage=stage_words[key]) for row, key in zip(per_stage, stage_keys, strict=True)]
    ordered = [*sorted(kernel_rows, key=_by_time), *sorted(stage_rows, key=_by_time)]
    matched = span.profile >= 0
    coverage = Coverage(
        launches=len(rows),
        total_ns=span.total(),
        matched_launches=int(np.count_nonzero(matched)),
        matched_ns=span.total(matched),
        exact_launches=int(np.count_nonzero(span.exact)),
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
        devices=_devices(span, figures, ints(table, "device")[rows]),
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


@dataclass(frozen=True)
class _Spans:
    """The counted kernels, clipped to the window, each with its profile."""

    start: Ints
    end: Ints
    profile: Index
    exact: Flags

    def total(self, chosen: Flags | None = None) -> int:
        return sum_exact(self.end, self.start) if chosen is None else sum_exact(self.end[chosen], self.start[chosen])


@dataclass(frozen=True)
class _Figures:
    """A profile's mean of each figure, percent; NaN: none of its launches has it."""

    percent: Mapping[str, Floats]
    stalls: Mapping[str, Floats]


def _figures(counters: CounterTable, profiles: Profiles) -> _Figures:
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
    return _Figures(percent, shares)


def _grouped(span: _Spans, figures: _Figures, group: Index) -> tuple[list[KernelCounters], list[int]]:
    """A row a group, names left open, and the groups' numbers."""
    keys, inverse = np.unique(group, return_inverse=True)
    inverse = inverse.reshape(-1)
    count = len(keys)
    matched = span.profile >= 0
    total, known = _sums(span, inverse, count), _sums(span, inverse, count, matched)
    launches = np.bincount(inverse, minlength=count)
    hits = np.bincount(inverse[matched], minlength=count)
    exact = np.bincount(inverse[span.exact], minlength=count)
    means = {figure: _mean(span, inverse, count, values) for figure, values in figures.percent.items()}
    stalls = {reason: _mean(span, inverse, count, values)[0] for reason, values in figures.stalls.items()}
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


def _mean(span: _Spans, group: Index, count: int, values: Floats) -> tuple[Floats, list[int]]:
    """Mean of a figure over each group's kernel time, NaN where unknown, and the ns it is known for."""
    if not len(values):
        return np.full(count, np.nan), [0] * count
    value = np.where(span.profile >= 0, values[np.maximum(span.profile, 0)], np.nan)
    known = np.isfinite(value)
    weight = span.end[known].astype(np.float64) - span.start[known].astype(np.float64)
    total = np.bincount(group[known], weight * value[known], minlength=count)
    time = np.bincount(group[known], weight, minlength=count)
    mean = np.divide(total, time, out=np.full(count, np.nan), where=time > 0)
    return mean, _sums(span, group, count, known)


def _sums(span: _Spans, group: Index, count: int, chosen: Flags | None = None) -> list[int]:
    """Exact sums of durations by group: halves are added apart, so nothing wraps."""
    start, end = span.start, span.end
    if chosen is not None:
        start, end, group = start[chosen], end[chosen], group[chosen]
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, group, (end >> 32) - (start >> 32))
    np.add.at(low, group, (end & 0xFFFFFFFF) - (start & 0xFFFFFFFF))
    return [(int(h) << 32) + int(x) for h, x in zip(high, low, strict=True)]


def _devices(span: _Spans, figures: _Figures, device: Ints) -> dict[int, DeviceCounters]:
    keys, inverse = np.unique(device, return_inverse=True)
    inverse = inverse.reshape(-1)
    total = _sums(span, inverse, len(keys))
    matched = _sums(span, inverse, len(keys), span.profile >= 0)
    means = {figure: _mean(span, inverse, len(keys), values) for figure, values in figures.percent.items()}
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


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _top(stalls: Mapping[str, float]) -> dict[str, float]:
    """The largest stall reasons, percent of a warp's cycles between two issues; issuing itself is none."""
    real = {r: float(v) for r, v in stalls.items() if r != roofline.NOT_A_STALL and np.isfinite(v) and v > 0}
    return dict(sorted(real.items(), key=lambda item: (-item[1], item[0]))[:STALLS_SHOWN])


def _how(matched: int, exact: int) -> str:
    if not matched:
        return "none"
    return "exact" if exact == matched else "mixed" if exact else "class"
