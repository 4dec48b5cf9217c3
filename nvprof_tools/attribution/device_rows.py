"""The device view as rows, and the ladder of each device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution import nvml
from nvprof_tools.attribution.categories import BUSY, KERNEL
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.attribution.evidence import RANGE_ROLES
from nvprof_tools.attribution.ladder import Rungs, ladder
from nvprof_tools.attribution.metrics import Samples, samples
from nvprof_tools.attribution.placement import NEVER
from nvprof_tools.attribution.segment_sums import details, inside, totals
from nvprof_tools.attribution.survey import Found
from nvprof_tools.attribution.work import Work
from nvprof_tools.model.attribution import DeviceView, Rung, Window
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.intervals import Ints, Spans, union

WHOLE = 0.9
"""A window of which less was sampled is said to be sampled in part."""
_WORK_TABLES = frozenset({"kernels", "copies", "memsets", "graphs"})


def rows(
    trace: Trace,
    shown: Iterable[int],
    found: Found,
    work: Work,
    on_devices: Segments,
    of_section: Ints,
    span: Window,
    pipeline: Pipeline,
    watched: Mapping[int, Samples],
) -> tuple[list[Rung], list[DeviceView], list[QualityItem]]:
    """The ladder and the view of each device in ``shown``, and what to know of them.

    :param watched: NVML's utilisation by device.
    """
    rungs: list[Rung] = []
    views: list[DeviceView] = []
    items: list[QualityItem] = []
    sums, sub_keys = totals(on_devices), details(on_devices)
    board = trace["devices"].column("name").to_pylist()
    for device in shown:
        metrics = samples(trace, device)
        items += _partly(device, metrics, span)
        sets = _sets(trace, device, found, work, of_section == device, pipeline)
        seen = {nvml.RUNG: watched[device]} if device in watched else {}
        rungs.extend(ladder(device, span, sets, {**metrics, **seen}, partial(inside, on_devices, device)))
        stages = sub_keys[device].get(KERNEL, {})
        views.append(
            DeviceView(
                device,
                board[device],
                span.wall_ns,
                sums[device],
                sub_keys[device],
                dict(sorted(stages.items(), key=lambda item: (-item[1], item[0]))),
                _means(metrics, on_devices, device),
            )
        )
    return rungs, views, items


def _partly(device: int, metrics: Mapping[str, Samples], span: Window) -> list[QualityItem]:
    """Says so where samples leave out a part of the window: their rungs tell of the rest alone."""
    whole = Spans(np.array([span.start_ns], np.int64), np.array([span.end_ns], np.int64))
    covered = min((metric.covered(whole) for metric in metrics.values()), default=float(span.wall_ns))
    if covered >= WHOLE * span.wall_ns:
        return []
    message = (
        f"GPU metrics were sampled in {covered / max(span.wall_ns, 1):.0%} of the window on device {device}: "
        "their rungs tell of that part alone"
    )
    return [
        QualityItem("gpu-metrics-partial", Severity.NOTICE, 1, message, "choose a --window inside it to compare rungs")
    ]


def _means(metrics: Mapping[str, Samples], segments: Segments, device: int) -> dict[str, dict[str, float]]:
    """Category, and kernel stage as ``kernel:stage`` → rung → mean of the metric over its time."""
    if not metrics:
        return {}
    low, high = np.searchsorted(segments.lane, [device, device + 1])
    own = slice(int(low), int(high))
    category, detail = segments.category[own], segments.detail[own]
    kernel = segments.categories.index(KERNEL) if KERNEL in segments.categories else -2
    kernel_detail = np.where(category == kernel, detail, -1)
    out = {}
    for code, words, prefix in (
        (category, segments.categories, ""),
        (kernel_detail, segments.details, f"{KERNEL}:"),
    ):
        for row, word in enumerate(words):
            mine = code == row
            spans = union(segments.start[own][mine], segments.end[own][mine])
            means = {rung: mean for rung, metric in metrics.items() if (mean := metric.mean(spans)) is not None}
            if means:
                out[prefix + word] = means
    return out


def _sets(
    trace: Trace, device: int, found: Found, work: Work, members: npt.NDArray[np.bool_], pipeline: Pipeline
) -> Rungs:
    own = work.device == device
    kernels = own & (work.category == BUSY.index(KERNEL))
    traced = bool(_WORK_TABLES & trace.measured)
    held = np.flatnonzero((members & ~found.foreign)[found.held.section])
    by_range = RANGE_ROLES.index("hold") in found.evidence.ranges.code
    return Rungs(
        _brackets(found, members, pipeline, len(trace["devices"]) == 1),
        (found.held.start[held], found.held.end[held]) if len(found.held) else None,
        "NVTX" if by_range else "OSRT+RUNTIME",
        union(work.start[own], work.end[own]) if traced else None,
        union(work.start[kernels], work.end[kernels]) if traced else None,
    )


def _brackets(
    found: Found, members: npt.NDArray[np.bool_], pipeline: Pipeline, alone: bool
) -> tuple[Ints, Ints] | None:
    """The log's brackets of one device's partitions; of a single device, all of them."""
    if found.placed is None or found.placed.clock.offset_ns is None:
        return None
    start, end = (found.placed.time(column) for column in pipeline.bracket_columns)
    keep = (start != NEVER) & (end != NEVER)
    if not keep.any():
        return None  # a log without a whole bracket says nothing of the GPU's time
    if not alone:
        mine = np.zeros(len(start), bool)
        log_rows = found.log_row[members]
        mine[log_rows[log_rows >= 0]] = True
        keep &= mine
    return start[keep], end[keep]
