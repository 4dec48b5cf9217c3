"""Columnar exports, reports through nsys, and our own tables directory: the same trace whichever way it came."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.errors import SourceError, ToolError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.tables import TABLES
from nvprof_tools.sources import registry
from nvprof_tools.sources.arrow_dir import MANIFEST, write_tables
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export, to_columnar
from tests.fixture_files import fixture_trace
from tests.unit.timeline.test_normalise import scenario


@pytest.mark.parametrize("kind", ["parquet", "arrow", "streams"])
@pytest.mark.parametrize("name", ["p9_nonvtx", "public/pipit_saxpy_mpi_cuda", "torch_graph"])
def test_columnar_exports_give_the_tables_of_the_sqlite_export(kind: str, name: str, tmp_path: Path) -> None:
    path = fixture_trace(name)
    plain, columnar = load_trace(path), load_trace(to_columnar(path, tmp_path / "x", kind))
    for table in TABLES:
        assert columnar[table].equals(plain[table]), table
    assert columnar.quality == plain.quality
    assert columnar.session == plain.session
    assert columnar.source.kind == ("nsys-parquet" if kind == "parquet" else "nsys-arrow")


def test_the_digest_of_a_directory_is_of_its_content(tmp_path: Path) -> None:
    path = scenario("2025.3").write(tmp_path / "t.sqlite")
    first = load_trace(to_columnar(path, tmp_path / "a", "parquet"))
    second = load_trace(to_columnar(path, tmp_path / "b", "parquet"))
    assert first.source == second.source


@pytest.mark.parametrize("storage", ["parquet", "arrow"])
@pytest.mark.parametrize("name", ["p9_gw2", "p9_cut", "public/centerformer_poolformer_nvtx_only"])
def test_tables_directory_round_trip(storage: str, name: str, tmp_path: Path) -> None:
    trace = load_trace(fixture_trace(name))
    write_tables(trace, tmp_path / "one", storage)  # type: ignore[arg-type]
    write_tables(trace, tmp_path / "two", storage)  # type: ignore[arg-type]
    again = load_trace(tmp_path / "one")
    assert again == trace
    write_tables(again, tmp_path / "three", storage)  # type: ignore[arg-type]
    for file in sorted((tmp_path / "one").iterdir()):
        assert (tmp_path / "two" / file.name).read_bytes() == file.read_bytes()
        assert (tmp_path / "three" / file.name).read_bytes() == file.read_bytes()


def test_a_directory_that_is_there_is_kept_unless_told(tmp_path: Path) -> None:
    trace = load_trace(scenario("2025.3").write(tmp_path / "t.sqlite"))
    write_tables(trace, tmp_path / "out")
    with pytest.raises(ToolError) as caught:
        write_tables(trace, tmp_path / "out")
    assert caught.value.slug == "output-exists"
    write_tables(trace, tmp_path / "out", replace=True)


def _rewritten(folder: Path, storage: str, name: str, change: object) -> None:
    """A table replaced, with a manifest that vouches for it: what a hostile directory would do."""
    import hashlib

    from pyarrow import parquet

    path = folder / f"{name}.{storage}"
    table = parquet.read_table(path)
    table = change(table)  # type: ignore[operator]
    parquet.write_table(table, path)
    manifest = json.loads((folder / MANIFEST).read_text())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest["tables"][name].update(rows=table.num_rows, sha256=digest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _with(table: pa.Table, column: str, values: list[object]) -> pa.Table:
    at = table.column_names.index(column)
    return table.set_column(at, table.schema.field(column), pa.array(values, table.schema.field(column).type))


@pytest.mark.parametrize(
    ("table", "change", "word"),
    [
        ("kernels", lambda t: t.drop_columns(["name"]), "other columns"),
        ("kernels", lambda t: t.rename_columns(["x", *t.column_names[1:]]), "other columns"),
        ("kernels", lambda t: _with(t, "api_call", [99]), "points past table api_calls"),
        ("kernels", lambda t: _with(t, "device", [-1]), "points past table devices"),
        ("kernels", lambda t: _with(t, "end_ns", [1]), "end before they start"),
        ("os_calls", lambda t: _with(t, "thread", [7]), "points past table threads"),
    ],
)
def test_a_hostile_tables_directory_is_refused(table: str, change: object, word: str, tmp_path: Path) -> None:
    trace = load_trace(scenario("2025.3").write(tmp_path / "t.sqlite"))
    write_tables(trace, tmp_path / "out")
    _rewritten(tmp_path / "out", "parquet", table, change)
    with pytest.raises(SourceError, match=word) as caught:
        load_trace(tmp_path / "out")
    assert caught.value.slug == "import-damaged"


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("session"),
        lambda m: m["session"].update(end_ns="soon"),
        lambda m: m["session"].update(facts={"a": 1}),
        lambda m: m.update(measured=["kernels", "wishes"]),
        lambda m: m.update(quality=[1]),
        lambda m: m["quality"].append({"slug": "x", "severity": "awful", "count": 1, "message": "", "hint": ""}),
        lambda m: m["tables"].pop("kernels"),
        lambda m: m["tables"]["kernels"].update(file="../kernels.parquet"),
        lambda m: m["tables"]["kernels"].update(rows=10),
        lambda m: m.update(storage="csv"),
        lambda m: m.update(version=99),
        lambda m: m["source"].update(kind=5),
        lambda m: m["tables"]["kernels"].update(sha256="0" * 64),
        lambda m: m.update(embedded_log={"file": "/etc/passwd", "sha256": ""}),
    ],
)
def test_a_damaged_manifest_is_refused(change: object, tmp_path: Path) -> None:
    trace = load_trace(scenario("2025.3").write(tmp_path / "t.sqlite"))
    write_tables(trace, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    change(manifest)  # type: ignore[operator]
    (tmp_path / "out" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(SourceError) as caught:
        load_trace(tmp_path / "out")
    assert caught.value.slug in {"import-damaged", "import-version"}


@pytest.mark.parametrize("kind", ["parquet", "arrow", "streams"])
def test_wrong_types_in_columnar_exports(kind: str, tmp_path: Path) -> None:
    export = scenario("2025.3")
    path = export.write(tmp_path / "t.sqlite")
    import sqlite3

    database = sqlite3.connect(path)
    database.execute("ALTER TABLE OSRT_API RENAME TO old")
    database.execute("CREATE TABLE OSRT_API (start TEXT, end INTEGER, globalTid INTEGER, nameId INTEGER)")
    database.execute("INSERT INTO OSRT_API SELECT start, end, globalTid, nameId FROM old")
    database.execute("DROP TABLE old")
    database.commit()
    database.close()
    with pytest.raises(SourceError) as caught:
        load_trace(to_columnar(path, tmp_path / "x", kind))
    assert caught.value.slug == "column-storage-type"


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    from nvprof_tools.sources import columnar

    path = to_columnar(scenario("2025.3").write(tmp_path / "t.sqlite"), tmp_path / "x", "parquet")
    schema = parquet.read_schema(path / "OSRT_API.parquet")
    zeros = pa.array([0], pa.int64()).take(pa.array([0] * 1000))
    chunk = pa.table([pa.chunked_array([zeros] * 1000).cast(f.type) for f in schema], schema=schema)
    parquet.write_table(chunk, path / "OSRT_API.parquet")
    assert (path / "OSRT_API.parquet").stat().st_size < 100_000
    load_trace(path)
    monkeypatch.setattr(columnar, "SPARE_BYTES", 1 << 20)
    with pytest.raises(SourceError) as caught:
        load_trace(path)
    assert caught.value.slug == "limit-memory"


NSYS = """#!{python}
import os, pathlib, shutil, sys
log = pathlib.Path({log!r})
log.write_text((log.read_text() if log.exists() else "") + " ".join(sys.argv[1:2]) + "\\n")
if sys.argv[1] == "--version":
    print("NVIDIA Nsight Systems version {version}")
elif {fail}:
    print("secret words on stderr", file=sys.stderr)
    sys.exit(3)
else:
    shutil.copy({source!r}, sys.argv[sys.argv.index("--output") + 1])
"""


def _fake_nsys(folder: Path, source: Path, *, version: str = "2025.3", fail: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    program = folder / "nsys"
    program.write_text(NSYS.format(python=sys.executable, log=str(log), version=version, fail=fail, source=str(source)))
    program.chmod(0o755)
    return log


@pytest.fixture
def own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import tempfile

    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_report_is_exported_once_for_each_content_and_nsys(
    tmp_path: Path, own_temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = scenario("2025.3").write(tmp_path / "t.sqlite")
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"any bytes")
    log = _fake_nsys(tmp_path / "bin", source)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    first = load_trace(report)
    assert first["kernels"].num_rows == 1
    (tmp_path / "b.nsys-rep").write_bytes(b"any bytes")
    assert load_trace(tmp_path / "b.nsys-rep") == first
    assert log.read_text().split().count("export") == 1
    report.write_bytes(b"other bytes")
    load_trace(report)
    assert log.read_text().split().count("export") == 2
    _fake_nsys(tmp_path / "bin", source, version="2026.1")
    load_trace(report)
    assert log.read_text().split().count("export") == 3
    assert not [p for p in own_temp.rglob("*") if p.is_dir() and "nvprof-tools-exports" not in p.name]


def test_a_report_that_cannot_be_exported(tmp_path: Path, own_temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"any bytes")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError) as caught:
        load_trace(report)
    assert caught.value.slug == "nsys-missing"
    _fake_nsys(tmp_path / "bin", tmp_path, fail=True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(SourceError) as caught:
        load_trace(report)
    assert caught.value.slug == "nsys-export-failed"
    assert "secret" not in caught.value.message
    assert list(own_temp.rglob("*.sqlite")) == []


def test_someone_elses_cache_is_not_used(tmp_path: Path, own_temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"any bytes")
    _fake_nsys(tmp_path / "bin", scenario("2025.3").write(tmp_path / "t.sqlite"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    cache = own_temp / f"nvprof-tools-exports-{os.getuid()}"
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(SourceError) as caught:
        load_trace(report)
    assert caught.value.slug == "cache-unsafe"


def test_what_is_no_trace_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("hello")
    (tmp_path / "folder").mkdir()
    for path, slug in [
        (tmp_path / "nothing", "file-missing"),
        (tmp_path / "text.sqlite", "not-a-trace"),
        (tmp_path / "folder", "not-a-trace"),
    ]:
        with pytest.raises(SourceError) as caught:
            load_trace(path)
        assert (caught.value.slug, bool(caught.value.hint)) == (slug, True)


def test_detection_is_by_content(tmp_path: Path) -> None:
    path = scenario("2025.3").write(tmp_path / "report.nsys-rep")
    assert registry.detect(path).kind == "nsys-sqlite"
    strict = replace(DEFAULT_LIMITS, table_rows=2)
    with pytest.raises(SourceError) as caught:
        load_trace(path, strict)
    assert caught.value.slug == "limit-rows"


def test_an_export_without_any_event_is_empty_not_an_error(tmp_path: Path) -> None:
    trace = load_trace(Export().write(tmp_path / "t.sqlite"))
    assert all(table.num_rows == 0 for table in trace.tables.values())
    assert trace.measured == frozenset()
