"""Databases to read: any page size, reserved bytes, any values, rows deleted and rewritten, columns added later."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Value = int | float | str | bytes | None


@dataclass
class Recipe:
    """A table ``t`` and what happens to it.

    :param declared: a type, with constraints, per column ``c0``, ``c1``, ….
    :param added: the same for columns added afterwards, each with its own rows inserted after it.
    """

    declared: Sequence[str]
    rows: Sequence[Sequence[Value]]
    page_size: int = 4096
    reserved: int = 0
    rowids: Sequence[int] | None = None
    delete_every: int = 0
    rewrite_every: int = 0
    added: Sequence[tuple[str, Sequence[Sequence[Value]]]] = field(default_factory=tuple)
    after: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return [f"c{i}" for i in range(len(self.declared) + len(self.added))]


@functools.cache
def empty(page_size: int, reserved: int) -> bytes:
    """A database of one page, with bytes at the end of each page that SQLite leaves alone."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA page_size={page_size}")
    connection.execute("CREATE TABLE gone(x)")
    connection.execute("DROP TABLE gone")
    connection.commit()
    connection.execute("VACUUM")
    data = bytearray(connection.serialize())
    connection.close()
    data[20] = reserved
    content = page_size - reserved
    data[105:107] = (content % 65536).to_bytes(2, "big")
    return bytes(data)


def make(path: Path, recipe: Recipe) -> Path:
    """Write the table."""
    path.write_bytes(empty(recipe.page_size, recipe.reserved))
    connection = sqlite3.connect(path, isolation_level=None)
    run = connection.execute
    run("PRAGMA journal_mode=OFF")
    run("PRAGMA synchronous=OFF")
    run("BEGIN")
    run(f"CREATE TABLE t({', '.join(f'c{i} {d}' for i, d in enumerate(recipe.declared))})")
    width = len(recipe.declared)
    _insert(connection, width, recipe.rows, recipe.rowids)
    if recipe.rewrite_every:
        free = next((i for i, d in enumerate(recipe.declared) if "KEY" not in d), 0)
        run(f"UPDATE OR IGNORE t SET c{free} = NULL WHERE rowid % {recipe.rewrite_every} = 1")
    if recipe.delete_every:
        run(f"DELETE FROM t WHERE rowid % {recipe.delete_every} = 0")
    for i, (declared, rows) in enumerate(recipe.added):
        run(f"ALTER TABLE t ADD COLUMN c{width + i} {declared}")
        _insert(connection, width + i + 1, rows, None)
    run("COMMIT")
    for statement in recipe.after:
        run(statement)
    connection.close()
    return path


def _insert(connection: sqlite3.Connection, width: int, rows: Sequence[Any], rowids: Sequence[int] | None) -> None:
    names = ", ".join(f"c{i}" for i in range(width))
    marks = ", ".join("?" * width)
    if rowids is None:
        connection.executemany(f"INSERT OR IGNORE INTO t({names}) VALUES({marks})", rows)
    else:
        keyed = ((key, *row) for key, row in zip(rowids, rows, strict=False))
        connection.executemany(f"INSERT OR IGNORE INTO t(rowid, {names}) VALUES(?, {marks})", keyed)


def raw_text(path: Path, statement: str) -> None:
    """Run one statement more, for values Python's binding cannot write: ``CAST(x'ff' AS TEXT)``."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
