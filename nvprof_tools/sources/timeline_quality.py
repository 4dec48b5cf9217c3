"""What a reader of a log must know before trusting its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import LogRun
from nvprof_tools.sources.timeline_lines import Lines
from nvprof_tools.sources.timeline_runs import Run

_ONE_WRITER = "write stdout and stderr to files of their own (not `> log 2>&1`): lines of several writers tear"
_OWN_FILE = "write each engine's log to a file of its own"


@dataclass
class Findings:
    """Counts that come up while reading. ``half_lines``: events that lost their partition; ``torn_figures``: figures
    without a whole number; ``shared_timings``: numbers of lines of figures that two engines share."""

    lines: Lines
    undecodable: int = 0
    unreadable_anchors: int = 0
    half_lines: int = 0
    torn_figures: int = 0
    shared_timings: set[int] = field(default_factory=set)
    runs: list[tuple[int, Run]] = field(default_factory=list)


def items_of(findings: Findings, runs: Sequence[LogRun], pipeline: Pipeline) -> Iterator[QualityItem]:
    """Every item, unordered."""
    yield from _damage(findings)
    for number, run in findings.runs:
        yield from _run_items(number, run)
    if len(findings.runs) > 1:
        yield QualityItem(
            "log-several-runs",
            Severity.INFO,
            len(findings.runs),
            f"the log holds {len(findings.runs)} runs of the engine",
            "choose one with --run",
        )
    if findings.shared_timings:
        yield QualityItem(
            "log-figures-shared",
            Severity.NOTICE,
            len(findings.shared_timings),
            "lines of figures of two engines stand in one log and do not say whose they are: left out",
            _OWN_FILE,
        )
    for log_run in runs:
        yield from _partition_items(log_run, pipeline)


def _damage(findings: Findings) -> Iterator[QualityItem]:
    found = findings.lines.found
    lost = found.rejected + findings.half_lines
    if lost:
        where = f" (first: line {found.first_rejected})" if found.first_rejected else ""
        yield QualityItem(
            "log-lines-rejected",
            Severity.DATA_LOSS,
            lost,
            f"{_n(lost, 'TIMELINE line')} damaged beyond repair{where}",
            _ONE_WRITER,
        )
    if found.loose:
        yield QualityItem(
            "log-fragments",
            Severity.DATA_LOSS,
            len(found.loose),
            f"{_n(len(found.loose), 'line')} like the rest of a torn TIMELINE line (first: line {min(found.loose)})",
            _ONE_WRITER,
        )
    if findings.lines.too_long:
        yield QualityItem(
            "log-lines-too-long",
            Severity.DATA_LOSS,
            findings.lines.too_long,
            f"{_n(findings.lines.too_long, 'event or line')} not read: lines over the length limit",
            "check what wrote lines of this length into the log",
        )
    if found.repaired:
        yield QualityItem(
            "log-lines-repaired",
            Severity.NOTICE,
            found.repaired,
            f"{_n(found.repaired, 'torn line')} put back together",
            _ONE_WRITER,
        )
    figures = found.rejected_timings + findings.torn_figures
    if figures:
        yield QualityItem(
            "log-figures-rejected",
            Severity.NOTICE,
            figures,
            f"{_n(figures, 'figure or line of figures')} damaged and left out of the sums",
            _ONE_WRITER,
        )
    if findings.undecodable:
        yield QualityItem(
            "log-not-utf8",
            Severity.NOTICE,
            findings.undecodable,
            f"{_n(findings.undecodable, 'job id')} not UTF-8: shown with replacement characters",
        )
    if findings.unreadable_anchors:
        yield QualityItem(
            "log-anchor-unreadable",
            Severity.NOTICE,
            findings.unreadable_anchors,
            f"{_n(findings.unreadable_anchors, 'line')} of an engine's start without a readable UTC stamp",
            "keep the RFC 3339 stamp in UTC on that line",
        )


def _run_items(number: int, run: Run) -> Iterator[QualityItem]:
    if run.mixed:
        yield QualityItem(
            "log-runs-mixed",
            Severity.ERROR,
            len(run.events),
            f"run {number}: two engines wrote at once and their lines cannot be told apart: left out",
            _OWN_FILE,
        )
    if run.shared:
        sure = "" if not run.unsure else f"; {_n(run.unsure, 'line')} could as well be the other engine's"
        yield QualityItem(
            "log-runs-interleaved",
            Severity.NOTICE,
            max(1, run.unsure),
            f"run {number}: another engine wrote at once; told apart by the order of events{sure}",
            f"choose with --run; {_OWN_FILE}",
        )
    if run.out_of_order and not run.mixed:
        yield QualityItem(
            "log-out-of-order",
            Severity.NOTICE,
            run.out_of_order,
            f"run {number}: the clock falls back at {_n(run.out_of_order, 'line')}; taken as lines written late",
            "if two engines wrote into the log, separate them",
        )
    if run.repeated_jobs:
        yield QualityItem(
            "log-job-repeated",
            Severity.NOTICE,
            run.repeated_jobs,
            f"run {number}: {_n(run.repeated_jobs, 'job id')} used again after the job; shown as attempts",
        )
    if run.duplicates:
        yield QualityItem(
            "log-lines-duplicated",
            Severity.NOTICE,
            run.duplicates,
            f"run {number}: {_n(run.duplicates, 'line')} there twice, word for word; taken once",
            "check what collected the log",
        )


def _partition_items(run: LogRun, pipeline: Pipeline) -> Iterator[QualityItem]:
    for name, count in run.unknown_events.items():
        yield QualityItem(
            "log-event-unknown",
            Severity.INFO,
            count,
            f"run {run.index}: event {name} is not in the pipeline file {pipeline.name}; kept",
            "give it a meaning under [extra_events] of a pipeline file",
        )
    start, end = (run.partitions[column].combine_chunks() for column in pipeline.bracket_columns)
    opened = _count(pc.and_(start.is_valid(), end.is_null()))
    if opened:
        yield QualityItem(
            "log-brackets-open",
            Severity.NOTICE,
            opened,
            f"run {run.index}: {_n(opened, 'partition')} started on the GPU without an end: failed, or the log was cut",
        )
    unstarted = _count(pc.and_(start.is_null(), end.is_valid()))
    if unstarted:
        yield QualityItem(
            "log-brackets-unstarted",
            Severity.NOTICE,
            unstarted,
            f"run {run.index}: {_n(unstarted, 'partition')} ended on the GPU without a start: the log was cut",
        )
    backwards = _count(pc.less(end, start))
    if backwards:
        yield QualityItem(
            "log-brackets-reversed",
            Severity.NOTICE,
            backwards,
            f"run {run.index}: {_n(backwards, 'partition')} end on the GPU before the start: not counted as busy",
            "check that the log is of one engine",
        )


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
