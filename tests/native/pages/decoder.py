"""The page decoder for tests: the built one where it is current, else one built from the sources once a session."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.arrays import flat
from nvprof_tools.native import library
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.bulk_pages import PageReader
from nvprof_tools.sources.guarded_sqlite import open_guarded

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "nvprof_tools" / "native" / "pages"


@functools.cache
def builder() -> ModuleType:
    """``tools/build_native.py``."""
    spec = importlib.util.spec_from_file_location("build_native", ROOT / "tools" / "build_native.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def folder() -> Path:
    """Where this session builds; removed at its end."""
    made = Path(tempfile.mkdtemp(prefix="page-decoder-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@functools.cache
def decoder() -> Path:
    """The library; without a compiler the test is skipped."""
    built = Path(library.__file__).with_name(library.NAME)
    sources = [path for path in SOURCES.parent.rglob("*") if path.suffix in {".cpp", ".h"}]
    if built.exists() and built.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return built
    fresh: Path | None = builder().build(folder())
    if fresh is None:
        pytest.skip("no C++ compiler")
    return fresh


@functools.cache
def sanitized(driver: Path, sanitizer: str, sources: tuple[Path, ...], optimised: str) -> Path:
    """A C++ driver together with sources of the library, built once a session; without a compiler or its sanitizer the
    test is skipped."""
    compiler = builder().compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    target = folder() / f"{driver.parent.name}-{sanitizer.partition(',')[0]}"
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", optimised, "-g1", "-fno-omit-frame-pointer"]
    include = SOURCES.parent / driver.parent.name
    done = subprocess.run(
        [compiler, *builder().FLAGS, *flags, f"-I{include}", "-x", "c++", "-", "-o", str(target)],
        input="".join(f'#include "{source}"\n' for source in (*sources, driver)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no such sanitizer")
    assert done.returncode == 0, done.stderr
    return target


@contextmanager
def opened(path: Path, threads: int = 2, limits: Limits = DEFAULT_LIMITS) -> Iterator[PageReader]:
    """A reader of ``path`` that has the decoder."""
    before = os.environ.get(library.SWITCH)
    os.environ[library.SWITCH] = str(decoder())
    try:
        database = open_guarded(path, limits)
        try:
            yield PageReader(database, AdbcReader(database), threads)
        finally:
            database.close()
    finally:
        if before is None:
            del os.environ[library.SWITCH]
        else:
            os.environ[library.SWITCH] = before


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of a table, texts as bytes."""
    return list(zip(*(_values(flat(column)) for column in table.columns), strict=True))


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary.take(column.indices)
    return list((column.view(pa.binary()) if column.type == pa.string() else column).to_pylist())


def stored_rows(path: Path, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]] | None:
    """What SQLite says the rows are, texts as bytes; None where its structure check fails."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = bytes
    try:
        connection.execute("PRAGMA cell_size_check=ON")
        name = '"' + table.replace('"', '""') + '"'
        if connection.execute(f"PRAGMA quick_check({name})").fetchone() != (b"ok",):
            return None
        chosen = ", ".join(f'"{c}"' for c in columns)
        return connection.execute(f"SELECT {chosen} FROM {name} NOT INDEXED").fetchall()
    except sqlite3.DatabaseError:
        return None
    finally:
        connection.close()
