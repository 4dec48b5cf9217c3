"""The figures that a log alone gives: jobs, queueing, GPU time, idle gaps and why they are there.

All in whole milliseconds on the log's clock. What no event says stays null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.errors import UsageError
from nvprof_tools.model.arrays import from_numpy, ints, strings
from nvprof_tools.model.log_summary import (
    IDLE_CAUSES,
    SUMMARY_PARTITION_SCHEMA,
    LogDevice,
    LogJob,
    LogSummary,
    LogTotals,
)
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.trace import AppLog, LogRun

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NULL = np.iinfo(np.int64).min
_COLUMNS = ("synth_start_ms", "synth_end_ms", "sent_ms", "picked_ms", "synth_ms", "gpu_ms", "partition", "worker")


def choose_run(log: AppLog, number: int | None) -> LogRun:
    """The run asked for, else the last one that used the GPU.

    :raises UsageError: ``unknown-run``.
    """
    if number is not None:
        for run in log.runs:
            if run.index == number:
                return run
        known = ", ".join(str(run.index) for run in log.runs[:20])
        raise UsageError("unknown-run", f"the log has no run {number}", f"its runs are {known}")
    used = [run for run in log.runs if run.partitions["gpu_end_ms"].null_count < run.partitions.num_rows]
    return (used or log.runs)[-1]


def summarise(log: AppLog, pipeline: Pipeline, number: int | None = None) -> LogSummary:
    """Everything one run of a log tells.

    :param number: which run, from 1; null: the last one that used the GPU.
    :raises UsageError: ``unknown-run``.
    """
    run = choose_run(log, number)
    rows = _rows(run.partitions, pipeline)
    gaps = _gaps(rows)
    jobs = _jobs(rows, gaps)
    cold = next((job.job for job in jobs if job.cold), None)
    others = np.array([name != cold for name in rows.job], np.bool_)
    extra = _extra_events(run, pipeline)
    devices, items = _devices(rows, pipeline)
    return LogSummary(
        runs=max(run.index for run in log.runs),
        run=run.index,
        pipeline=pipeline.name,
        anchor_utc_ns=run.anchor_utc_ns,
        totals=_totals(rows, gaps, np.ones(len(rows), np.bool_)),
        steady=_totals(rows, gaps, others) if others.any() else None,
        jobs=jobs,
        partitions=_table(rows, gaps),
        devices=devices,
        timings=run.timings,
        unknown_events=run.unknown_events,
        extra_events=extra,
        quality=ordered([*log.quality, *items]),
    )


@dataclass(frozen=True)
class _Rows:
    """Partitions in order of bracket start (those without one last); ``_NULL`` where an event is missing.

    ``start``/``end``: the bracket. ``closed``: both are there and in order. ``synth``/``gpu``: the log's own figures,
    else the difference of the events.
    """

    job: list[str]
    code: Ints
    start: Ints
    end: Ints
    closed: Mask
    synth: Ints
    gpu: Ints
    queue: Ints
    slack: Ints
    ready: Ints
    columns: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(self.code)


@dataclass(frozen=True)
class _Gaps:
    """Per row: the idle time before it (``_NULL``: no predecessor) and its split by cause."""

    begin: Ints
    length: Ints
    causes: Ints

    @property
    def cause(self) -> list[str | None]:
        """The cause of most of each gap; the first in order where two are equal."""
        names = [IDLE_CAUSES[index] for index in np.argmax(self.causes, axis=1).tolist()] if len(self.length) else []
        return [name if length > 0 else None for name, length in zip(names, self.length.tolist(), strict=True)]


def _rows(table: pa.Table, pipeline: Pipeline) -> _Rows:
    start_name, end_name = pipeline.bracket_columns
    start, end = _column(table, start_name), _column(table, end_name)
    order = np.lexsort((np.where(end == _NULL, np.iinfo(np.int64).max, end), start, start == _NULL))
    names = np.array(table["job"].to_pylist(), dtype=object)[order].tolist()
    codes: dict[str, int] = {}
    code = np.array([codes.setdefault(name, len(codes)) for name in names], np.int64)
    columns = {name: _column(table, name)[order] for name in (*_COLUMNS, "gpu_start_ms", "gpu_end_ms")}
    start, end = start[order], end[order]
    closed = (start != _NULL) & (end != _NULL) & (end >= start)
    synth = _either(columns["synth_ms"], _difference(columns["synth_end_ms"], columns["synth_start_ms"]))
    # A figure without a bracket is of a call whose place in time is not known: it is left out of every sum.
    gpu = np.where(closed, _either(columns["gpu_ms"], _difference(end, start)), _NULL)
    ready = _either(columns["synth_end_ms"], columns["sent_ms"])
    return _Rows(
        job=names,
        code=code,
        start=start,
        end=end,
        closed=closed,
        synth=synth,
        gpu=gpu,
        queue=_difference(columns["picked_ms"], columns["sent_ms"]),
        slack=_difference(_free_since(start, end, closed, columns["worker"]), ready),
        ready=_either(columns["sent_ms"], columns["synth_end_ms"]),
        columns=columns,
    )


def _free_since(start: Ints, end: Ints, closed: Mask, worker: Ints) -> Ints:
    """Per row: when its worker (any, where none is named) ended the partition before it."""
    free = np.full(len(start), _NULL, np.int64)
    for number in np.unique(worker).tolist():
        mine = worker == number
        ends = np.sort(end[closed & mine]) if number != _NULL else np.sort(end[closed])
        rows = np.flatnonzero(mine & (start != _NULL))
        place = np.searchsorted(ends, start[rows], side="right") - 1
        # A bracket of no length must not free the worker for itself.
        own = closed[rows] & (end[rows] == start[rows])
        place = np.where(own, np.searchsorted(ends, start[rows], side="left") - 1, place)
        found = place >= 0
        free[rows[found]] = ends[place[found]]
    return free


def _gaps(rows: _Rows) -> _Gaps:
    """Idle stretches: from the latest end so far (for an open bracket: its start) to the next start."""
    started = rows.start != _NULL
    reach = np.maximum.accumulate(np.where(rows.closed, rows.end, rows.start)) if len(rows) else rows.start
    before = np.concatenate((np.array([_NULL]), reach[:-1]))[: len(rows)]
    has = started & (before != _NULL)
    begin = np.where(has, np.minimum(before, rows.start), _NULL)
    length = np.where(has, rows.start - begin, _NULL)
    causes = np.zeros((len(rows), len(IDLE_CAUSES)), np.int64)
    low, high = begin[has], rows.start[has]
    covered = np.zeros(len(low), np.int64)
    starts, ends = np.empty(0, np.int64), np.empty(0, np.int64)
    for index, (more_starts, more_ends) in enumerate(_states(rows)):
        starts, ends = np.concatenate((starts, more_starts)), np.concatenate((ends, more_ends))
        within = _measure(starts, ends, low, high)
        causes[has, index] = within - covered
        covered = within
    causes[has, len(IDLE_CAUSES) - 1] = high - low - covered
    return _Gaps(begin, length, causes)


def _states(rows: _Rows) -> list[tuple[Ints, Ints]]:
    """When each cause but the last holds, in order of precedence."""
    column = rows.columns
    forever = np.iinfo(np.int64).max // 4
    taken = _either(column["picked_ms"], rows.start)
    synth_end = np.where(column["synth_end_ms"] == _NULL, forever, column["synth_end_ms"])
    pairs = ((column["picked_ms"], rows.start), (rows.ready, taken), (column["synth_start_ms"], synth_end))
    states = []
    for low, high in pairs:
        there = (low != _NULL) & (high != _NULL) & (low < high)
        states.append((low[there], high[there]))
    return states


def _measure(starts: Ints, ends: Ints, low: Ints, high: Ints) -> Ints:
    """How much of each [low, high) the union of the intervals covers."""
    if not len(starts):
        return np.zeros(len(low), np.int64)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    begins = starts[first]
    stops = np.concatenate((reach[:-1][first[1:]], reach[-1:]))
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(stops - begins)))

    def before(when: Ints) -> Ints:
        place = np.searchsorted(begins, when, side="right") - 1
        inside = np.minimum(when, stops[place]) - begins[place]
        measured: Ints = np.where(place >= 0, total[np.maximum(place, 0)] + inside, 0)
        return measured

    return before(high) - before(low)


def _totals(rows: _Rows, gaps: _Gaps, chosen: Mask) -> LogTotals:
    """Figures of the chosen rows. The wall starts at their first bracket; what other jobs run within it is busy time,
    not idle."""
    closed = rows.closed & chosen
    started = (rows.start != _NULL) & chosen
    wall = union = idle = None
    causes: dict[str, int] = {}
    counted = np.zeros(len(rows), np.bool_)
    if closed.any():
        low, high = int(rows.start[started].min()), int(rows.end[closed].max())
        wall = high - low
        ends = np.minimum(rows.end[rows.closed], high)
        union = int(_measure(rows.start[rows.closed], ends, np.array([low]), np.array([high]))[0])
        idle = wall - union
        counted = (gaps.length != _NULL) & (gaps.begin >= low) & (rows.start <= high)
        sums = gaps.causes[counted].sum(axis=0).tolist()
        causes = dict(zip(IDLE_CAUSES, sums, strict=True))
    everyone = np.unique(rows.code[chosen])
    unfinished = np.unique(rows.code[chosen & ~rows.closed])
    done = np.full(int(rows.code.max()) + 1 if len(rows) else 0, _NULL, np.int64)
    np.maximum.at(done, rows.code[closed], rows.end[closed])
    finished = done[np.setdiff1d(everyone, unfinished)]
    synth_start = rows.columns["synth_start_ms"][chosen]
    synth_start = synth_start[synth_start != _NULL]
    last = int(rows.end[closed].max()) if closed.any() else None
    return LogTotals(
        wall_ms=wall,
        first_synth_to_last_gpu_ms=None if last is None or not len(synth_start) else last - int(synth_start.min()),
        jobs=len(finished),
        open_jobs=len(unfinished),
        partitions=int(np.count_nonzero(closed)),
        open_partitions=int(np.count_nonzero(chosen & ~rows.closed)),
        synth_count=int(np.count_nonzero(chosen & (rows.synth != _NULL))),
        synth_sum_ms=_sum(rows.synth[chosen]),
        gpu_sum_ms=_sum(rows.gpu[closed]),
        gpu_union_ms=union,
        idle_ms=idle,
        idle_causes=causes,
        gaps=int(np.count_nonzero(counted)),
        finish_span_ms=int(finished.max() - finished.min()) if len(finished) > 1 else None,
    )


def _jobs(rows: _Rows, gaps: _Gaps) -> tuple[LogJob, ...]:
    order = np.argsort(rows.code, kind="stable")
    edges = np.searchsorted(rows.code[order], np.arange(int(rows.code.max()) + 2 if len(rows) else 1))
    cause = gaps.cause
    jobs = []
    for number in range(len(edges) - 1):
        own = order[edges[number] : edges[number + 1]]
        first = int(own[0])
        synth_start = rows.columns["synth_start_ms"][own]
        synth_start = synth_start[synth_start != _NULL]
        ends = rows.end[own][rows.closed[own]]
        slack = rows.slack[own]
        length = int(gaps.length[first])
        jobs.append(
            LogJob(
                job=rows.job[first],
                partitions=len(own),
                synth_ms=_sum(rows.synth[own]),
                queue_ms=_sum(rows.queue[own]),
                gpu_ms=_sum(rows.gpu[own]),
                wall_ms=int(ends.max()) - int(synth_start.min()) if len(ends) and len(synth_start) else None,
                slack_ms=_sum(np.where(slack == _NULL, _NULL, np.maximum(slack, 0))),
                idle_before_ms=None if length == _NULL else length,
                idle_inside_ms=_sum(gaps.length[own[1:]]),
                idle_cause=cause[first],
                cold=number == 0,
                open=not bool(rows.closed[own].all()),
            )
        )
    return tuple(jobs)


def _devices(rows: _Rows, pipeline: Pipeline) -> tuple[tuple[LogDevice, ...], list[QualityItem]]:
    """Workers are numbered GPU by GPU; a log does not name the GPU, so this is what the pipeline file says."""
    worker = rows.columns["worker"]
    known = rows.closed & (worker != _NULL)
    device = np.where(known, worker // pipeline.workers_per_device, -1)
    numbers = np.unique(device[known]).tolist()
    if len(numbers) < 2:
        return (), []
    low, high = int(rows.start[rows.closed].min()), int(rows.end[rows.closed].max())
    devices = []
    for number in numbers:
        own = known & (device == number)
        union = int(_measure(rows.start[own], rows.end[own], np.array([low]), np.array([high]))[0])
        devices.append(
            LogDevice(
                device=number,
                workers=tuple(np.unique(worker[own]).tolist()),
                partitions=int(np.count_nonzero(own)),
                gpu_sum_ms=_sum(rows.gpu[own]) or 0,
                gpu_union_ms=union,
                utilisation_union=union / (high - low) if high > low else None,
            )
        )
    item = QualityItem(
        "log-several-devices",
        Severity.NOTICE,
        len(devices),
        f"by their numbers the workers serve {len(devices)} GPUs ({pipeline.workers_per_device} workers a GPU); "
        "the totals count time in which any GPU has a bracket open",
        "state workers_per_device in a pipeline file if one GPU has more workers",
    )
    return tuple(devices), [item]


def _extra_events(run: LogRun, pipeline: Pipeline) -> dict[str, tuple[int, str]]:
    if not pipeline.events.extra:
        return {}
    counts = {row["values"]: row["counts"] for row in run.events["event"].combine_chunks().value_counts().to_pylist()}
    return {name: (counts[name], meaning) for name, meaning in pipeline.events.extra.items() if name in counts}


def _table(rows: _Rows, gaps: _Gaps) -> pa.Table:
    values = {**rows.columns, "queue_ms": rows.queue, "slack_ms": rows.slack, "idle_before_ms": gaps.length}
    arrays = []
    for field in SUMMARY_PARTITION_SCHEMA:
        if field.name == "job":
            arrays.append(strings(rows.job))
        elif field.name == "idle_cause":
            arrays.append(strings(gaps.cause))
        else:
            column = values[field.name]
            arrays.append(from_numpy(column, column != _NULL).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=SUMMARY_PARTITION_SCHEMA)


def _column(table: pa.Table, name: str) -> Ints:
    return ints(table[name], _NULL)


def _either(first: Ints, second: Ints) -> Ints:
    return np.where(first == _NULL, second, first)


def _difference(later: Ints, earlier: Ints) -> Ints:
    """``later - earlier``, null where one is. It may be negative: stamps of two threads can cross."""
    there = (later != _NULL) & (earlier != _NULL)
    return np.where(there, np.where(there, later, 0) - np.where(there, earlier, 0), _NULL)


def _sum(values: Ints) -> int | None:
    there = values[values != _NULL]
    return int(there.sum()) if len(there) else None
