"""What a source gives: typed tables as the file has them, read one at a time, unaltered."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.arrays import Ints, flat, from_numpy, ints, strings
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources import nsys_schema

MOST_WORKERS = 4
MOST_METADATA_ROWS = 1_000_000
"""Tables that are no event tables are small; one that is not is damage."""
EXPORT_AGAIN = "export the report again with a current nsys"

ARROW_TYPES = {"int": pa.int64(), "text": pa.string()}


class TableReader(Protocol):
    """The narrow seam a bulk reader stands behind."""

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Table name → its column names, of real tables only."""

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """These columns, in this order, with exactly these types (``int64`` or ``string``, nullable).

        :raises SourceError: a value of another type, damage, or a limit.
        """

    def close(self) -> None:
        """Give back what is held."""


class RawTables:
    """An nsys export of any form. Close it, or use it as a context manager."""

    def __init__(
        self,
        kind: str,
        reader: TableReader,
        names: Mapping[str, str],
        digest: Callable[[], str],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """:param names: canonical table name → the name in the file.
        :param digest: gives the input's SHA-256 when asked.
        """
        self.kind = kind
        self.limits = limits
        self.reader = reader
        self.names = names
        self.quality: list[QualityItem] = []
        self._digest = digest
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: list[str] = []
        self._coming: dict[str, Future[pa.Table | None]] = {}
        self._coming_digest: Future[str] | None = None
        self._strings: pa.Table | None = None

    def __enter__(self) -> RawTables:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading ahead and give the file back."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self.reader.close()

    def read_ahead(self, tables: Sequence[str]) -> None:
        """Read these tables in the background, in this order, as many at once as there are processors (four at most).

        Nothing else changes: :meth:`read` hands them out, and raises what reading them raised. Where memory is capped,
        each table is read when it is asked for.
        """
        if self.limits.memory_bytes is not None:
            return
        workers = max(1, min(MOST_WORKERS, os.cpu_count() or 1))
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="read-ahead")
        self._waiting = [t for t in tables if t in self.names]
        for _ in range(workers + 1):
            self._next()
        self._coming_digest = self._pool.submit(self._digest)

    def _next(self) -> None:
        if self._pool is not None and self._waiting:
            table = self._waiting.pop(0)
            self._coming[table] = self._pool.submit(self._read, table)

    def stands_for(self, kind: str, digest: Callable[[], str]) -> None:
        """These tables were made from another file, and that is the input."""
        self.kind, self._digest = kind, digest

    def sha256(self) -> str:
        """The input's content digest."""
        return self._digest() if self._coming_digest is None else self._coming_digest.result()

    def has(self, table: str) -> bool:
        """Whether the file has the table, under whatever suffix."""
        return table in self.names

    def read(self, table: str) -> pa.Table | None:
        """The wanted columns of a canonical table under canonical names, absent ones all null.

        None where the table is absent, or lacks a column its rows mean nothing without (a quality item says so).
        """
        coming = self._coming.pop(table, None)
        self._next()
        return self._read(table) if coming is None else coming.result()

    def _read(self, table: str) -> pa.Table | None:
        if table not in self.names:
            return None
        actual = self.names[table]
        present = set(self.reader.columns[actual])
        wanted = nsys_schema.TABLES[table]
        picked = {w.name: next((n for n in (w.name, *w.aliases) if n in present), None) for w in wanted}
        lacking = [w.name for w in wanted if w.required and picked[w.name] is None]
        if lacking:
            self.quality.append(
                QualityItem(
                    "table-unusable",
                    Severity.DATA_LOSS,
                    1,
                    f"table {table} has no column {', '.join(lacking)} and was left out",
                    EXPORT_AGAIN,
                )
            )
            return None
        have = [(w, name) for w in wanted if (name := picked[w.name]) is not None]
        read = self.reader.read_columns(actual, [n for _, n in have], [ARROW_TYPES[w.kind] for w, _ in have])
        if table not in nsys_schema.EVENT_TABLES and table != "StringIds" and read.num_rows > MOST_METADATA_ROWS:
            message = f"table {table} has {read.num_rows:,} rows, more than any export has"
            raise SourceError("limit-rows", message, EXPORT_AGAIN)
        got = {w.name: self._sound(table, read.column(i)) for i, (w, _) in enumerate(have)}
        return pa.Table.from_arrays(
            [got[w.name] if w.name in got else pa.nulls(read.num_rows, ARROW_TYPES[w.kind]) for w in wanted],
            names=[w.name for w in wanted],
        )

    def _sound(self, table: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Text as valid UTF-8: what is not is replaced, and counted."""
        if column.type != pa.string():
            return column
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > self.limits.string_bytes:
            message = (
                f"a text of table {table} has {longest:,} bytes, more than the {self.limits.string_bytes:,} allowed"
            )
            raise SourceError("limit-string", message, EXPORT_AGAIN)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            repaired, wrong = repair_text(flat(column))
            self.quality.append(
                QualityItem(
                    "text-not-utf8", Severity.INFO, wrong, f"{wrong:,} texts of table {table} are not valid UTF-8"
                )
            )
            return pa.chunked_array([repaired])
        return column

    @property
    def strings(self) -> pa.Table:
        """StringIds, each id once: ``id`` int64 ascending, ``value`` string."""
        if self._strings is None:
            self._strings = self._read_strings()
        return self._strings

    def _read_strings(self) -> pa.Table:
        table = self.read("StringIds")
        if table is None:
            return pa.Table.from_arrays([pa.nulls(0, pa.int64()), strings([])], names=["id", "value"])
        if table.num_rows > self.limits.distinct_strings:
            message = (
                f"the export has {table.num_rows:,} strings, more than the {self.limits.distinct_strings:,} allowed"
            )
            raise SourceError("limit-strings", message, EXPORT_AGAIN)
        ids = ints(table["id"])
        order = np.argsort(ids, kind="stable")
        again = np.zeros(len(ids), np.bool_)
        again[order[1:]] = ids[order[1:]] == ids[order[:-1]]
        if again.any():
            self.quality.append(_repeated(table, order, ids))
        keep = order[~again[order]]
        return table.take(from_numpy(keep))


def _repeated(table: pa.Table, order: Ints, ids: Ints) -> QualityItem:
    """Says how many string ids stand twice. The first value counts; a join over both would multiply rows."""
    texts = flat(table["value"])
    same = ids[order[1:]] == ids[order[:-1]]
    first, second = texts.take(from_numpy(order[:-1][same])), texts.take(from_numpy(order[1:][same]))
    differ = int(pc.sum(pc.not_equal(first, second)).as_py() or 0)
    count = int(np.count_nonzero(same))
    message = (
        f"{count:,} string ids stand more than once; {differ:,} of them with another text, of which the first counts"
    )
    return QualityItem(
        "string-ids-repeated", Severity.DATA_LOSS if differ else Severity.NOTICE, count, message, EXPORT_AGAIN
    )


def repair_text(column: pa.Array) -> tuple[pa.Array, int]:
    """The column with invalid UTF-8 replaced, and how many values that concerned."""
    raw = column.view(pa.binary()).to_pylist()
    texts = [None if value is None else value.decode("utf-8", "replace") for value in raw]
    wrong = sum(t is not None and t.encode("utf-8") != v for t, v in zip(texts, raw, strict=True))
    return strings(texts), wrong


class Source(Protocol):
    """One kind of input."""

    kind: str

    def sniff(self, path: Path) -> bool:
        """Whether the content, never the name alone, is of this kind. Reads a few bytes."""

    def read(self, path: Path, limits: Limits) -> RawTables | Trace:
        """Open it. An export gives raw tables; our own directory gives the trace it was written from."""


__all__ = ["RawTables", "Source", "TableReader", "flat"]
