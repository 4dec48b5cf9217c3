"""Arrow columns as numpy, for renderers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.arrays import ints, to_numpy, validity

Ints = npt.NDArray[np.int64]


def integers(table: pa.Table, name: str, missing: int = -1) -> Ints:
    """The column as int64, nulls as ``missing``."""
    return ints(table.column(name), missing)


def words(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """A dictionary column as (index into the words, -1 for null; the words)."""
    column = table.column(name).unify_dictionaries()
    if column.num_chunks == 0:
        return np.zeros(0, np.int64), []
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    known: list[str] = array.dictionary.to_pylist()
    codes = to_numpy(array.indices).astype(np.int64)
    return np.where(validity(array.indices), codes, -1), [w if w is not None else "" for w in known]


def floats(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    """The column as float64, nulls as NaN."""
    column = table.column(name)
    values = to_numpy(column).astype(np.float64)
    return np.where(validity(column), values, np.nan)


def distinct(*columns: Ints) -> tuple[list[tuple[int, ...]], Ints]:
    """The distinct rows of some columns, in order, and which of them each row is.

    Column by column on small numbers: ``numpy.unique`` over rows sorts them as bytes, ten times slower.
    """
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, code = np.unique(code * max(len(values), 1) + place.reshape(-1), return_inverse=True)
        code = code.reshape(-1).astype(np.int64)
    count = int(code.max(initial=-1)) + 1
    first = np.zeros(count, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    return [tuple(int(column[i]) for column in columns) for i in first.tolist()], code
