"""Files that are no sound database, or not safe to open; and the promise that an input is never touched."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.guarded_sqlite import open_guarded
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export
from tests.unit.timeline.test_normalise import scenario


def slug_of(path: Path, **limits: float) -> str:
    with pytest.raises(SourceError) as caught:
        load_trace(path, replace(DEFAULT_LIMITS, **limits))  # type: ignore[arg-type]
    assert caught.value.hint and "\n" not in caught.value.message
    return caught.value.slug


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return scenario("2025.3").write(tmp_path / "trace.sqlite")


def patched(path: Path, at: int, data: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(bytes(content))
    return path


@pytest.mark.parametrize(
    ("at", "data", "slug"),
    [
        (0, b"SQLite format 4\0", "not-a-trace"),
        (16, b"\x00\x00", "database-corrupt"),
        (16, b"\x00\x03", "database-corrupt"),
        (16, b"\x02\x00", "database-corrupt"),
        (21, b"\x00\x00\x00", "database-corrupt"),
        (28, b"\x00\xff\xff\xff", "database-truncated"),
        (28, b"\x00\x00\x00\x01", "database-corrupt"),
        (56, b"\x00\x00\x00\x09", "database-corrupt"),
        (44, b"\x00\x00\x00\x63", "database-corrupt"),
    ],
)
def test_header(at: int, data: bytes, slug: str, path: Path) -> None:
    assert slug_of(patched(path, at, data)) == slug


@pytest.mark.parametrize("keep", [17, 99, 100, 512, 4096, 0.3, 0.5, 0.9, 0.999])
def test_truncated(keep: float, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(keep if keep > 1 else keep * len(data))])
    assert slug_of(path) in {"database-truncated", "database-corrupt"}


def test_empty_and_trailing(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert slug_of(path) == "database-corrupt"
    path.write_bytes(b"")
    assert slug_of(path) == "not-a-trace"


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_an_unfinished_write_beside_it(suffix: str, path: Path, tmp_path: Path) -> None:
    beside = Path(f"{path}{suffix}")
    beside.write_bytes(b"")
    load_trace(path)
    beside.write_bytes(b"x")
    assert slug_of(path) == "database-unsafe"
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.symlink_to(path)
    assert slug_of(link) == "database-unsafe"


def test_a_real_write_ahead_log_is_not_replayed(path: Path, tmp_path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("DELETE FROM OSRT_API")
    database.commit()
    copied = tmp_path / "copy.sqlite"
    shutil.copy(path, copied)
    shutil.copy(f"{path}-wal", f"{copied}-wal")
    database.close()
    before = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in tmp_path.iterdir() if p.is_file()}
    assert slug_of(copied) == "database-unsafe"
    assert {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in tmp_path.iterdir() if p.is_file()} == before
    load_trace(path)  # closed properly: the log is gone, the flag in the header is no harm


def test_an_input_is_never_touched(path: Path, tmp_path: Path) -> None:
    """Not its bytes, not its times, no lock file, no journal; a read-only file in a read-only folder is fine."""
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        before = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, sorted(tmp_path.iterdir()))
        trace = load_trace(path)
        after = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, sorted(tmp_path.iterdir()))
    finally:
        tmp_path.chmod(0o755)
    assert before == after
    assert trace.source.sha256 == before[0]


@pytest.mark.parametrize(
    "name", ["a?b#c%20d.sqlite", "with space & é.sqlite", "new\nline.sqlite", "-dash.sqlite", "a;b'c\".sqlite"]
)
def test_names_of_files(name: str, path: Path, tmp_path: Path) -> None:
    other = tmp_path / name
    path.rename(other)
    assert load_trace(other)["kernels"].num_rows == 1


def test_a_utf16_database(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    plain = scenario("2025.3").write(tmp_path / "plain.sqlite")
    database = sqlite3.connect(path)
    database.execute("PRAGMA encoding='UTF-16le'")
    database.executescript("\n".join(sqlite3.connect(plain).iterdump()))
    database.close()
    assert load_trace(path).tables == load_trace(plain).tables


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert slug_of(tmp_path / "pipe") == "not-a-trace"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert slug_of(tmp_path / "dangling") == "file-missing"
    with pytest.raises(SourceError) as caught:
        open_guarded(tmp_path / "pipe", DEFAULT_LIMITS)
    assert caught.value.slug == "not-a-file"


def test_limits(path: Path) -> None:
    assert slug_of(path, file_bytes=1000) == "limit-file"
    assert slug_of(path, table_rows=2) == "limit-rows"
    assert slug_of(path, tables=3) == "limit-tables"
    with open_guarded(path, replace(DEFAULT_LIMITS, read_seconds=-1)) as database:
        with pytest.raises(SourceError) as caught:
            AdbcReader(database).read_columns("OSRT_API", ["start"], [pa.int64()])
        assert caught.value.slug == "limit-time"


def test_a_file_that_is_replaced_between_check_and_read(path: Path, tmp_path: Path) -> None:
    other = Export()
    other.kernel(1, 2, "smuggled in")
    with open_guarded(path, DEFAULT_LIMITS) as database:
        other.write(tmp_path / "other.sqlite").replace(path)
        with pytest.raises(SourceError) as caught:
            AdbcReader(database).read_columns("OSRT_API", ["start"], [pa.int64()])
    assert caught.value.slug == "file-changed"


def test_repeated_string_ids(tmp_path: Path) -> None:
    """The same text twice is a notice; another text is data loss, and the first counts. Rows never multiply."""
    for text, severity in (("ntt", "notice"), ("other", "data-loss")):
        path = scenario("2025.3").write(tmp_path / f"{text}.sqlite")
        database = sqlite3.connect(path)
        database.execute("INSERT INTO StringIds SELECT id, ? FROM StringIds WHERE value = 'ntt'", (text,))
        database.commit()
        database.close()
        trace = load_trace(path)
        assert trace["kernels"]["name"].to_pylist() == ["ntt"]
        assert [(i.severity, i.count) for i in trace.quality if i.slug == "string-ids-repeated"] == [(severity, 1)]
