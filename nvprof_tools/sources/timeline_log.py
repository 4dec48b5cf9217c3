"""Reads a pipeline's log: TIMELINE events, figures, the wall-clock anchor; several runs, torn lines and all.

The steps: lines by kind (`timeline_lines`), torn ones put back together (`timeline_repair`), events as columns
(`timeline_events`), runs told apart (`timeline_runs`, `timeline_interleaved`), tables (`timeline_tables`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import ordered
from nvprof_tools.model.trace import AppLog, LogRun, SourceInfo
from nvprof_tools.sources import timeline_stamped
from nvprof_tools.sources.timeline_events import Events, read_events
from nvprof_tools.sources.timeline_grammar import grammar_of
from nvprof_tools.sources.timeline_lines import Lines, sort_lines
from nvprof_tools.sources.timeline_quality import Findings, items_of
from nvprof_tools.sources.timeline_runs import Run, find_runs
from nvprof_tools.sources.timeline_tables import completion_table, event_table, partition_table


def read_log(path: Path, pipeline: Pipeline, limits: Limits = DEFAULT_LIMITS) -> AppLog:
    """A log file. Never written to.

    :raises SourceError: ``log-unreadable``, ``limit-log-bytes``, ``log-without-timeline``, ``log-runs-mixed``,
        ``log-too-damaged``.
    """
    try:
        if not path.is_file():
            raise SourceError(
                "log-unreadable", "the log does not exist or is not a regular file", "give the path of a log file"
            )
        _check_size(path.stat().st_size, limits)
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        raise SourceError(
            "log-unreadable", f"the log cannot be read: {reason}", "check its path and permissions"
        ) from error
    source = SourceInfo(kind="timeline-log", version=None, sha256=hashlib.sha256(data).hexdigest())
    return parse_log(data, pipeline, source=source, limits=limits)


def parse_log(text: str | bytes, pipeline: Pipeline, *, source: SourceInfo, limits: Limits = DEFAULT_LIMITS) -> AppLog:
    """A log already in memory, as a profiler stored it: the program's streams may stand one after the other.

    Runs keep the order of the file and are numbered from 1; a run that cannot be told from another one is left out and
    keeps its number.

    :raises SourceError: as :func:`read_log`.
    """
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    _check_size(len(data), limits)
    grammar = grammar_of(pipeline)
    lines = sort_lines(data, grammar, limits)
    events = read_events(lines.timeline, lines.timeline_line, grammar, pipeline)
    if not len(events):
        _nothing(lines)
    anchors, unreadable = timeline_stamped.anchors(lines.stamped, pipeline.events)
    found = find_runs(events, anchors)
    completions = timeline_stamped.completions(lines.stamped, pipeline.events)
    findings = Findings(lines=lines, undecodable=events.undecodable, unreadable_anchors=unreadable)
    runs = []
    for number, run in enumerate(found, 1):
        findings.runs.append((number, run))
        if not run.mixed:
            low = run.first_line if number > 1 else 0
            later = [other.first_line for other in found[number:] if other.first_line > run.last_line]
            runs.append(_log_run(number, run, low, min(later, default=2**62), lines, completions, pipeline, findings))
    if not runs:
        raise SourceError(
            "log-runs-mixed",
            "two engines wrote into the log at once and their lines cannot be told apart",
            "write each engine's log to a file of its own, or keep the lines that carry the wall clock",
        )
    return AppLog(source=source, runs=tuple(runs), quality=ordered(items_of(findings, runs, pipeline)))


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.log_bytes:
        raise SourceError(
            "limit-log-bytes",
            f"the log has {size:,} bytes, more than the limit of {limits.log_bytes:,}",
            "cut out the run of interest",
        )


def _nothing(lines: Lines) -> None:
    lost = lines.found.rejected + lines.too_long
    message = "the log has no TIMELINE line" if not lost else "the log has no TIMELINE line that is whole"
    raise SourceError(
        "log-without-timeline",
        message,
        "give the pipeline's stderr; it has lines such as TIMELINE,<ms>,GPU_START,<job>,worker=0,partition=3",
    )


def _log_run(
    number: int,
    run: Run,
    low: int,
    high: int,
    lines: Lines,
    completions: Sequence[timeline_stamped.Completion],
    pipeline: Pipeline,
    findings: Findings,
) -> LogRun:
    """One run's tables. Lines without an id belong to the run in whose stretch of the file, [low, high), they lie;
    where two engines share a stretch they belong to neither."""
    events = _without_half_lines(run.events, findings)
    timings: dict[str, tuple[int, int]] = {}
    own: list[timeline_stamped.Completion] = []
    if run.shared:
        findings.shared_timings.update(line for line, _ in lines.timings if low <= line < high)
    else:
        texts = [(line, text) for line, text in lines.timings if low <= line < high]
        stamped = [(line, text) for line, text in lines.stamped if low <= line < high]
        timings, torn = timeline_stamped.timings(texts, stamped, pipeline.events)
        findings.torn_figures += torn
        own = [completion for completion in completions if low <= completion[0] < high]
    names = [name for name in events.event_names if name not in pipeline.events.roles]
    counts = np.bincount(events.event, minlength=len(events.event_names))
    unknown = {
        name: int(counts[events.event_names.index(name)])
        for name in names
        if name not in pipeline.events.extra and counts[events.event_names.index(name)]
    }
    return LogRun(
        index=number,
        anchor_utc_ns=run.anchor_utc_ns,
        events=event_table(events),
        partitions=partition_table(events),
        timings=timings,
        unknown_events=dict(sorted(unknown.items())),
        completions=completion_table(own),
    )


def _without_half_lines(events: Events, findings: Findings) -> Events:
    """Drops events without a partition of jobs that have partitions: what is left of a line cut inside its detail."""
    known = events.role >= 0
    parted = np.zeros(len(events.job_names), np.bool_)
    parted[events.job[known & (events.partition >= 0)]] = True
    half = known & (events.partition < 0) & parted[events.job]
    if not half.any():
        return events
    findings.half_lines += int(np.count_nonzero(half))
    return events.take(~half)
