"""Damaged and bloated files: the same tables, other tables, or a SourceError. Never a crash, never a hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.sources import bulk_adbc, bulk_pages
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.guarded_sqlite import open_guarded
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export
from tests.fixture_files import fixture_trace
from tests.unit.timeline.test_normalise import scenario

ROOT = Path(__file__).resolve().parents[2]
COUNT = int(os.environ.get("FUZZ_MUTANTS", "150"))
"""Mutants a file; ``make fuzz`` asks for many more."""

TOLD = {"same", "differs", "database-corrupt", "database-truncated", "not-a-trace", "not-an-nsys-export",
        "column-storage-type", "limit-identifiers", "limit-memory", "limit-rows", "limit-time", "limit-string",
        "database-hostile"}  # fmt: skip


def busy_export() -> Export:
    """Several pages of every kind of table, and texts that overflow a page."""
    export = scenario("2025.3")
    for i in range(250):
        export.call(1000 + i * 10, 1005 + i * 10, "cudaLaunchKernel_v7000", correlation=100 + i, thread=101)
        export.kernel(1008 + i * 10, 1009 + i * 10, f"k{i % 7}", correlation=100 + i)
        export.metric(i, i % 100)
    export.nvtx(5, 6, "x" * 9000)
    export.say("Not all CUDA events might have been collected.")
    return export


@pytest.mark.parametrize("name", ["built", "public/pipit_saxpy_mpi_cuda"])
def test_mutants(name: str, tmp_path: Path) -> None:
    path = busy_export().write(tmp_path / "t.sqlite") if name == "built" else fixture_trace(name)
    command = [sys.executable, "-m", "tests.hostile.mutants", str(path), "--seed", "11", "--count", str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert said["other"] == []
    assert set(said["outcomes"]) <= TOLD
    assert sum(said["outcomes"].values()) == COUNT
    assert said["slowest_s"] < 5
    assert said["peak_bytes"] < 1 << 30
    assert said["outcomes"]["database-corrupt"] > 0


def test_rows_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that stores nothing takes seven bytes in the file and two hundred in memory."""
    import sqlite3

    path = scenario("2025.3").write(tmp_path / "t.sqlite")
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA synchronous=OFF; DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; "
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start); "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT NULL FROM n; "
        + "".join(f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN {c};" for c in KERNEL_COLUMNS)
    )
    database.close()
    trace = load_trace(path)
    assert [i.count for i in trace.quality if i.slug == "rows-without-time"] == [200000]
    for reader in (bulk_adbc, bulk_pages):
        monkeypatch.setattr(reader, "SPARE_BYTES", 1 << 20)
    with pytest.raises(SourceError) as caught:
        load_trace(path)
    assert caught.value.slug == "limit-memory"
    with open_guarded(path, DEFAULT_LIMITS) as opened, pytest.raises(SourceError) as caught:
        columns = ["start", *KERNEL_COLUMNS]
        AdbcReader(opened).read_columns("CUPTI_ACTIVITY_KIND_KERNEL", columns, [pa.int64()] * len(columns))
    assert caught.value.slug == "limit-memory"


KERNEL_COLUMNS = (
    "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId", "demangledName",
    "shortName", "mangledName", "launchType", "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY",
    "blockZ", "staticSharedMemory", "dynamicSharedMemory",
)  # fmt: skip


def test_texts_and_strings_have_caps(tmp_path: Path) -> None:
    export = scenario("2025.3")
    export.nvtx(1, 2, "x" * 200_000)
    path = export.write(tmp_path / "t.sqlite")
    for limits, slug in [
        (replace(DEFAULT_LIMITS, string_bytes=100_000), "limit-string"),
        (replace(DEFAULT_LIMITS, distinct_strings=3), "limit-strings"),
    ]:
        with pytest.raises(SourceError) as caught:
            load_trace(path, limits)
        assert caught.value.slug == slug


def test_a_flood_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nvprof_tools.timeline import ids

    monkeypatch.setattr(ids, "MOST_IDENTIFIERS", 500)
    export = scenario("2025.3")
    for thread in range(1000):
        export.os_call(1, 2, "read", thread=thread)
    with pytest.raises(SourceError) as caught:
        load_trace(export.write(tmp_path / "t.sqlite"))
    assert caught.value.slug == "limit-identifiers"
