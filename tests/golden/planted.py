"""Regressions planted into a real trace, by moving its events in a way that could really have happened."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from nvprof_tools.model.trace import Trace


def slower_pinning(trace: Trace, factor: float) -> Trace:
    """Pinning calls take ``factor`` times as long. The mutex is then asked for later and got when it was: the wait
    shrinks by what pinning grows. A section that waited less than that is left as it is."""
    calls, ranges = trace["api_calls"], trace["nvtx_ranges"]
    name, thread = np.array(calls["name"].to_pylist()), calls["thread"].to_numpy()
    start, end = calls["start_ns"].to_numpy().copy(), calls["end_ns"].to_numpy().copy()
    range_name, range_thread = np.array(ranges["name"].to_pylist()), ranges["thread"].to_numpy()
    range_start, range_end = ranges["start_ns"].to_numpy().copy(), ranges["end_ns"].to_numpy().copy()
    pinning = range_name == "host_register"
    for wait in np.flatnonzero(range_name == "mutex_acquire"):
        before = np.flatnonzero(pinning & (range_thread == range_thread[wait]) & (range_end <= range_start[wait]))
        around = before[np.argmax(range_end[before])]
        inside = (thread == range_thread[wait]) & (start >= range_start[around]) & (end <= range_end[around])
        own = np.flatnonzero(inside & (name == "cudaHostRegister"))
        own = own[np.argsort(start[own])]
        grown = ((end[own] - start[own]) * (factor - 1)).astype(np.int64)
        if grown.sum() >= range_end[wait] - range_start[wait]:
            continue
        moved = 0
        for call, more in zip(own, grown, strict=True):
            start[call] += moved
            moved += int(more)
            end[call] += moved
        range_end[around] += moved
        range_start[wait] += moved
    tables = dict(trace.tables)
    tables["api_calls"] = _timed(calls, start, end)
    tables["nvtx_ranges"] = _timed(ranges, range_start, range_end)
    return replace(trace, tables=tables)


def one_ns(trace: Trace, table: str, row: int) -> Trace:
    """One event ends one nanosecond later."""
    found = trace[table]
    end = found["end_ns"].to_numpy().copy()
    end[row] += 1
    return replace(trace, tables={**trace.tables, table: _timed(found, found["start_ns"].to_numpy(), end)})


def _timed(table: pa.Table, start: np.ndarray, end: np.ndarray) -> pa.Table:
    for name, values in (("start_ns", start), ("end_ns", end)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values))
    return table
