"""Columns of normalised tables as numpy arrays, with nulls and dictionaries handled the same way everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model import arrays
from nvprof_tools.timeline.intervals import Ints


def ints(table: pa.Table, name: str, null: int = -1) -> Ints:
    """An integer column as int64; nulls become ``null``."""
    return arrays.ints(table.column(name), null)


def flags(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """A boolean column; nulls are false."""
    column = table.column(name)
    return np.asarray(arrays.to_numpy(column), bool) & arrays.validity(column)


def floats(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    """A float column; nulls are NaN."""
    column = table.column(name)
    return np.where(arrays.validity(column), arrays.to_numpy(column), np.nan)


def names(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """A dictionary column as ``(codes, words)``; a null has code −1."""
    column = table.column(name)
    if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1:
        column = column.unify_dictionaries()
    array = arrays.flat(column)
    return arrays.ints(array.indices, -1), array.dictionary.to_pylist()


def classify(codes: Ints, words: Sequence[str], rule: Callable[[str], int]) -> Ints:
    """Apply ``rule`` once a distinct word and spread the result over the rows; a null row gets −1."""
    table = np.array([*(rule(word) for word in words), -1], np.int64)
    return table[codes]
