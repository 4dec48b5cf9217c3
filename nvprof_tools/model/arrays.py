"""Numpy to Arrow and back without a copy where none is needed, and without loading pandas.

``pyarrow.array`` looks whether its argument is a pandas object and imports pandas for that, which alone costs more
than reading a typical capture. These few helpers build and open arrays from buffers instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def _bitmap(flags: Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def from_numpy(values: npt.NDArray[np.generic], valid: Bools | None = None, to: pa.DataType | None = None) -> pa.Array:
    """An Arrow array over ``values``; where ``valid`` is false the element is null.

    :param to: Arrow type of the same width as the values' dtype (booleans are packed); by default the dtype's own.
    """
    kind = pa.from_numpy_dtype(values.dtype) if to is None else to
    nulls = 0 if valid is None else int(len(valid) - np.count_nonzero(valid))
    bitmap = _bitmap(valid) if valid is not None and nulls else None
    data = _bitmap(values.astype(bool, copy=False)) if pa.types.is_boolean(kind) else pa.py_buffer(_plain(values))
    return pa.Array.from_buffers(kind, len(values), [bitmap, data], nulls)


def _plain(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return np.ascontiguousarray(values)


def strings(values: Iterable[str | None]) -> pa.Array:
    """A string array from Python strings; ``None`` is null."""
    items = list(values)
    encoded = [b"" if item is None else item.encode("utf-8", "replace") for item in items]
    offsets = np.zeros(len(items) + 1, np.int32)
    np.cumsum([len(e) for e in encoded], out=offsets[1:]) if encoded else None
    valid = np.fromiter((item is not None for item in items), np.bool_, len(items))
    nulls = int(len(items) - np.count_nonzero(valid))
    bitmap = _bitmap(valid) if nulls else None
    return pa.Array.from_buffers(
        pa.string(), len(items), [bitmap, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))], nulls
    )


def names(codes: npt.NDArray[np.integer], words: Sequence[str], valid: Bools | None = None) -> pa.DictionaryArray:
    """Dictionary strings: ``words[codes]``; null where ``valid`` is false or the code is negative.

    Words that no row uses are dropped and the rest sorted, so the same rows give the same array whatever the order
    their words came in.
    """
    known = codes >= 0 if valid is None else (codes >= 0) & valid
    used = np.unique(codes[known])
    merged = sorted({words[i] for i in used.tolist()})
    place = {word: i for i, word in enumerate(merged)}
    table = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int32)
    for code in used.tolist():
        table[code] = place[words[code]]
    indices = table[np.where(known, codes, 0)] if len(used) else np.zeros(len(codes), np.int32)
    return pa.DictionaryArray.from_arrays(from_numpy(indices.astype(np.int32), known), strings(merged))


def constant(word: str | None, rows: int) -> pa.DictionaryArray:
    """Dictionary strings that all read ``word``; ``None``: all null."""
    return names(np.full(rows, -1 if word is None else 0, np.int32), () if word is None else (word,))


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous array of a column."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def validity(column: pa.Array | pa.ChunkedArray) -> Bools:
    """True where the element is not null."""
    array = flat(column)
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return unpack(array.buffers()[0], array.offset, len(array))


def unpack(buffer: pa.Buffer, offset: int, rows: int) -> Bools:
    """Bits ``offset`` … ``offset + rows`` of a packed boolean buffer."""
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little", count=offset + rows)
    return bits[offset:].view(np.bool_)


def to_numpy(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.generic]:
    """The values of a fixed-width column, without a copy where it is one chunk; under a null stands anything."""
    array = flat(column)
    if pa.types.is_boolean(array.type):
        return bools(array)
    dtype = np.dtype(array.type.to_pandas_dtype())
    if len(array) == 0 or array.buffers()[1] is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def bools(column: pa.Array | pa.ChunkedArray) -> Bools:
    """A boolean column; under a null stands false."""
    array = flat(column)
    if len(array) == 0 or array.buffers()[1] is None:
        return np.zeros(len(array), np.bool_)
    values = unpack(array.buffers()[1], array.offset, len(array))
    return values & validity(array) if array.null_count else values


def ints(column: pa.Array | pa.ChunkedArray, default: int = 0) -> Ints:
    """An int64 column with nulls filled."""
    values = to_numpy(column).astype(np.int64, copy=False)
    if flat(column).null_count == 0:
        return values
    return np.where(validity(column), values, default)
