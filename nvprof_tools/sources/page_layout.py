"""Which tables the page decoder can be given, and how their rows are stored.

The decoder reads tables that are nothing but rows in the order of their keys. What else SQLite may have to look at
before it knows a value, or whether the table is sound (indexes, constraints, generated columns, encodings), makes it a
table that SQLite reads. Facts come through the guarded connection, never from a parse of the schema by ourselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nvprof_tools.native.library import BLOB, INTEGER, NULL, REAL, TEXT
from nvprof_tools.sources.guarded_sqlite import HEADER_BYTES, GuardedDatabase, quoted

_UTF8 = 1
_LEAST_USABLE = 480


@dataclass(frozen=True)
class StoredColumn:
    """One column of a row.

    :param allowed: the storage classes a row of a sound table can hold here.
    :param converted: SQLite hands out another value than the stored one, a float for an integer.
    :param may_lack: a row older than the column reads as null here.
    :param is_rowid: stored as null, read as the row's key.
    """

    name: str
    allowed: int
    converted: bool
    may_lack: bool
    is_rowid: bool


@dataclass(frozen=True)
class PlainTable:
    """A table the decoder can be given: its first page, and its columns in stored order."""

    root: int
    columns: tuple[StoredColumn, ...]


@dataclass(frozen=True)
class Pages:
    """The file's pages: size and reserved bytes of each, and how many."""

    size: int
    reserved: int
    count: int


def pages_of(database: GuardedDatabase) -> Pages | str:
    """The file's pages, or why the decoder cannot be given any table of it."""
    header, head = database.header, os.pread(database.descriptor, HEADER_BYTES, 0)
    if header.wal:
        return "the database was last written in write-ahead mode"
    if header.encoding != _UTF8:
        return "its texts are not stored as UTF-8"
    if int.from_bytes(head[52:56], "big"):
        return "the database moves its pages when rows are deleted"
    if header.page_size - head[20] < _LEAST_USABLE:
        return "its pages are too small"
    return Pages(header.page_size, head[20], header.pages)


def plain_table(database: GuardedDatabase, name: str) -> PlainTable | str:
    """How a table stores its rows, or why the decoder cannot be given it."""
    if database.tables[name].without_rowid:
        return "it has no rowid"
    with database.deadline() as connection:
        rows = connection.execute(
            "SELECT rootpage, sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)
        ).fetchmany(2)
        indexed = connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'index' AND tbl_name = ? COLLATE NOCASE LIMIT 1", (name,)
        ).fetchone()
        facts = connection.execute(f"PRAGMA main.table_xinfo({quoted(name)})").fetchall()
        strict = any(r[1] == name and len(r) > 5 and r[5] for r in connection.execute("PRAGMA main.table_list"))
    if len(rows) != 1 or not isinstance(rows[0][0], int) or not isinstance(rows[0][1], str):
        return "the schema is unusual"
    root, sql = rows[0][0], _without_comments(rows[0][1])
    if not _is_plainly(sql, name) or not facts or strict:
        return "its definition is unusual"
    if indexed is not None:
        return "it has an index"
    if any(fact[6] for fact in facts):
        return "it has generated columns"
    keys = [fact for fact in facts if fact[5]]
    if keys and (len(keys) > 1 or str(keys[0][2]).upper() != "INTEGER" or re.search(r"\bdesc\b", sql, re.IGNORECASE)):
        return "its key is unusual"
    return PlainTable(root, tuple(_column(fact) for fact in facts))


def _without_comments(sql: str) -> str:
    """A definition without its comments, which nsys writes after every column; what is quoted stays as it is."""
    quotes = r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    return re.sub(quotes + r"|--[^\n]*|/\*.*?(?:\*/|\Z)", lambda m: m[1] or " ", sql, flags=re.DOTALL)


def _is_plainly(sql: str, name: str) -> bool:
    """Whether ``sql`` makes this very table and constrains its rows by nothing but NOT NULL and a key."""
    spellings = (name, quoted(name), f"[{name}]", f"`{name}`", f"'{name}'")
    head = re.match(r"CREATE\s+TABLE\s+", sql, re.IGNORECASE)
    if head is None:
        return False
    rest = sql[head.end() :]
    named = any(rest.startswith(s) and rest[len(s) :].lstrip().startswith("(") for s in spellings)
    return named and re.search(r"\b(check|unique|generated|as)\b", sql, re.IGNORECASE) is None


def _column(fact: Sequence[object]) -> StoredColumn:
    _, name, declared, not_null, default, key, _ = fact
    kind = str(declared).upper()
    is_rowid = bool(key)
    allowed = NULL if is_rowid else _allowed(kind)
    default_null = default is None or str(default).upper() == "NULL"
    return StoredColumn(
        name=str(name),
        allowed=allowed & ~NULL if not_null and not is_rowid else allowed,
        converted=_is_real(kind),
        may_lack=is_rowid or (default_null and not not_null),
        is_rowid=is_rowid,
    )


def _is_text(kind: str) -> bool:
    return "INT" not in kind and any(word in kind for word in ("CHAR", "CLOB", "TEXT"))


def _is_real(kind: str) -> bool:
    if "INT" in kind or _is_text(kind) or "BLOB" in kind:
        return False
    return any(word in kind for word in ("REAL", "FLOA", "DOUB"))


def _allowed(kind: str) -> int:
    """What SQLite's structure check lets a column of a declared type hold; where it depends on the value, less."""
    if _is_text(kind):
        return NULL | TEXT | BLOB
    if "INT" not in kind and (not kind or "BLOB" in kind):
        return NULL | INTEGER | REAL | TEXT | BLOB
    return NULL | INTEGER | REAL | BLOB
