"""Every committed trace: all tables of it go the fast way, and what is imported is the same either way."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.native import library
from nvprof_tools.sources import nsys_schema
from nvprof_tools.sources.base import ARROW_TYPES
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.guarded_sqlite import open_guarded
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import ROOT, fixture_trace
from tests.native.pages.decoder import decoder, opened, rows_of, stored_rows

NAMES = sorted(str(p.parent.relative_to(ROOT / "traces")) for p in (ROOT / "traces").rglob("trace.sqlite.xz"))


def test_there_are_fixtures() -> None:
    assert len(NAMES) > 5


@pytest.mark.parametrize("name", NAMES)
def test_every_column_of_every_table(name: str) -> None:
    path = fixture_trace(name)
    read = 0
    with opened(path) as reader, open_guarded(path, DEFAULT_LIMITS) as database:
        plain = AdbcReader(database)
        for canonical, table in nsys_schema.resolve(database.tables).items():
            present = database.tables[table].columns
            wanted = [w for w in nsys_schema.TABLES[canonical] if w.name in present]
            columns, kinds = [w.name for w in wanted], [ARROW_TYPES[w.kind] for w in wanted]
            if not columns:
                continue
            got = reader.decode(table, columns, kinds)
            assert isinstance(got, pa.Table), f"{table}: {got}"
            got.validate(full=all(k == pa.int64() for k in kinds))
            assert got.equals(plain.read_columns(table, columns, kinds))
            if got.num_rows < 20_000:
                assert rows_of(got) == stored_rows(path, table, columns)
            read += got.num_rows
    assert read > 0


@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_the_same_trace_with_and_without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.SWITCH, str(decoder()))
    fast = load_trace(Path(fixture_trace(name)))
    monkeypatch.setenv(library.SWITCH, "0")
    slow = load_trace(Path(fixture_trace(name)))
    assert fast.quality == slow.quality
    assert fast.session == slow.session
    assert fast.tables.keys() == slow.tables.keys()
    assert all(fast.tables[t].equals(slow.tables[t]) for t in slow.tables)
