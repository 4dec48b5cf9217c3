"""A log written again from what was read of it: events, the wall clock's anchor, completions, and not a word more."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from nvprof_tools.golden.words import plain
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import LogRun

_NS = 1_000_000_000


def render(run: LogRun, pipeline: Pipeline) -> str:
    """One run as a log that reads back as the same tables."""
    return "".join(f"{line}\n" for line in _lines(run, pipeline))


def _lines(run: LogRun, pipeline: Pipeline) -> Iterator[str]:
    words = pipeline.events
    if run.anchor_utc_ns is not None and words.anchors:
        yield f"{_stamp(run.anchor_utc_ns)}  INFO engine: {words.anchors[0]}"
    figures = _figures(run)
    stamped = iter(_completions(run, pipeline))
    events = run.events
    columns = (events.column(n).to_pylist() for n in ("line", "time_ms", "event", "job", "partition", "worker"))
    waiting = next(stamped, None)
    for line, time, event, job, partition, worker in zip(*columns, strict=True):
        while waiting is not None and waiting[0] < line:
            yield waiting[1]
            waiting = next(stamped, None)
        role = words.roles.get(event)
        detail = [] if worker is None else [f"{words.worker[0]}={worker}"]
        detail += [] if partition is None else [f"{words.partition[0]}={partition}"]
        synthesis, gpu = figures.get((job, partition), (None, None))
        detail += [f"{words.synth_ms[0]}={synthesis}"] if role == "synth_end" and synthesis is not None else []
        detail += [f"{words.gpu_ms[0]}={gpu}"] if role == "gpu_end" and gpu is not None else []
        yield f"TIMELINE,{time},{plain(event)},{plain(job)},{','.join(detail)}"
    while waiting is not None:
        yield waiting[1]
        waiting = next(stamped, None)


def _figures(run: LogRun) -> dict[tuple[str, int | None], tuple[int | None, int | None]]:
    rows = run.partitions
    columns = (rows.column(n).to_pylist() for n in ("job", "partition", "synth_ms", "gpu_ms"))
    return {(job, partition): (synth, gpu) for job, partition, synth, gpu in zip(*columns, strict=True)}


def _completions(run: LogRun, pipeline: Pipeline) -> Iterator[tuple[int, str]]:
    words = pipeline.events
    if not words.completions:
        return
    rows = run.completions
    columns = (rows.column(n).to_pylist() for n in ("line", "utc_ns", "job", "partition", "gpu_ms"))
    for line, when, job, partition, gpu in zip(*columns, strict=True):
        tail = "" if partition is None else f" {words.partition[0]}={partition}"
        tail += "" if gpu is None else f" {words.gpu_ms[0]}={gpu}"
        yield line, f"{_stamp(when)}  INFO engine: {words.completions[0]} job_id={plain(job)}{tail}"


def _stamp(utc_ns: int) -> str:
    """RFC 3339, UTC, to the nanosecond, by whole numbers only."""
    seconds, fraction = divmod(utc_ns, _NS)
    when = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"
