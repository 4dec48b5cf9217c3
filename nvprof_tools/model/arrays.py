"""Numpy to Arrow and back without a copy where none is needed, and without loading pandas.

``pyarrow.array`` looks whether its argument is a pandas object and imports pandas for that, which alone costs more
than reading a typical capture. These few helpers build and open arrays from buffers instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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


def canonical(codes: npt.NDArray[np.integer], words: pa.Array) -> pa.DictionaryArray:
    """``words[codes]`` with repeats merged, unused words dropped and the rest sorted; a code below 0 is null.

    The same rows so have the same array whatever order they were read in.
    """
    lowest = int(codes.min(initial=0))
    given = None if lowest >= 0 else codes >= 0
    shifted = codes + 1 if lowest >= -1 else np.maximum(codes, -1) + 1  # a null is 0
    used = np.flatnonzero(np.bincount(shifted, minlength=len(words) + 1)[1:])
    merged = words.take(from_numpy(used)).dictionary_encode()
    order = to_numpy(pc.sort_indices(merged.dictionary)).astype(np.int64)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    table = np.zeros(len(words) + 1, np.int32)
    table[used + 1] = rank[to_numpy(merged.indices)] if len(used) else 0
    return pa.DictionaryArray.from_arrays(from_numpy(table[shifted], given), merged.dictionary.take(from_numpy(order)))


def names(codes: npt.NDArray[np.integer], words: Sequence[str], valid: Bools | None = None) -> pa.DictionaryArray:
    """:func:`canonical` over Python words; null where ``valid`` is false or the code is negative."""
    known = codes if valid is None else np.where(valid, codes, -1)
    return canonical(known, strings(words))


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
    # A buffer may be longer than its values, by any number of bytes.
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * dtype.itemsize)


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
