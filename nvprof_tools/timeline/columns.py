"""Arrow columns as numpy arrays, with nulls and dictionaries handled the same way everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.timeline.intervals import Index, Ints


def ints(table: pa.Table, name: str, null: int = -1) -> Ints:
    """An integer column as int64; nulls become ``null``."""
    column = table.column(name)
    if column.null_count:
        column = pc.fill_null(column, null)
    return np.asarray(column.to_numpy(), dtype=np.int64)


def flags(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """A boolean column; nulls are false."""
    column = table.column(name)
    return np.asarray(pc.fill_null(column, False).to_numpy(), dtype=bool)


def names(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """A dictionary column as ``(codes, words)``; a null has code −1."""
    column = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    column = column.unify_dictionaries() if column.num_chunks > 1 else column
    if column.num_chunks == 0:
        return np.empty(0, np.int64), []
    chunk = column.combine_chunks()
    if isinstance(chunk, pa.ChunkedArray):
        chunk = chunk.chunk(0) if chunk.num_chunks else pa.array([], column.type)
    indices = pc.fill_null(chunk.indices.cast(pa.int64()), -1)
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64), chunk.dictionary.to_pylist()


def classify(codes: Ints, words: Sequence[str], rule: Callable[[str], int]) -> Ints:
    """Apply ``rule`` once a distinct word and spread the result over the rows; a null row gets −1."""
    table = np.array([*(rule(word) for word in words), -1], np.int64)
    return table[codes]


def rows_where(mask: npt.NDArray[np.bool_]) -> Index:
    """Row numbers of the true entries."""
    return np.flatnonzero(mask)
