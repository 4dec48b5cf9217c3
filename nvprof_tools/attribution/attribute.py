"""From a trace on one clock and a log to the whole answer: the one function everything else calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution import (
    activities,
    device_rows,
    device_view,
    driver_locks,
    figures,
    jobs,
    nvml,
    partition_rows,
    partition_view,
    placement,
    segment_tables,
    window,
)
from nvprof_tools.attribution import work as device_work
from nvprof_tools.attribution.charge import in_charge
from nvprof_tools.attribution.counters import CounterJoin, counter_rungs, join_counters
from nvprof_tools.attribution.evidence import RANGE_ROLES
from nvprof_tools.attribution.placement import NEVER
from nvprof_tools.attribution.sections import Sections
from nvprof_tools.attribution.survey import Found, best, implicit, work_sections
from nvprof_tools.attribution.work import Work
from nvprof_tools.errors import UsageError
from nvprof_tools.model.attribution import Attribution, Clock, Inputs, PartitionView, Rung, Window
from nvprof_tools.model.counters import CounterTable
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.trace import AppLog, LogRun, Trace
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import EMPTY, Ints, union
from nvprof_tools.timeline.memory import aside
from nvprof_tools.timeline.parallel import both, side_by_side


@dataclass(frozen=True)
class Options:
    """What the caller may ask for: a window (``trace``, ``log``, ``A:B``), one job, one device; null: all."""

    window: str | None = None
    job: str | None = None
    device: int | None = None


def attribute(
    trace: Trace,
    log: AppLog | None,
    pipelines: Sequence[Pipeline],
    options: Options | None = None,
    run: int | None = None,
    counters: CounterTable | None = None,
    nvml_samples: pa.Table | None = None,
) -> Attribution:
    """The whole answer for one trace.

    :param pipelines: candidates; the one with the most sections the log explains is taken, of equals the one that
        knows the most ranges, then kernels, then the last.
    :param run: the log's run by its index; null: the one that fits.
    :param counters: kernel counters to join to the launches.
    :param nvml_samples: what NVML showed meanwhile (:data:`nvprof_tools.model.nvml.NVML_SCHEMA`).
    :raises AlignmentError: trace, log and window do not go together.
    :raises UsageError: a run or device that does not exist.
    """
    options = options or Options()
    runs = _runs(log, run)
    pipeline, found = best(trace, runs, pipelines)
    code, names = found.kernel_stages(trace, pipeline)
    work = device_work.gather(trace, code, names)
    work = work.owned(work_sections(found, work.call))
    span, items = window.choose(options.window, found.placed, pipeline, trace, work)
    if len(found.sections) == 0 and found.placed is None:
        found = implicit(found, trace, work, span, pipeline)
        work = work.owned(work_sections(found, work.call))
    join = None
    if counters is not None:
        join = join_counters(trace, counters, code, names, window=(span.start_ns, span.end_ns))
    watched = nvml.watch(nvml_samples, trace, span)
    return _assemble(trace, log, pipeline, found, work, span, options, [*items, *watched.quality], join, watched)


def _runs(log: AppLog | None, run: int | None) -> Sequence[LogRun]:
    if log is None:
        return ()
    chosen = [r for r in log.runs if run is None or r.index == run]
    if not chosen:
        raise UsageError(
            "unknown-run",
            f"the log has no run {run}: it holds {len(log.runs)}",
            f"give --run 1 to {len(log.runs)}",
        )
    return chosen


def _assemble(
    trace: Trace,
    log: AppLog | None,
    pipeline: Pipeline,
    found: Found,
    work: Work,
    span: Window,
    options: Options,
    items: list[QualityItem],
    join: CounterJoin | None,
    watched: nvml.Watched,
) -> Attribution:
    sections, evidence, placed = found.sections, found.evidence, found.placed
    devices = range(len(trace["devices"]))
    if options.device is not None and options.device not in devices:
        raise UsageError(
            "unknown-device", f"the trace has no device {options.device}", f"its devices are 0 to {len(devices) - 1}"
        )
    of_section = device_work.device_of_sections(work, len(sections))
    if len(devices) == 1:
        of_section = np.where(of_section < 0, 0, of_section)
    lost = placement.lost_time(evidence, sections, found.owners, _records_lost(trace, found))
    bounds = (span.start_ns, span.end_ns)
    found.owners.of_rows(evidence.calls)  # what both steps look up
    parts, charges = both(
        lambda: partition_view.view(evidence, sections, found.owners, found.waits, work, lost),
        lambda: [
            in_charge(
                bounds, np.flatnonzero(of_section == d), evidence, sections, found.owners, found.waits, found.held
            )
            for d in devices
        ],
    )
    shown = [d for d in _used(trace, work, of_section) if options.device in (None, d)]
    with side_by_side() as steps:
        on_devices = steps.begin(lambda: device_view.view(bounds, work, charges, parts, _background(found)))
        locked = driver_locks.find(evidence, sections, found.owners, parts)
        section_segments = steps.begin(lambda: aside(segment_tables.section_table(parts, locked)))
        latency = steps.begin(lambda: figures.latencies(trace, work, bounds))
        memory = steps.begin(lambda: nvml.merged(figures.memory(trace, shown), watched.memory))
        device_segments = steps.begin(lambda: aside(segment_tables.device_table(on_devices(), charges)))
        of_devices = steps.begin(
            lambda: device_rows.rows(
                trace, shown, found, work, on_devices(), of_section, span, pipeline, watched.samples
            )
        )
        gaps = steps.begin(lambda: figures.gaps(on_devices(), work))
        partitions = partition_rows.rows(found, parts, locked, of_section, span, pipeline)
        if options.job is not None and options.job not in {p.job for p in partitions}:
            raise _unknown_job(options.job, [p.job for p in partitions if p.job is not None])
        partitions = [p for p in partitions if _asked_for(p, options)]
        by_job = jobs.jobs(partitions, placed)
        basis = figures.Basis(
            evidence,
            found.owners,
            found.waits,
            len(found.inferred),
            locked,
            np.isin(np.arange(len(sections)), [p.section for p in partitions if p.section is not None]),
        )
        totals = jobs.summed(partitions)
        rungs, views, partly = of_devices()
        overheads = figures.overheads(totals, jobs.summed(views), basis)
    items += partly
    if placed is not None:
        items.extend(placement.clock_quality(placed))
    items.extend(_section_quality(found, sections))
    items.extend(_device_quality(trace, work))
    return Attribution(
        inputs=Inputs(trace.source, None if log is None else log.source, None, placed.run.index if placed else None),
        pipeline=pipeline.name,
        window=span,
        clock=Clock("none") if placed is None else placed.clock,
        ladder=tuple(rungs if join is None else _with_counters(rungs, join, span.wall_ns)),
        devices=tuple(views),
        partitions=tuple(partitions),
        jobs=tuple(by_job),
        overheads=tuple(overheads),
        latency=tuple(latency()),
        memory=tuple(memory()),
        gaps=tuple(gap for gap in gaps() if gap.device in shown),
        counters=() if join is None else join.kernels,
        device_segments=device_segments(),
        section_segments=section_segments(),
        activities=activities.table(found),
        quality=ordered(
            [*trace.quality, *(() if log is None else log.quality), *(() if join is None else join.quality), *items]
        ),
    )


def _with_counters(rungs: Sequence[Rung], join: CounterJoin, wall_ns: int) -> list[Rung]:
    """The counters' rungs, each device's right below its kernel time."""
    out: list[Rung] = []
    for rung in rungs:
        out.append(rung)
        if rung.rung == "kernel_busy" and rung.device is not None:
            out.extend(counter_rungs(join, rung.device, rung.busy_ns, wall_ns))
    return out


def _unknown_job(job: str, known: Sequence[str]) -> UsageError:
    some = ", ".join(list(dict.fromkeys(known))[:3])
    hint = f"its jobs: {some}" + (", …" if len(set(known)) > 3 else "") if some else "jobs come from a log: give --log"
    return UsageError("unknown-job", f"no section belongs to job {job!r}", hint)


def _asked_for(partition: PartitionView, options: Options) -> bool:
    return options.job in (None, partition.job) and options.device in (None, partition.device)


def _used(trace: Trace, work: Work, of_section: Ints) -> list[int]:
    """Devices that ran something, were sampled, or that a section belongs to: of others nothing is known."""
    seen = np.concatenate([work.device, ints(trace["gpu_metrics"], "device"), of_section])
    return [int(device) for device in np.unique(seen) if device >= 0]


def _device_quality(trace: Trace, work: Work) -> list[QualityItem]:
    if len(work):
        return []
    ranges = len(trace["nvtx_ranges"])
    return [
        QualityItem(
            "no-gpu-work",
            Severity.NOTICE,
            1,
            f"the capture holds no GPU work, so no GPU time is given; it holds {ranges:,} NVTX ranges",
            "capture with -t cuda; the ranges are in the tables that `nvprof-tools import` writes",
        )
    ]


def _records_lost(trace: Trace, found: Found) -> bool:
    """Whether the capture lost records, or ended before the work that the log goes on to show."""
    if any(item.severity is Severity.DATA_LOSS for item in trace.quality):
        return True
    if found.placed is None or trace.session.end_ns is None:
        return False
    return bool((found.placed.time("gpu_end_ms") > trace.session.end_ns).any())


def _background(found: Found) -> device_view.Background:
    ranges, placed = found.evidence.ranges, found.placed
    rows = np.flatnonzero(ranges.code == RANGE_ROLES.index("synthesis"))
    if placed is None:
        return device_view.Background(EMPTY, union(ranges.start[rows], ranges.end[rows]), False)
    sent, picked = placed.time("sent_ms"), placed.time("picked_ms")
    queued = (sent != NEVER) & (picked != NEVER)
    if len(rows):
        synthesis = union(ranges.start[rows], ranges.end[rows])
    else:
        begins, ends = placed.time("synth_start_ms"), placed.time("synth_end_ms")
        known = (begins != NEVER) & (ends != NEVER)
        synthesis = union(begins[known], ends[known])
    return device_view.Background(union(sent[queued], picked[queued]), synthesis, True)


def _section_quality(found: Found, sections: Sections) -> list[QualityItem]:
    items = []
    if foreign := int(found.foreign.sum()):
        items.append(
            QualityItem(
                "sections-of-other-process",
                Severity.NOTICE,
                foreign,
                f"{foreign} sections belong to another process than this log run: they are not counted here",
                "choose the other process's run with --run",
            )
        )
    if len(found.inferred):
        items.append(
            QualityItem(
                "mutex-wait-inferred",
                Severity.INFO,
                len(found.inferred),
                f"{len(found.inferred)} uncontended lock waits left no row; the short gap before the first in-lock "
                "call stands in for each",
            )
        )
    if int(sections.open.sum()):
        items.append(
            QualityItem(
                "sections-open",
                Severity.NOTICE,
                int(sections.open.sum()),
                f"{int(sections.open.sum())} sections were still open when the capture ended",
                "capture until the run is over",
            )
        )
    return items
