"""From a trace on one clock and a log to the whole answer: the one function everything else calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution import device_view, driver_locks, figures, jobs, partition_view, placement, stages, window
from nvprof_tools.attribution import work as device_work
from nvprof_tools.attribution.categories import CALLS, CATEGORIES, KERNEL
from nvprof_tools.attribution.charge import in_charge
from nvprof_tools.attribution.driver_locks import BLOCKERS, LockedTime
from nvprof_tools.attribution.engine import Segments, totals
from nvprof_tools.attribution.evidence import RANGE_ROLES, Evidence, gather
from nvprof_tools.attribution.ladder import ladder
from nvprof_tools.attribution.metrics import samples
from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.attribution.sections import (
    Held,
    Owners,
    Sections,
    caller_owners,
    find,
    holds,
    lock_waits,
    with_started_threads,
)
from nvprof_tools.attribution.work import Work
from nvprof_tools.errors import AlignmentError, UsageError
from nvprof_tools.model.attribution import (
    DEVICE_SEGMENTS,
    SECTION_SEGMENTS,
    Attribution,
    Clock,
    DeviceView,
    Inputs,
    PartitionView,
    Rung,
    Window,
)
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.trace import AppLog, LogRun, Trace
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import EMPTY, Ints, union


@dataclass(frozen=True)
class Found:
    """Sections with all that belongs to them, before a window is chosen."""

    evidence: Evidence
    sections: Sections
    owners: Owners
    waits: Held
    inferred: Ints
    held: Held
    placed: Placed | None
    log_row: Ints


def survey(trace: Trace, runs: Sequence[LogRun], pipeline: Pipeline) -> Found:
    """Find sections under one pipeline and name them by the log, if there is one.

    :raises AlignmentError: ``log-trace-mismatch``.
    """
    evidence = gather(trace, pipeline)
    sections = find(evidence, pipeline)
    owners, waits, inferred, held = _belongings(evidence, sections, pipeline)
    placed = placement.place(runs, evidence, sections, owners, pipeline, trace.session) if runs else None
    row = np.full(len(sections), -1, np.int64) if placed is None else placed.row
    if placed is not None and not sections.by_range:
        sections, row = placement.from_log(placed, sections, _capture(trace))
        owners, waits, inferred, held = _belongings(evidence, sections, pipeline)
    return Found(evidence, sections, owners, waits, inferred, held, placed, row)


def _belongings(evidence: Evidence, sections: Sections, pipeline: Pipeline) -> tuple[Owners, Held, Ints, Held]:
    owners = caller_owners(sections)
    waits, inferred = lock_waits(evidence, sections, owners)
    held = holds(evidence, sections, owners, waits, pipeline)
    return with_started_threads(evidence, sections, owners, held), waits, inferred, held


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
    options: Options = Options(),
    run: int | None = None,
) -> Attribution:
    """The whole answer for one trace.

    :param pipelines: candidates; the one with the most sections the log explains is taken, of equals the one that
        knows the most ranges, then kernels, then the first.
    :param run: the log's run by its index; null: the one that fits.
    :raises AlignmentError: trace, log and window do not go together.
    :raises UsageError: a run or device that does not exist.
    """
    runs = _runs(log, run)
    pipeline, found = _best(trace, runs, pipelines)
    kernel_section = _kernel_sections(trace, found.owners)
    code, names = stages.classify_kernels(trace, pipeline, kernel_section)
    work = device_work.gather(trace, code, names)
    work = work.owned(device_work.sections_of(trace, work, found.owners))
    span, items = window.choose(options.window, found.placed, pipeline, work, trace.session)
    if len(found.sections) == 0 and found.placed is None:
        found = _implicit(found, trace, work, span)
        work = work.owned(device_work.sections_of(trace, work, found.owners))
    return _assemble(trace, log, pipeline, found, work, span, options, [*items])


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


def _best(trace: Trace, runs: Sequence[LogRun], pipelines: Sequence[Pipeline]) -> tuple[Pipeline, Found]:
    best: tuple[tuple[int, int, int], Pipeline, Found] | None = None
    refused: AlignmentError | None = None
    for pipeline in pipelines:
        try:
            found = survey(trace, runs, pipeline)
        except AlignmentError as error:
            refused = refused or error
            continue
        matched = 0 if found.placed is None else found.placed.matched
        known = int((found.evidence.ranges.code >= 0).sum())
        kernels = int((stages.classify_kernels(trace, pipeline, _kernel_sections(trace, found.owners))[0] >= 0).sum())
        score = (matched, known, kernels)
        if best is None or score > best[0]:
            best = (score, pipeline, found)
    if best is None:
        raise refused or UsageError("no-pipeline", "no pipeline was given", "give --pipeline")
    return best[1], best[2]


def _kernel_sections(trace: Trace, owners: Owners) -> Ints:
    call = ints(trace["kernels"], "api_call")
    section = np.full(len(call), -1, np.int64)
    known = np.flatnonzero(call >= 0)
    calls = trace["api_calls"]
    section[known] = owners.of(ints(calls, "thread")[call[known]], ints(calls, "start_ns")[call[known]])
    return section


def _capture(trace: Trace) -> tuple[int, int]:
    ends = [int(ints(trace[name], "end_ns").max()) for name in ("kernels", "copies", "api_calls") if len(trace[name])]
    end = trace.session.end_ns
    return 0, end if end is not None else max(ends, default=0)


def _implicit(found: Found, trace: Trace, work: Work, span: Window) -> Found:
    """Without sections or a log, each process's stay on each device is one section, so that idle time still has a
    cause: its threads are those that gave the device work, its caller the one that gave it most."""
    calls = trace["api_calls"]
    rows = np.flatnonzero(work.call >= 0)
    if len(rows) == 0:
        return found
    thread = ints(calls, "thread")[work.call[rows]]
    key, first, group = np.unique(
        np.stack([work.process[rows], work.device[rows]]), axis=1, return_index=True, return_inverse=True
    )
    del first
    group = group.reshape(-1)
    count = key.shape[1]
    pair, times = np.unique(np.stack([group, thread]), axis=1, return_counts=True)
    caller = np.full(count, -1, np.int64)
    for row in np.argsort(times, kind="stable").tolist():  # one step a (section, thread)
        caller[pair[0, row]] = pair[1, row]
    start, end = np.full(count, span.start_ns, np.int64), np.full(count, span.end_ns, np.int64)
    sections = Sections(start, end, caller, key[0], np.full(count, -1, np.int64), np.zeros(count, bool), False)
    # A thread that feeds several devices belongs to the one it feeds most.
    order = np.argsort(-times, kind="stable")
    _, once = np.unique(pair[1, order], return_index=True)
    own = order[once]
    section = pair[0, own]
    owners = Owners(pair[1, own], start[section], end[section], section, pair[1, own] == caller[section])
    none = Held(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    waits, _ = lock_waits(found.evidence, sections, owners)
    return replace(
        found,
        sections=sections,
        owners=owners,
        waits=replace(none, **waits.__dict__),
        held=none,
        inferred=np.empty(0, np.int64),
        log_row=np.full(count, -1, np.int64),
    )


def _assemble(
    trace: Trace,
    log: AppLog | None,
    pipeline: Pipeline,
    found: Found,
    work: Work,
    span: Window,
    options: Options,
    items: list[QualityItem],
) -> Attribution:
    sections, placed = found.sections, found.placed
    devices = len(trace["devices"])
    if options.device is not None and not 0 <= options.device < devices:
        raise UsageError("unknown-device", f"the trace has no device {options.device}", f"it has 0 to {devices - 1}")
    of_section = device_work.device_of_sections(work, len(sections))
    if devices == 1:
        of_section = np.where(of_section < 0, 0, of_section)
    lossy = any(q.severity is Severity.DATA_LOSS for q in trace.quality) or _log_goes_on(placed, trace)
    lost = placement.lost_time(found.evidence, sections, found.owners, lossy)
    parts = partition_view.view(found.evidence, sections, found.owners, found.waits, work, lost)
    locked = driver_locks.find(found.evidence, sections, found.owners, parts)
    bounds = (span.start_ns, span.end_ns)
    charges = [
        in_charge(
            bounds, np.flatnonzero(of_section == d), found.evidence, sections, found.owners, found.waits, found.held
        )
        for d in range(devices)
    ]
    on_devices = device_view.view(bounds, work, charges, parts, _background(found, placed))
    partitions = _partitions(sections, parts, locked, found, of_section, placed, span, pipeline)
    if options.job is not None:
        partitions = [p for p in partitions if p.job == options.job]
    shown = [d for d in range(devices) if options.device in (None, d)]
    ladders, views = _devices(trace, shown, found, work, on_devices, of_section, placed, span, pipeline)
    inside = [p for p in partitions if p.section is not None]
    totals_of = {c: sum(p.categories.get(c, 0) for p in inside) for c in CATEGORIES}
    idle = {c: sum(v.categories.get(c, 0) for v in views) for c in CATEGORIES}
    if placed is not None:
        items.extend(placement.clock_quality(placed))
    items.extend(_section_quality(found, sections))
    return Attribution(
        Inputs(trace.source, None if log is None else log.source, None, None if placed is None else placed.run.index),
        pipeline.name,
        span,
        Clock("none") if placed is None else placed.clock,
        tuple(ladders),
        tuple(views),
        tuple(partitions),
        tuple(jobs.jobs(partitions, placed)),
        tuple(
            figures.overheads(totals_of, idle, found.evidence, found.owners, found.waits, len(found.inferred), locked)
        ),
        tuple(figures.latencies(trace, work, bounds)),
        tuple(figures.memory(trace, shown)),
        tuple(g for g in figures.gaps(on_devices, work) if g.device in shown),
        (),
        _device_table(on_devices, charges),
        _section_table(parts, locked),
        ordered([*trace.quality, *(() if log is None else log.quality), *items]),
    )


def _log_goes_on(placed: Placed | None, trace: Trace) -> bool:
    if placed is None or trace.session.end_ns is None:
        return False
    return bool((placed.time("gpu_end_ms") > trace.session.end_ns).any())


def _background(found: Found, placed: Placed | None) -> device_view.Background:
    ranges = found.evidence.ranges
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


def _partitions(
    sections: Sections,
    parts: Segments,
    locked: LockedTime,
    found: Found,
    of_section: Ints,
    placed: Placed | None,
    span: Window,
    pipeline: Pipeline,
) -> list[PartitionView]:
    sums = totals(parts)
    detail_sums = _details(parts)
    lock_sums, blocker_sums = _lock_sums(locked, len(sections))
    out: list[PartitionView] = []
    log = None if placed is None else placed.run.partitions.to_pylist()
    start_at, end_at = (None, None) if placed is None else (placed.time(c) for c in pipeline.bracket_columns)
    first_job = log[0]["job"] if log else None

    def bracket(row: int) -> tuple[int | None, int | None]:
        if row < 0 or start_at is None or end_at is None:
            return None, None
        low, high = int(start_at[row]), int(end_at[row])
        return None if low == NEVER else low, None if high == NEVER else high

    for i in range(len(sections)):
        row = int(found.log_row[i])
        entry = log[row] if log is not None and row >= 0 else None
        low, high = bracket(row)
        if int(sections.end[i]) <= span.start_ns or int(sections.start[i]) >= span.end_ns:
            continue
        out.append(
            PartitionView(
                i,
                entry["job"] if entry else None,
                entry["partition"] if entry else None,
                entry["worker"] if entry else None,
                int(of_section[i]) if of_section[i] >= 0 else None,
                int(sections.start[i]),
                int(sections.end[i]),
                low,
                high,
                {
                    c: int(sums[i, parts.categories.index(c)])
                    for c in CATEGORIES
                    if c in parts.categories and sums[i, parts.categories.index(c)]
                },
                detail_sums.get(i, {}),
                lock_sums.get(i, {}) if found.evidence.has_os else None,
                blocker_sums.get(i, {}) if found.evidence.has_os else None,
                bool(sections.open[i]),
                entry is not None and entry["job"] == first_job,
            )
        )
    if log is not None:
        paired = set(found.log_row.tolist())
        for row, entry in enumerate(log):
            low, high = bracket(row)
            if row in paired or low is None:
                continue
            out.append(
                PartitionView(
                    None,
                    entry["job"],
                    entry["partition"],
                    entry["worker"],
                    None,
                    None,
                    None,
                    low,
                    high,
                    {},
                    {},
                    None,
                    None,
                    high is None,
                    entry["job"] == first_job,
                )
            )
    return out


def _details(parts: Segments) -> dict[int, dict[str, dict[str, int]]]:
    """Lane → category → sub-key → ns, for segments that have a sub-key."""
    rows = np.flatnonzero(parts.detail >= 0)
    key = np.stack([parts.lane[rows], parts.category[rows], parts.detail[rows]])
    values, inverse = np.unique(key, axis=1, return_inverse=True)
    sums = np.zeros(values.shape[1], np.int64)
    np.add.at(sums, inverse.reshape(-1), (parts.end - parts.start)[rows])
    out: dict[int, dict[str, dict[str, int]]] = {}
    for (lane, category, detail), ns in zip(values.T.tolist(), sums.tolist(), strict=True):
        out.setdefault(lane, {}).setdefault(parts.categories[category], {})[parts.details[detail]] = ns
    return out


def _lock_sums(locked: LockedTime, count: int) -> tuple[dict[int, dict[str, int]], dict[int, dict[str, int]]]:
    length = locked.end - locked.start
    by_category = np.zeros((count, len(CALLS)), np.int64)
    by_blocker = np.zeros((count, len(BLOCKERS)), np.int64)
    np.add.at(by_category, (locked.section, locked.category), length)
    np.add.at(by_blocker, (locked.section, locked.blocker), length)
    return (
        {i: {c: int(ns) for c, ns in zip(CALLS, row.tolist(), strict=True) if ns} for i, row in enumerate(by_category)},
        {
            i: {b: int(ns) for b, ns in zip(BLOCKERS, row.tolist(), strict=True) if ns}
            for i, row in enumerate(by_blocker)
        },
    )


def _devices(
    trace: Trace,
    shown: Sequence[int],
    found: Found,
    work: Work,
    on_devices: Segments,
    of_section: Ints,
    placed: Placed | None,
    span: Window,
    pipeline: Pipeline,
) -> tuple[list[Rung], list[DeviceView]]:
    rungs: list[Rung] = []
    views: list[DeviceView] = []
    sums = totals(on_devices)
    details = _details(on_devices)
    board = trace["devices"].column("name").to_pylist()
    for device in shown:
        own = on_devices.lane == device
        by_category = {
            c: union(
                on_devices.start[own & (on_devices.category == on_devices.categories.index(c))],
                on_devices.end[own & (on_devices.category == on_devices.categories.index(c))],
            )
            for c in CATEGORIES
            if c in on_devices.categories
        }
        metrics = samples(trace, device)
        rows = work.device == device
        kernels = rows & (work.category == 0)
        members = of_section == device
        held = np.flatnonzero(members[found.held.section]) if len(found.held) else np.empty(0, np.intp)
        rungs.extend(
            ladder(
                device,
                span,
                _brackets(placed, found, members, pipeline, len(shown) == 1 and len(trace["devices"]) == 1),
                (found.held.start[held], found.held.end[held]) if len(found.held) else None,
                union(work.start[rows], work.end[rows]) if len(work) else None,
                union(work.start[kernels], work.end[kernels]) if len(work) else None,
                metrics,
                by_category,
                "NVTX" if RANGE_ROLES.index("hold") in found.evidence.ranges.code else "RUNTIME",
            )
        )
        stage_spans = {
            name: union(on_devices.start[sel], on_devices.end[sel])
            for code, name in enumerate(on_devices.details)
            if (sel := own & (on_devices.detail == code) & (on_devices.category == _code(on_devices, KERNEL))).any()
        }
        sampled = {
            name: {rung: mean for rung, s in metrics.items() if (mean := s.mean(spans)) is not None}
            for name, spans in [*by_category.items(), *((f"{KERNEL}:{n}", s) for n, s in stage_spans.items())]
            if len(spans)
        }
        views.append(
            DeviceView(
                device,
                board[device],
                span.wall_ns,
                {
                    c: int(sums[device, on_devices.categories.index(c)])
                    for c in CATEGORIES
                    if c in on_devices.categories and sums[device, on_devices.categories.index(c)]
                },
                details.get(device, {}),
                dict(sorted(details.get(device, {}).get(KERNEL, {}).items(), key=lambda kv: -kv[1])),
                sampled if metrics else {},
            )
        )
    return rungs, views


def _code(segments: Segments, category: str) -> int:
    return segments.categories.index(category) if category in segments.categories else -1


def _brackets(
    placed: Placed | None, found: Found, members: np.ndarray, pipeline: Pipeline, alone: bool
) -> tuple[Ints, Ints] | None:
    """The log's brackets of one device's partitions; of a single device, all of them."""
    if placed is None or placed.clock.offset_ns is None:
        return None
    start, end = (placed.time(column) for column in pipeline.bracket_columns)
    keep = (start != NEVER) & (end != NEVER)
    if not alone:
        mine = np.zeros(len(start), bool)
        rows = found.log_row[members]
        mine[rows[rows >= 0]] = True
        keep &= mine
    return start[keep], end[keep]


def _section_quality(found: Found, sections: Sections) -> list[QualityItem]:
    items = []
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


def _device_table(segments: Segments, charges: Sequence) -> pa.Table:  # type: ignore[type-arg]
    section = np.full(len(segments), -1, np.int64)
    for device, charge in enumerate(charges):
        rows = np.flatnonzero(segments.lane == device)
        at = np.searchsorted(charge.start, segments.start[rows], side="right") - 1
        section[rows] = np.where(at >= 0, charge.section[np.maximum(at, 0)], -1) if len(charge.start) else -1
    busy = np.isin(segments.category, [_code(segments, c) for c in ("kernel", "upload", "download", "copy", "memset")])
    section[busy] = -1
    return pa.table(
        [
            pa.array(segments.lane.astype(np.int32)),
            pa.array(segments.start),
            pa.array(segments.end),
            _words(segments.category, segments.categories),
            _words(segments.detail, segments.details),
            pa.array(section.astype(np.int32), mask=section < 0),
        ],
        schema=DEVICE_SEGMENTS,
    )


def _section_table(segments: Segments, locked: LockedTime) -> pa.Table:
    """The partition view's segments, cut where a lock in the driver is waited for."""
    edges = np.unique(np.concatenate([segments.at.start, locked.at.start, locked.at.end]))
    inside = np.searchsorted(segments.at.start, edges, side="right") - 1
    ends = np.minimum(np.append(edges[1:], segments.at.end[-1:]), segments.at.end[inside]) if len(edges) else edges
    keep = (inside >= 0) & (ends > edges)
    edges, ends, inside = edges[keep], ends[keep], inside[keep]
    lock = np.searchsorted(locked.at.start, edges, side="right") - 1
    within = (
        (lock >= 0) & (edges < locked.at.end[np.maximum(lock, 0)]) if len(locked.at) else np.zeros(len(edges), bool)
    )
    blocker = np.where(within, locked.blocker[np.maximum(lock, 0)] if len(locked.at) else -1, -1)
    shift = segments.start[inside] - segments.at.start[inside]
    return pa.table(
        [
            pa.array(segments.lane[inside].astype(np.int32)),
            pa.array(edges + shift),
            pa.array(ends + shift),
            _words(segments.category[inside], segments.categories),
            _words(segments.detail[inside], segments.details),
            _words(blocker, BLOCKERS),
        ],
        schema=SECTION_SEGMENTS,
    )


def _words(code: Ints, words: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(code.astype(np.int32), mask=code < 0), pa.array(list(words), pa.string())
    )
