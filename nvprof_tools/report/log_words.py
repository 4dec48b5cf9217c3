"""What every format says of a log: the finding, and the tables as rows of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from nvprof_tools.model.log_summary import LogJob, LogSummary, LogTotals
from nvprof_tools.report.words import MISSING, count, number, percent, plural

JOBS_SHOWN: Final = 40
TIMINGS_SHOWN: Final = 40

CAUSE_MEANING: Final = {
    "section": "picked up, its bracket not yet open",
    "dispatch": "sent, not picked up",
    "starved": "nothing sent, synthesis running",
    "drained": "nothing sent, no synthesis",
}
"""Why no bracket is open, a few words."""

JOB_TITLES: Final = ("job", "parts", "synth ms", "queue ms", "gpu ms", "idle before", "cause", "inside", "slack ms", "")
TIMING_TITLES: Final = ("figure", "lines", "sum ms", "mean ms")

Row: TypeAlias = tuple[str, ...]


def finding(s: LogSummary) -> str:
    """One or two sentences: what the log says of the GPU's time, and what that is not."""
    t = s.totals
    if t.wall_ms is None or t.gpu_union_ms is None or t.idle_ms is None:
        return "The log has no GPU bracket that is open and closed: nothing can be said of the GPU's time."
    text = f"A GPU bracket is open {percent(t.utilisation_union)} of {seconds(t.wall_ms)}"
    if t.seconds_per_proof is not None:
        text += f"; {plural(t.jobs, 'proof')}, {number(t.seconds_per_proof, 2)} s a proof"
    if t.proofs_per_minute is not None:
        text += f" ({number(t.proofs_per_minute, 2)} a minute)"
    if t.idle_ms:
        cause = max(t.idle_causes, key=lambda name: t.idle_causes[name])
        text += f"; of {seconds(t.idle_ms)} idle, {seconds(t.idle_causes[cause])} {cause}: {CAUSE_MEANING[cause]}"
    return text + "."


CAUTION: Final = "An open bracket is not a busy GPU: give the trace as well (attribute TRACE --log LOG) to see inside."


def facts(s: LogSummary) -> str:
    """Where the figures come from."""
    t = s.totals
    jobs = plural(t.jobs, "finished job") + (f" and {t.open_jobs:,} open" if t.open_jobs else "")
    parts = plural(t.partitions, "partition") + (f" and {t.open_partitions:,} open" if t.open_partitions else "")
    anchor = "no wall-clock anchor" if s.anchor_utc_ns is None else "wall-clock anchor found"
    return f"run {s.run} of {s.runs}; pipeline {s.pipeline}; {jobs}; {parts}; {anchor}"


def totals_rows(s: LogSummary) -> Iterator[Row]:
    """Label, figure of all jobs, figure without the cold one (absent where there is no other)."""
    columns = [s.totals] if s.steady is None else [s.totals, s.steady]
    for label, values in _totals(columns):
        yield (label, *values)


def totals_titles(s: LogSummary) -> Row:
    """Titles of :func:`totals_rows`."""
    return ("", "all") if s.steady is None else ("", "all", "without first")


def job_rows(s: LogSummary) -> Iterator[Row]:
    """Under ``JOB_TITLES``; the first ``JOBS_SHOWN``."""
    for job in s.jobs[:JOBS_SHOWN]:
        yield (
            job.job,
            count(job.partitions),
            count(job.synth_ms),
            count(job.queue_ms),
            count(job.gpu_ms),
            count(job.idle_before_ms),
            job.idle_cause or MISSING,
            count(job.idle_inside_ms),
            count(job.slack_ms),
            _flags(job),
        )


def timing_rows(s: LogSummary) -> Iterator[Row]:
    """Under ``TIMING_TITLES``; the first ``TIMINGS_SHOWN``."""
    for name, (lines, total) in list(s.timings.items())[:TIMINGS_SHOWN]:
        yield (name, count(lines), count(total), number(total / lines))


def other_events(s: LogSummary) -> Iterator[Row]:
    """Events without a role: name, count, meaning."""
    for name, (times, meaning) in s.extra_events.items():
        yield (name, count(times), meaning)
    for name, times in s.unknown_events.items():
        yield (name, count(times), "not in the pipeline file")


def device_rows(s: LogSummary) -> Iterator[Row]:
    """One line a GPU, where the workers' numbers say there are several."""
    for d in s.devices:
        workers = ", ".join(str(worker) for worker in d.workers[:8])
        figures = f"{count(d.gpu_union_ms)} ms open, {percent(d.utilisation_union)}"
        yield (f"GPU {d.device}", f"workers {workers}", plural(d.partitions, "partition"), figures)


def seconds(value_ms: int) -> str:
    """``102.4 s``, ``14 ms``: for sentences."""
    return f"{value_ms:,} ms" if value_ms < 1000 else f"{value_ms / 1000:,.1f} s"


def _totals(columns: list[LogTotals]) -> Iterator[tuple[str, list[str]]]:
    yield "proofs finished", [count(t.jobs) for t in columns]
    yield "seconds a proof", [number(t.seconds_per_proof, 2) for t in columns]
    yield "seconds from proof to proof", [number(t.seconds_between_proofs, 2) for t in columns]
    yield "proofs a minute", [number(t.proofs_per_minute, 2) for t in columns]
    yield "first synthesis to last GPU end, ms", [count(t.first_synth_to_last_gpu_ms) for t in columns]
    yield "first GPU start to last GPU end (wall), ms", [count(t.wall_ms) for t in columns]
    yield "  bracket open (union), ms", [count(t.gpu_union_ms) for t in columns]
    yield "  idle, ms", [count(t.idle_ms) for t in columns]
    for cause, meaning in CAUSE_MEANING.items():
        if any(t.idle_causes.get(cause) for t in columns):
            yield f"    {cause}: {meaning}", [count(t.idle_causes.get(cause)) for t in columns]
    yield "gpu_ms summed, ms", [count(t.gpu_sum_ms) for t in columns]
    yield "utilisation: open / wall", [percent(t.utilisation_union) for t in columns]
    yield "utilisation: summed / wall", [percent(t.utilisation_sum) for t in columns]
    yield "utilisation: summed / (summed + idle)", [percent(t.utilisation_busy_idle) for t in columns]
    yield "mean synthesis a partition, ms", [number(t.mean_synth_ms) for t in columns]
    yield "mean gpu_ms a partition, ms", [number(t.mean_gpu_ms) for t in columns]
    yield "mean gap before a bracket, ms", [number(t.mean_gap_ms) for t in columns]
    yield "idle a partition, ms", [number(t.idle_per_partition_ms) for t in columns]


def _flags(job: LogJob) -> str:
    return " ".join(word for word, there in (("cold", job.cold), ("open", job.open)) if there)
