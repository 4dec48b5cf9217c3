"""Reads columns of a checked database straight from its pages (docs/adr/0012-page-decoder.md).

The decoder makes every check of a table that SQLite's structure check makes, so a table it accepts needs no other; a
table it cannot be given, or refuses, is checked and read by the reader behind it, and the result is the same.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa

from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.native import library as native
from nvprof_tools.sources.base import TableReader
from nvprof_tools.sources.bulk_adbc import BYTES_A_FILE_BYTE, SPARE_BYTES
from nvprof_tools.sources.guarded_sqlite import GuardedDatabase
from nvprof_tools.sources.page_layout import Pages, PlainTable, pages_of, plain_table

MOST_THREADS = 16
MOST_COLUMNS = 64
"""Wanted of one table."""

WORDS = pa.dictionary(pa.int32(), pa.string())
"""Asked for as a column's type: each distinct text once, in the order of their first rows."""

_WANT = {pa.int64(): native.INT64, pa.string(): native.STRING, WORDS: native.DICTIONARY}
_HOLDS = {
    native.INT64: native.NULL | native.INTEGER,
    native.STRING: native.NULL | native.TEXT,
    native.DICTIONARY: native.NULL | native.TEXT,
}


class PageReader:
    """Whole columns from pages, on all processors; from ``fallback`` where that cannot be.

    ``quality`` tells which tables took the slower way because of what the file is. That the decoder was not built is
    not told: the same file gives the same report everywhere.
    """

    def __init__(self, database: GuardedDatabase, fallback: TableReader, threads: int | None = None) -> None:
        self.database = database
        self.fallback = fallback
        self.columns: Mapping[str, Sequence[str]] = fallback.columns
        self.quality: list[QualityItem] = []
        self.threads = threads or min(MOST_THREADS, _processors())
        self._library = native.native_library()
        self._pages = pages_of(database)
        self._left = SPARE_BYTES + BYTES_A_FILE_BYTE * database.size
        self._lock = threading.Lock()

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`; a text column may also be asked for as :data:`WORDS`."""
        if self._library is not None:
            found = self.decode(table, columns, types)
            if isinstance(found, pa.Table):
                return found
            self.quality.append(
                QualityItem("table-read-slowly", Severity.INFO, 1, f"table {table} was read through SQLite: {found}")
            )
        plain = [pa.string() if t == WORDS else t for t in types]
        read = self.fallback.read_columns(table, columns, plain)
        arrays = [c.dictionary_encode() if t == WORDS else c for c, t in zip(read.columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(columns))

    def decode(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table | str:
        """The columns from the table's pages, or why that cannot be."""
        library = self._library
        if library is None:
            return "the page decoder was not built"
        if isinstance(self._pages, str):
            return self._pages
        if len(columns) > MOST_COLUMNS or len(set(columns)) != len(columns) or any(t not in _WANT for t in types):
            return "the request is unusual"
        layout = plain_table(self.database, table)
        if isinstance(layout, str):
            return layout
        wanted = dict(zip(columns, types, strict=True))
        for column in layout.columns:
            kind = wanted.get(column.name)
            if (column.converted and kind == pa.int64()) or (column.is_rowid and kind not in {None, pa.int64()}):
                return "SQLite converts its values"
        return self._decode(library, self._pages, layout, wanted)

    def _decode(
        self, library: ctypes.CDLL, pages: Pages, layout: PlainTable, wanted: Mapping[str, pa.DataType]
    ) -> pa.Table | str:
        stored = (native.Column * len(layout.columns))()
        for column, into in zip(layout.columns, stored, strict=True):
            want = _WANT[wanted[column.name]] if column.name in wanted else native.SKIP
            into.want, into.may_lack, into.is_rowid = want, column.may_lack, column.is_rowid
            into.allowed = column.allowed & _HOLDS.get(want, column.allowed)
        limits = self.database.limits
        request = native.Request(
            file=self.database.descriptor,
            page_size=pages.size,
            reserved=pages.reserved,
            pages=pages.count,
            root=layout.root,
            columns=len(layout.columns),
            threads=self.threads,
            max_distinct=min(limits.distinct_strings, 2**31 - 1),
            max_rows=limits.table_rows,
            max_bytes=max(self._left, 0),
            max_record=min(limits.string_bytes, self.database.size, 2**31 - 1),
            column=stored,
        )
        order = [c.name for c in layout.columns if c.name in wanted]
        vectors = (native.Vector * len(order))()
        rows = ctypes.c_uint64()
        reason = library.nvp_pages_read(ctypes.byref(request), vectors, ctypes.byref(rows))
        if reason == native.NO_MEMORY and limits.memory_bytes is not None:
            raise MemoryError
        if reason:
            return native.REASONS.get(reason, "unknown")
        arrays = {
            name: _array(library, wanted[name], rows.value, vector) for name, vector in zip(order, vectors, strict=True)
        }
        with self._lock:
            self._left -= sum(a.nbytes for a in arrays.values())
        return pa.Table.from_arrays([arrays[name] for name in wanted], names=list(wanted))

    def close(self) -> None:
        """Close the reader behind it and the database. No thread may be reading; columns that were read stay valid."""
        self.fallback.close()


class _Held:
    """A block of the library's memory, given back when the last column over it is gone."""

    def __init__(self, library: ctypes.CDLL, block: native.Block) -> None:
        self._free, self._address, self._bytes = library.nvp_pages_free, block.data, block.bytes

    def __del__(self) -> None:
        self._free(self._address, self._bytes)


def _buffer(library: ctypes.CDLL, block: native.Block) -> pa.Buffer | None:
    if not block.data:
        return None
    return pa.foreign_buffer(block.data, block.bytes, base=_Held(library, block))


def _array(library: ctypes.CDLL, kind: pa.DataType, rows: int, vector: native.Vector) -> pa.Array:
    none = pa.py_buffer(b"")
    validity, values = _buffer(library, vector.validity), _buffer(library, vector.values) or none
    if kind == pa.int64():
        return pa.Array.from_buffers(kind, rows, [validity, values], vector.nulls)
    offsets = _buffer(library, vector.offsets) or none
    if kind == pa.string():
        return pa.Array.from_buffers(kind, rows, [validity, offsets, values], vector.nulls)
    words = pa.Array.from_buffers(
        pa.string(), vector.distinct, [None, offsets, _buffer(library, vector.words) or none], 0
    )
    codes = pa.Array.from_buffers(pa.int32(), rows, [validity, values], vector.nulls)
    return pa.DictionaryArray.from_arrays(codes, words, safe=False)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
