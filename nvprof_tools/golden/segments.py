"""Segment tables on disk, and the first place where two of them part.

Segments fill their lane without a gap, so an end is the next start: what is stored is how far past it the end lies,
which is nothing but for the last one of each lane.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from nvprof_tools.errors import SourceError
from nvprof_tools.model.arrays import canonical, flat, from_numpy, ints, validity


def write(table: pa.Table, path: Path) -> None:
    """Write a segment table; the same rows give the same bytes."""
    table = _canonical(table)
    start, end = ints(table["start_ns"]), ints(table["end_ns"])
    follows = _follows(ints(table.column(0)))
    past = end - np.where(follows, np.append(start[1:], 0), start)
    table = _set(table, "end_ns", from_numpy(past))
    words = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    packed = {f.name: "DELTA_BINARY_PACKED" for f in table.schema if pa.types.is_integer(f.type)}
    parquet.write_table(table, path, compression="zstd", version="2.6", use_dictionary=words, column_encoding=packed)


def read(path: Path, schema: pa.Schema) -> pa.Table:
    """Read what :func:`write` wrote.

    :raises SourceError: ``golden-damaged``.
    """
    try:
        table = parquet.read_table(path)
        table.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(
            "golden-damaged", f"the golden's {path.name} cannot be read", "record the golden again"
        ) from error
    if not table.schema.equals(schema):
        raise SourceError("golden-damaged", f"the golden's {path.name} has other columns", "record the golden again")
    table = _canonical(table)
    start = ints(table["start_ns"])
    base = np.where(_follows(ints(table.column(0))), np.append(start[1:], 0), start)
    return _set(table, "end_ns", from_numpy(base + ints(table["end_ns"])))


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
    if pa.types.is_dictionary(a.type):
        a, b = a.dictionary_decode(), b.dictionary_decode()
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
