"""A trace and log cut to a stretch of time, so that a golden holds what it is about and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from nvprof_tools.errors import UsageError
from nvprof_tools.model.arrays import from_numpy, ints, validity
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.tables import SPECS
from nvprof_tools.model.trace import LogRun, Trace

MS = 1_000_000
SAMPLE_MARGIN_NS = 20 * MS
"""Metric samples are kept from so long before the stretch: a sample stands for the time up to the next one."""


def jobs_window(found: Attribution, jobs: tuple[str, ...]) -> str:
    """The window, as ``A:B`` in ns, that holds the sections and brackets of these jobs.

    :raises UsageError: ``unknown-job``.
    """
    known = {p.job for p in found.partitions}
    missing = [job for job in jobs if job not in known]
    if missing:
        raise UsageError("unknown-job", f"there is no job {missing[0][:80]!r}", "`nvprof-tools log` lists the jobs")
    own = [p for p in found.partitions if p.job in jobs]
    starts = [t for p in own for t in (p.start_ns, p.bracket_start_ns) if t is not None]
    ends = [t for p in own for t in (p.end_ns, p.bracket_end_ns) if t is not None]
    return f"{min(starts)}:{max(ends)}"


def stretch(found: Attribution) -> tuple[int, int]:
    """The window of an attribution, stretched over every section that it touches."""
    starts = [p.start_ns for p in found.partitions if p.start_ns is not None]
    ends = [p.end_ns for p in found.partitions if p.end_ns is not None]
    return min([found.window.start_ns, *starts]), max([found.window.end_ns, *ends])


def cut(trace: Trace, low: int, high: int) -> Trace:
    """Only the rows that touch ``[low, high)``, and the calls that device work in it came from."""
    tables: dict[str, pa.Table] = {}
    kept = {name: _touching(name, trace[name], low, high) for name in trace.tables}
    calls = kept["api_calls"]
    for name, rows in kept.items():
        if "api_call" in trace[name].column_names:
            call = ints(trace[name]["api_call"], -1)[rows]
            calls[call[call >= 0]] = True
    place = np.cumsum(calls) - 1
    for spec in SPECS:
        table = trace[spec.name].filter(from_numpy(kept[spec.name]))
        if "api_call" in table.column_names:
            at = table.schema.get_field_index("api_call")
            known = validity(table["api_call"])
            moved = place[np.where(known, ints(table["api_call"], 0), 0)] if len(place) else np.zeros(len(table))
            table = table.set_column(at, table.schema.field(at), from_numpy(moved.astype(np.int64), known))
        tables[spec.name] = table.combine_chunks()
    return replace(trace, tables=tables)


def cut_log(run: LogRun, found: Attribution, pipeline: Pipeline) -> LogRun:
    """Only the partitions whose bracket touches the window; all of them where the clocks were never joined."""
    if found.clock.offset_ns is None:
        return run
    start_name, end_name = pipeline.bracket_columns
    rows = run.partitions
    start, end = (ints(rows[name], 0) * MS + found.clock.offset_ns for name in (start_name, end_name))
    both = validity(rows[start_name]) & validity(rows[end_name])
    keep = both & (end + MS > found.window.start_ns) & (start < found.window.end_ns)
    chosen = rows.filter(from_numpy(keep))
    keys = set(zip(chosen["job"].to_pylist(), chosen["partition"].to_pylist(), strict=True))
    return replace(
        run,
        partitions=chosen,
        events=_of(run.events, keys),
        completions=_of(run.completions, keys),
    )


def _of(table: pa.Table, keys: set[tuple[str, int | None]]) -> pa.Table:
    pairs = zip(table["job"].to_pylist(), table["partition"].to_pylist(), strict=True)
    return table.filter(pa.array([pair in keys for pair in pairs], pa.bool_()))


def _touching(name: str, table: pa.Table, low: int, high: int) -> np.ndarray:
    if "start_ns" in table.column_names:
        return np.asarray((ints(table["end_ns"]) > low) & (ints(table["start_ns"]) < high))
    if "time_ns" in table.column_names:
        # Memory in use is a running sum: what was allocated before counts.
        first = {"memory_events": np.iinfo(np.int64).min, "gpu_metrics": low - SAMPLE_MARGIN_NS}.get(name, low)
        time = ints(table["time_ns"])
        return np.asarray((time >= first) & (time < high))
    return np.ones(len(table), np.bool_)
