"""Exports that are columnar already: what Parquet and Arrow files share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB, Limits
from nvprof_tools.model.arrays import flat, from_numpy, to_numpy, validity
from nvprof_tools.sources.base import EXPORT_AGAIN

SPARE_BYTES, BYTES_A_FILE_BYTE = 64 * MIB, 200
"""What a table may grow to in memory: columns that repeat compress very well, but not without end."""


class Budget:
    """What one table may still take."""

    def __init__(self, table: str, file_bytes: int, limits: Limits) -> None:
        self.table = table
        self.rows_left = limits.table_rows
        self.bytes_left = SPARE_BYTES + BYTES_A_FILE_BYTE * file_bytes

    def checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, found sound and counted. Nothing else may touch it before: damaged ones can crash the process.

        :raises SourceError: too many rows or bytes.
        :raises pa.ArrowInvalid: it is damaged.
        """
        batch.validate(full=True)
        self.rows_left -= batch.num_rows
        self.bytes_left -= batch.nbytes
        if self.rows_left < 0:
            raise SourceError("limit-rows", f"table {self.table} has more rows than allowed", EXPORT_AGAIN)
        self.announce(0)
        return batch

    def announce(self, size: int) -> None:
        """What the file says is to come, before room is made for it.

        :raises SourceError: more than is left.
        """
        if size > self.bytes_left:
            raise SourceError(
                "limit-memory", f"table {self.table} needs more memory than its file may ask for", EXPORT_AGAIN
            )


def unpacked_bytes(file: Any) -> int:
    """What a Parquet file's own account says it takes, before decoding dictionaries. Of whole row groups: asking for
    one column's share of a damaged account can end the process."""
    account = file.metadata
    return sum(account.row_group(i).total_byte_size for i in range(account.num_row_groups))


@contextmanager
def translated(table: str) -> Iterator[None]:
    """Every way a columnar file can fail becomes one SourceError."""
    try:
        yield
    except SourceError:
        raise
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise SourceError("limit-memory", f"table {table} needs more memory than there is", EXPORT_AGAIN) from error
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, TypeError, EOFError) as error:
        raise SourceError(
            "table-corrupt", f"table {table} cannot be read: its file is damaged", EXPORT_AGAIN
        ) from error


def as_wanted(table: str, name: str, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """A column as ``int64`` or ``string``: widened, or an unsigned one with its bits kept as SQLite would.

    :raises SourceError: values of another kind.
    """
    kind = column.type
    if kind == wanted:
        return column
    array = flat(column)
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(array), wanted)])
    if pa.types.is_dictionary(kind):
        return as_wanted(table, name, pa.chunked_array([array.cast(kind.value_type)]), wanted)
    if wanted == pa.int64() and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        values = to_numpy(array)
        bits = values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
        return pa.chunked_array([from_numpy(bits, validity(array))])
    if wanted == pa.string() and (pa.types.is_large_string(kind) or pa.types.is_binary(kind)):
        return pa.chunked_array([pc.cast(array, wanted, safe=False)])
    message = f"table {table} stores values of another type in column {name}"
    raise SourceError("column-storage-type", message, EXPORT_AGAIN)


def picked(table: str, read: pa.Table, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
    """Columns of a table that was read, as wanted."""
    got = [as_wanted(table, c, read.column(c), t) for c, t in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(got, names=list(columns))


def begins_with(path: Path, magic: bytes) -> bool:
    """Whether a regular file begins so."""
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def table_files(directory: Path, suffix: str, limits: Limits) -> dict[str, Path]:
    """Table name → file, by the names a directory export gives them.

    :raises SourceError: too many files, or too large ones.
    """
    found = {p.name[: -len(suffix)]: p for p in sorted(directory.iterdir()) if p.name.endswith(suffix) and p.is_file()}
    if len(found) > limits.tables:
        raise SourceError("limit-tables", f"the directory has more than {limits.tables:,} tables", EXPORT_AGAIN)
    if sum(p.stat().st_size for p in found.values()) > limits.file_bytes:
        raise SourceError("limit-file", "the directory's files are larger than allowed", EXPORT_AGAIN)
    return found
