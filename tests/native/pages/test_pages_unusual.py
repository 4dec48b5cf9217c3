"""What the decoder leaves to SQLite: the rows or the refusal are SQLite's, and the report says so."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.native import library
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.bulk_pages import WORDS, PageReader
from nvprof_tools.sources.guarded_sqlite import open_guarded
from tests.native.pages.decoder import ROOT, decoder, opened, rows_of, stored_rows
from tests.native.pages.tables import Recipe, make

ROWS = [(1, "a"), (2, None), (70_000, "b" * 2000)]

UNUSUAL: dict[str, tuple[str, list[str]]] = {
    "no rowid": ("", ["CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT) WITHOUT ROWID"]),
    "an index": ("", ["CREATE TABLE t(a INTEGER, b TEXT)", "CREATE INDEX i ON t(a)"]),
    "a unique column": ("", ["CREATE TABLE t(a INTEGER UNIQUE, b TEXT)"]),
    "a key that is no rowid": ("", ["CREATE TABLE t(a INT PRIMARY KEY, b TEXT)"]),
    "a key of two columns": ("", ["CREATE TABLE t(a INTEGER, b TEXT, PRIMARY KEY (a, b))"]),
    "a key the other way": ("", ["CREATE TABLE t(a INTEGER PRIMARY KEY DESC, b TEXT)"]),
    "a check": ("", ["CREATE TABLE t(a INTEGER CHECK (a > 0), b TEXT)"]),
    "a generated column": ("", ["CREATE TABLE t(a INTEGER, b TEXT, c AS (a + 1))"]),
    "a stored generated column": ("", ["CREATE TABLE t(a INTEGER, c INTEGER AS (a + 1) STORED, b TEXT)"]),
    "a check behind what looks like a comment": ("", ['CREATE TABLE t(a INTEGER, "--" TEXT CHECK (a > 0), b TEXT)']),
    "a check between comments": ("", ["CREATE TABLE t(a INTEGER, /* no -- */ b TEXT CHECK (a > 0) -- end\n)"]),
    "strict": ("", ["CREATE TABLE t(a INTEGER, b TEXT) STRICT"]),
    "UTF-16": ("PRAGMA encoding='UTF-16le'", ["CREATE TABLE t(a INTEGER, b TEXT)"]),
    "vacuumed by itself": ("PRAGMA auto_vacuum=FULL", ["CREATE TABLE t(a INTEGER, b TEXT)"]),
    "write-ahead mode": ("PRAGMA journal_mode=WAL", ["CREATE TABLE t(a INTEGER, b TEXT)"]),
}
LATER: dict[str, list[str]] = {
    "a default older rows lack": ["ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5"],
    "text among integers": ["INSERT INTO t VALUES('soon', 'x')"],
    "a real among integers": ["INSERT INTO t VALUES(1.5, 'x')"],
    "a blob among integers": ["INSERT INTO t VALUES(x'00ff', 'x')"],
    "a blob among texts": ["INSERT INTO t VALUES(1, x'00ff')"],
}
PLAIN: dict[str, list[str]] = {
    "as it is": [],
    "a column of nulls": ["ALTER TABLE t ADD COLUMN c TEXT"],
    "renamed": ["ALTER TABLE t RENAME TO u", "ALTER TABLE u RENAME TO t"],
    "a view of it": ["CREATE VIEW v AS SELECT * FROM t"],
    "a trigger on it": ["CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END"],
    "an index of another": ["CREATE TABLE o(x)", "CREATE INDEX i ON o(x)"],
    "no rows": ["DELETE FROM t"],
    "other types of the same kind": [
        "CREATE TABLE n(a BIGINT, b NVARCHAR(7))",
        "DROP TABLE t",
        "ALTER TABLE n RENAME TO t",
    ],
    "a key": [
        "CREATE TABLE n(b TEXT, a INTEGER PRIMARY KEY AUTOINCREMENT)",
        "INSERT INTO n(a, b) SELECT a, b FROM t",
        "DROP TABLE t",
        "ALTER TABLE n RENAME TO t",
    ],
    "words of a constraint in comments, as nsys writes them": [
        "CREATE TABLE n(\n a INTEGER NOT NULL, -- Unique grid ID, generated as a check\n b TEXT /* UNIQUE -- */\n)",
        "INSERT INTO n(a, b) SELECT a, b FROM t",
        "DROP TABLE t",
        "ALTER TABLE n RENAME TO t",
    ],
    "a quoted name": ['CREATE TABLE "T x""y"(a INTEGER, b TEXT)'],
}


def written(path: Path, first: str, tables: list[str], later: list[str]) -> Path:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    if first:
        connection.execute(first)
    for statement in tables:
        connection.execute(statement)
    connection.executemany("INSERT INTO t(a, b) VALUES(?, ?)", ROWS)
    for statement in later:
        connection.execute(statement)
    connection.close()
    return path


def both(path: Path) -> tuple[object, object, PageReader]:
    """Rows or slug from the page reader, and from the reader behind it alone."""
    found: list[object] = []
    with opened(path) as reader, open_guarded(path, DEFAULT_LIMITS) as database:
        for one in (reader, AdbcReader(database)):
            try:
                found.append(rows_of(one.read_columns("t", ["b", "a"], [pa.string(), pa.int64()])))
            except SourceError as error:
                found.append(error.slug)
    return found[0], found[1], reader


@pytest.mark.parametrize("name", [*UNUSUAL, *LATER])
def test_the_slow_way(name: str, tmp_path: Path) -> None:
    first, tables = UNUSUAL.get(name, ("", ["CREATE TABLE t(a INTEGER, b TEXT)"]))
    mine, theirs, reader = both(written(tmp_path / "t.sqlite", first, tables, LATER.get(name, [])))
    assert mine == theirs
    if name in UNUSUAL:
        assert mine == [(b if b is None else b.encode(), a) for a, b in ROWS]
    (item,) = reader.quality
    assert item.slug == "table-read-slowly"
    assert "table t" in item.message


@pytest.mark.parametrize("name", PLAIN)
def test_the_fast_way(name: str, tmp_path: Path) -> None:
    mine, theirs, reader = both(written(tmp_path / "t.sqlite", "", ["CREATE TABLE t(a INTEGER, b TEXT)"], PLAIN[name]))
    assert mine == theirs
    assert reader.quality == []


def test_a_schema_that_swaps_two_names(tmp_path: Path) -> None:
    """Rows of the schema table whose name is not the one in their statement: SQLite goes by the statement."""
    path = written(
        tmp_path / "t.sqlite", "", ["CREATE TABLE t(a INTEGER, b TEXT)", "CREATE TABLE u(a INTEGER, b TEXT)"], []
    )
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO u VALUES(9, 'other')")
    connection.execute("PRAGMA writable_schema=ON")
    for old, new in (("t", "x"), ("u", "t"), ("x", "u")):
        connection.execute("UPDATE sqlite_master SET name = ?, tbl_name = ? WHERE name = ?", (new, new, old))
    connection.commit()
    connection.close()
    try:
        mine, theirs, _ = both(path)
    except SourceError as error:  # newer versions of SQLite see it when they read the schema
        assert error.slug == "database-corrupt"
    else:
        assert mine == theirs


def test_the_limit_of_rows_holds(tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER", "TEXT"], ROWS))
    for most, slug in ((3, None), (2, "limit-rows")):
        with opened(path, limits=replace(DEFAULT_LIMITS, table_rows=most)) as reader:
            try:
                found = reader.read_columns("t", ["c0", "c1"], [pa.int64(), pa.string()])
            except SourceError as error:
                assert error.slug == slug
            else:
                assert slug is None
                assert found.num_rows == 3


def test_too_many_words_are_no_dictionary(tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite", Recipe(["TEXT"], [(f"w{i}",) for i in range(100)]))
    for most, fast in ((100, True), (99, False)):
        with opened(path, limits=replace(DEFAULT_LIMITS, distinct_strings=most)) as reader:
            got = reader.read_columns("t", ["c0"], [WORDS])
        assert got.schema.types == [WORDS]
        assert rows_of(got) == stored_rows(path, "t", ["c0"])
        assert (reader.quality == []) is fast


def test_a_row_that_costs_nothing_in_the_file(tmp_path: Path) -> None:
    """Rows of nulls take seven bytes there and eight a column in memory: the same cap as without the decoder."""
    columns = 60
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER"] * columns, [(None,) * columns] * 20_000, 4096))
    with opened(path) as reader:
        reader._left = 5_000_000
        assert reader.decode("t", [f"c{i}" for i in range(columns)], [pa.int64()] * columns) == library.REASONS[10]


def test_the_file_shrinks_meanwhile(tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER", "TEXT"], [(i, f"name {i}") for i in range(5000)]))
    with opened(path) as reader:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        found = reader.decode("t", ["c0"], [pa.int64()])
    assert found == library.REASONS[3]


@pytest.mark.parametrize("switch", ["0", "/no/such/library.so", __file__])
def test_without_the_decoder(switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not built, not there, or no library: the same rows, and no word of it in the report."""
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER", "TEXT"], ROWS))
    monkeypatch.setenv(library.SWITCH, switch)
    assert library.native_library() is None
    with open_guarded(path, DEFAULT_LIMITS) as database:
        reader = PageReader(database, AdbcReader(database))
        got = reader.read_columns("t", ["c1", "c0"], [WORDS, pa.int64()])
    assert rows_of(got) == stored_rows(path, "t", ["c1", "c0"])
    assert reader.quality == []


def test_a_library_of_another_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder()
    monkeypatch.setattr(library, "ABI", 99)
    copied = shutil.copy(decoder(), tmp_path / "other.so")
    monkeypatch.setenv(library.SWITCH, str(copied))
    assert library.native_library() is None


def test_the_install_goes_on_without_a_compiler(tmp_path: Path) -> None:
    """``setup.py`` builds what it can: here nothing, and that is no failure."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copytree(
        ROOT / "nvprof_tools" / "native", tmp_path / "nvprof_tools" / "native", ignore=lambda *_: {library.NAME}
    )
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "built"],
        cwd=tmp_path,
        env={"PATH": "/nonexistent", "CC": "no-compiler", "CXX": "no-compiler", "NVTX_INCLUDE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*.so")) == []
    (note,) = (tmp_path / "built").rglob("*.json")
    assert '"libnvprof_native.so": "not built' in note.read_text()
