"""Committed traces: listed, scrubbed, made the same way again, and covering what the support matrix claims."""

from __future__ import annotations

import re
import sqlite3
import tomllib

import pytest

from nvprof_tools.sources.nsys_schema import TABLES, resolve
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import GENERATIONS
from tests.conftest import FIXTURES
from tests.fixture_files import fixture_trace

TRACES = sorted(str(p.parent.relative_to(FIXTURES / "traces")) for p in (FIXTURES / "traces").rglob("*.xz"))
MATRIX = FIXTURES.parent / "docs" / "support-matrix.md"
FORBIDDEN = re.compile(
    r"(?:^|[\s\"'=:(])/(?:home|root|usr|opt|tmp|var|etc|mnt|global|work)/|[\w.-]+@[\w-]+\.\w+|\bEXPORT_(?:HOST|USER)\b|"
    r"\bHostname\b|(?:TOKEN|PASSWORD|SECRET)="
)


def test_the_manifest_lists_every_trace_file() -> None:
    listed = {entry["path"] for entry in tomllib.loads((FIXTURES / "MANIFEST.toml").read_text("utf-8"))["file"]}
    present = {str(p.relative_to(FIXTURES)) for p in (FIXTURES / "traces").rglob("*") if p.is_file()}
    assert present <= listed


@pytest.mark.parametrize("name", TRACES)
def test_a_fixture_holds_nothing_but_what_is_read(name: str) -> None:
    database = sqlite3.connect(fixture_trace(name))
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    canonical = {actual: table for table, actual in resolve(tables).items()}
    assert set(tables) == set(canonical)
    for table in tables:
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        known = {n for w in TABLES[canonical[table]] for n in (w.name, *w.aliases)}
        assert set(columns) <= known, table
        for row in database.execute(f'SELECT * FROM "{table}"'):
            for value in row:
                assert not (isinstance(value, str) and FORBIDDEN.search(value)), (table, value[:200])
    database.close()


@pytest.mark.parametrize("name", TRACES)
def test_a_fixture_imports(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    assert sum(table.num_rows for table in trace.tables.values()) > 0
    for table in trace.tables.values():
        table.validate(full=True)


def test_the_board_is_named_through_its_cuda_ordinal() -> None:
    """Case 11: four boards whose ids are not in the order of their CUDA ordinals."""
    name = "public/pipit_cloverleaf_cuda"
    trace = load_trace(fixture_trace(name))
    database = sqlite3.connect(fixture_trace(name))
    ordinal = database.execute("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
    number = database.execute("SELECT id FROM TARGET_INFO_GPU WHERE cuDevice = ?", ordinal[0]).fetchone()[0]
    database.close()
    assert number != ordinal[0][0]
    assert set(trace["kernels"]["device"].to_pylist()) == {number}


def rows_of_the_matrix() -> list[list[str]]:
    lines = [line for line in MATRIX.read_text("utf-8").splitlines() if line.startswith("| 20")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_support_matrix_is_what_the_tests_cover() -> None:
    """Every generation the builder writes has a row with its schema, and every recorded fixture stands in its row."""
    rows = rows_of_the_matrix()
    built = {row[0]: row[1] for row in rows if "built" in row[2]}
    assert built == {version: schema or "none" for version, schema in GENERATIONS.items()}
    named = {name for row in rows for name in re.findall(r"`([\w/]+)`", row[2])}
    assert named == set(TRACES)
    for row in rows:
        for name in re.findall(r"`([\w/]+)`", row[2]):
            source = load_trace(fixture_trace(name)).source
            assert (source.version or "").startswith(row[0]), name
            assert source.schema_version == row[1], name
