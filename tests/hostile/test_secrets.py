"""Canaries wherever a capture keeps what is nobody's business: none comes out of any command."""

from __future__ import annotations

import json
import lzma
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from nvprof_tools.cli.main import run
from tests.fixture_files import fixture_log, fixture_trace

SECRETS = tuple(
    f"canary-{word}-5e1f"
    for word in (
        "environment",
        "token",
        "host",
        "user",
        "command",
        "argument",
        "path",
        "directory",
        "log",
        "note",
        "gpuhost",
    )
)
TABLES = {
    "TARGET_INFO_SYSTEM_ENV": "(globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT)",
    "EnvironmentVariables": "(name TEXT, value TEXT)",
    "META_DATA_CAPTURE": "(name TEXT, value TEXT)",
    "META_DATA_EXPORT": "(name TEXT, value TEXT)",
    "TARGET_INFO_SESSION_START_TIME": None,
    "ANALYSIS_FILE": "(id INTEGER, filename TEXT, content TEXT, globalPid INTEGER)",
    "UNKNOWN_TABLE": "(name TEXT, value TEXT)",
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded trace with canaries in its environment, host, user, command line, paths, streams and strings."""
    path = tmp_path_factory.mktemp("secrets") / "trace.sqlite"
    path.write_bytes(fixture_trace("sim_w2").read_bytes())
    database = sqlite3.connect(path)
    present = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for name, columns in TABLES.items():
        if name not in present and columns is not None:
            database.execute(f"CREATE TABLE {name} {columns}")
    insert = database.execute
    for name, value in (
        ("Hostname", SECRETS[2]),
        ("UserName", SECRETS[3]),
        ("EnvironmentVariable", f"TOKEN={SECRETS[1]}"),
        ("CommandLine", f"/home/{SECRETS[3]}/prover --key {SECRETS[5]}"),
        ("CAPTURE_COMMAND", SECRETS[4]),
        ("WorkingDirectory", f"/home/{SECRETS[7]}"),
    ):
        for table in ("META_DATA_CAPTURE", "META_DATA_EXPORT", "UNKNOWN_TABLE", "EnvironmentVariables"):
            insert(f"INSERT INTO {table} (name, value) VALUES (?, ?)", (name, value))
        insert("INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES (?, ?)", (name, value))
    insert("INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES ('SECRET', ?)", (SECRETS[0],))
    top = database.execute("SELECT max(id) FROM StringIds").fetchone()[0]
    for number, secret in enumerate(SECRETS, 1):
        insert("INSERT INTO StringIds (id, value) VALUES (?, ?)", (top + number, f"KEY={secret}"))
    insert("CREATE TABLE IF NOT EXISTS ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)")
    insert(
        "INSERT INTO StringIds (id, value) VALUES (?, ?)",
        (top + 90, f"starting on {SECRETS[2]}\npassword {SECRETS[8]}\n"),
    )
    insert("INSERT INTO StringIds (id, value) VALUES (?, ?)", (top + 91, f"/home/{SECRETS[3]}/stdout.log"))
    insert("INSERT INTO ProcessStreams VALUES (0, ?, ?)", (top + 91, top + 90))
    database.commit()
    database.close()
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of that trace, with canaries in the lines between."""
    lines = fixture_log("sim_w2").read_text("utf-8").splitlines()
    for number, secret in enumerate(SECRETS):
        lines.insert(3 * number + 1, f"2026-01-01T00:00:00.000Z INFO {secret}: token={secret} /home/{secret}/x")
    path = tmp_path_factory.mktemp("log") / "app.log"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def texts(path: Path) -> Iterator[bytes]:
    """Every file's bytes, what Parquet holds also unpacked."""
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        yield file.read_bytes()
        if file.suffix == ".parquet":
            yield json.dumps(parquet.read_table(file).to_pydict(), default=str).encode()


def assert_clean(what: bytes | str) -> None:
    data = what if isinstance(what, bytes) else what.encode()
    assert [secret for secret in SECRETS if secret.encode() in data] == []


REPORTS = ("a.html", "a.md", "a.json", "a.csv", "a.txt", "a.pftrace", "a.svg")


def test_the_canaries_are_in_the_inputs(trace: Path, log: Path) -> None:
    assert all(secret.encode() in log.read_bytes() for secret in SECRETS)
    assert all(secret.encode() in trace.read_bytes() for secret in SECRETS)


@pytest.mark.parametrize("with_log", [True, False])
def test_reports(trace: Path, log: Path, with_log: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outputs = [part for name in REPORTS for part in ("-o", str(tmp_path / name))]
    assert run(["report", str(trace), *(["--log", str(log)] if with_log else []), *outputs]) == 0
    for name in REPORTS:
        for text in texts(tmp_path / name):
            assert_clean(text)
    if with_log:
        for form in ("table", "json", "csv", "markdown"):
            assert run(["log", str(log), "-f", form]) == 0
        assert run(["compare", str(log), str(log), "-f", "json"]) in {0, 5}
    said = capfd.readouterr()
    assert_clean(said.out)
    assert_clean(said.err)


def test_goldens_and_what_is_made_of_them(
    trace: Path, log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    golden = tmp_path / "golden"
    assert run(["golden", "record", str(trace), "--log", str(log), "-o", str(golden)]) == 0
    assert run(["golden", "check", str(golden), "--junit", str(tmp_path / "junit.xml"), "--github"]) == 0
    assert run(["golden", "diff", str(golden), str(trace), "--log", str(log)]) == 0
    for text in texts(tmp_path):
        assert_clean(text)
    said = capfd.readouterr()
    assert_clean(said.out)
    assert_clean(said.err)


def test_an_import_keeps_the_log_the_profiler_stored_and_nothing_else(trace: Path, tmp_path: Path) -> None:
    """``import`` is asked for the tables; the program's own output is one of them, in a file of its own."""
    folder = tmp_path / "tables"
    assert run(["import", str(trace), "-o", str(folder)]) == 0
    (folder / "embedded.log").unlink(missing_ok=True)
    for text in texts(folder):
        assert_clean(text)


def test_errors_do_not_quote_the_input(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, data in (("t.sqlite", b"SQLite format 3\0"), ("x.log", b"TIMELINE,"), ("p.csv", b'"ID",')):
        (tmp_path / name).write_bytes(data + "\n".join(SECRETS).encode())
        run(["attribute", str(tmp_path / name), "--debug"])
        run(["log", str(tmp_path / name)])
    packed = lzma.compress("".join(SECRETS).encode())
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + packed)
    run(["attribute", str(tmp_path)])
    said = capfd.readouterr()
    assert "error[" in said.err
    assert_clean(said.out)
    assert_clean(said.err)
