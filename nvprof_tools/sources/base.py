"""What a source gives: typed tables as the file has them, read one at a time, unaltered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol

import pyarrow as pa

from nvprof_tools.limits import Limits
from nvprof_tools.model.arrays import flat, strings
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import SourceInfo, Trace
from nvprof_tools.sources import nsys_schema

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


@dataclass
class RawTables:
    """An nsys export of any form. Close it, or use it as a context manager.

    :param names: canonical table name → the name in the file.
    """

    source: SourceInfo
    reader: TableReader
    names: Mapping[str, str]
    quality: list[QualityItem] = field(default_factory=list)
    _strings: pa.Table | None = None

    def __enter__(self) -> RawTables:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.reader.close()

    def has(self, table: str) -> bool:
        """Whether the file has the table, under whatever suffix."""
        return table in self.names

    def read(self, table: str) -> pa.Table | None:
        """The wanted columns of a canonical table under canonical names, absent ones all null.

        None where the table is absent, or lacks a column its rows mean nothing without (a quality item says so).
        """
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
                    "export the report again with a current nsys",
                )
            )
            return None
        have = [(w, name) for w in wanted if (name := picked[w.name]) is not None]
        read = self.reader.read_columns(actual, [n for _, n in have], [ARROW_TYPES[w.kind] for w, _ in have])
        got = {w.name: self._sound(table, read.column(i)) for i, (w, _) in enumerate(have)}
        return pa.Table.from_arrays(
            [got[w.name] if w.name in got else pa.nulls(read.num_rows, ARROW_TYPES[w.kind]) for w in wanted],
            names=[w.name for w in wanted],
        )

    def _sound(self, table: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Text as valid UTF-8: what is not is replaced, and counted."""
        if column.type != pa.string():
            return column
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            repaired, wrong = repair_text(flat(column))
            self.quality.append(
                QualityItem("text-not-utf8", Severity.NOTICE, wrong, f"{wrong:,} texts of table {table} are not valid UTF-8")
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
        return table


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
