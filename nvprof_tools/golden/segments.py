"""Segment tables on disk, and the first place where two of them part.

Segments fill their lane without a gap, so an end is the next start: what is stored is how far past it the end lies,
which is nothing but for the last one of each lane. And a segment begins where some event of the trace begins or ends:
what is stored is which one, counted over all those times, and how far past it the start lies, which is mostly nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from nvprof_tools.errors import SourceError
from nvprof_tools.model.arrays import canonical, flat, from_numpy, ints, validity
from nvprof_tools.model.trace import Trace

Ints = npt.NDArray[np.int64]

_OFFSET: Final = pa.field("offset_ns", pa.int64(), False)


def event_times(trace: Trace) -> Ints:
    """Every time at which an event of the trace begins or ends, ascending, each once; never empty."""
    times = [np.zeros(1, np.int64)]
    for table in trace.tables.values():
        times.extend(ints(table[name]) for name in ("start_ns", "end_ns") if name in table.column_names)
    return np.unique(np.concatenate(times))


def write(table: pa.Table, path: Path, times: Ints) -> None:
    """Write a segment table; the same rows give the same bytes.

    :param times: :func:`event_times` of the trace the segments are of.
    """
    table = _canonical(table)
    start, end = ints(table["start_ns"]), ints(table["end_ns"])
    past = end - np.where(_follows(ints(table.column(0))), np.append(start[1:], 0), start)
    event = np.maximum(np.searchsorted(times, start, side="right") - 1, 0)
    stored = _set(_set(table, "start_ns", from_numpy(event)), "end_ns", from_numpy(past))
    stored = stored.append_column(_OFFSET, from_numpy(start - times[event]))
    words = [field.name for field in stored.schema if pa.types.is_dictionary(field.type)]
    packed = {f.name: "DELTA_BINARY_PACKED" for f in stored.schema if pa.types.is_integer(f.type)}
    parquet.write_table(stored, path, compression="zstd", version="2.6", use_dictionary=words, column_encoding=packed)


def read(path: Path, schema: pa.Schema, times: Ints) -> pa.Table:
    """Read what :func:`write` wrote.

    :raises SourceError: ``golden-damaged``.
    """
    try:
        stored = parquet.read_table(path)
        stored.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, "cannot be read") from error
    if not stored.schema.equals(schema.append(_OFFSET)):
        raise _damaged(path, "has other columns")
    event, past = ints(stored["start_ns"]), ints(stored["end_ns"])
    if len(event) and not (event.min() >= 0 and event.max() < len(times)):
        raise _damaged(path, "points past the trace's events")
    start = times[event] + ints(stored[_OFFSET.name])
    base = np.where(_follows(ints(stored.column(0))), np.append(start[1:], 0), start)
    table = stored.drop_columns([_OFFSET.name])
    return _canonical(_set(_set(table, "start_ns", from_numpy(start)), "end_ns", from_numpy(base + past)))


def _damaged(path: Path, what: str) -> SourceError:
    return SourceError("golden-damaged", f"the golden's {path.name} {what}", "record the golden again")


def first_difference(
    expected: pa.Table, actual: pa.Table
) -> tuple[dict[str, Any] | None, dict[str, Any] | None] | None:
    """The first pair of segments that are not the same, either null where one table ended; null: all the same."""
    expected, actual = _canonical(expected), _canonical(actual)
    count = min(len(expected), len(actual))
    at = count
    for name in expected.column_names:
        at = min(at, _parting(flat(expected[name].slice(0, count)), flat(actual[name].slice(0, count))))
    if at == len(expected) == len(actual):
        return None
    return _row(expected, at), _row(actual, at)


def _parting(a: pa.Array, b: pa.Array) -> int:
    """First row where two columns differ; their length where they do not."""
    if not pa.types.is_integer(a.type) or pa.types.is_uint64(a.type):
        same = np.array(a.to_pylist(), object) == np.array(b.to_pylist(), object)
    else:
        here, there = validity(a), validity(b)
        same = (here == there) & (~here | (ints(a) == ints(b)))
    differing = np.flatnonzero(~np.asarray(same, bool))
    return int(differing[0]) if len(differing) else len(a)


def _row(table: pa.Table, at: int) -> dict[str, Any] | None:
    rows: list[dict[str, Any]] = table.slice(at, 1).to_pylist()
    return rows[0] if rows else None


def _follows(lane: np.ndarray) -> np.ndarray:
    """True where the next row is of the same lane."""
    return np.append(lane[1:] == lane[:-1], False) if len(lane) else np.zeros(0, bool)


def _canonical(table: pa.Table) -> pa.Table:
    for field in table.schema:
        if pa.types.is_dictionary(field.type):
            array = flat(table[field.name])
            codes = np.where(validity(array), ints(array.indices), -1)
            table = _set(table, field.name, canonical(codes, array.dictionary))
    return table.combine_chunks()


def _set(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values)
