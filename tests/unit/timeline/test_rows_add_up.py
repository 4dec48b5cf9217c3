"""Rows read = rows kept + rows set aside, for every table of every fixture: the file in SQL, our tables counted."""

from __future__ import annotations

import re
import sqlite3

import pytest

from nvprof_tools.errors import InvariantError
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.timeline import rows
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import ROOT, fixture_trace

NAMES = sorted(str(p.parent.relative_to(ROOT / "traces")) for p in (ROOT / "traces").rglob("trace.sqlite.xz"))
SQLITE = {
    "api_calls": ["CUPTI_ACTIVITY_KIND_RUNTIME"],
    "kernels": ["CUPTI_ACTIVITY_KIND_KERNEL"],
    "copies": ["CUPTI_ACTIVITY_KIND_MEMCPY"],
    "memsets": ["CUPTI_ACTIVITY_KIND_MEMSET"],
    "graphs": ["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"],
    "syncs": ["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"],
    "memory_events": ["CUDA_GPU_MEMORY_USAGE_EVENTS"],
    "os_calls": ["OSRT_API"],
    "profiler_overhead": ["PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"],
    "nvtx": ["NVTX_EVENTS"],
    "gpu_metrics": ["GPU_METRICS"],
    "diagnostics": ["DIAGNOSTIC_EVENT"],
}
SUM = re.compile(r"(\w+): ([\d,]+) rows read, ([\d,]+) kept, ([\d,]+) set aside")


def in_file(name: str) -> dict[str, int]:
    """Our table → rows of the file's tables it is made from; tables of no rows left out."""
    with sqlite3.connect(fixture_trace(name)) as database:
        there = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        count = {t: database.execute(f'SELECT count(*) FROM "{t}"').fetchone()[0] for t in there}
    sums = {ours: sum(count.get(t, 0) for t in theirs) for ours, theirs in SQLITE.items()}
    return {ours: n for ours, n in sums.items() if n}


def number(text: str) -> int:
    return int(text.replace(",", ""))


def accounts(quality: tuple[QualityItem, ...]) -> dict[str, tuple[int, int, int]]:
    found = [SUM.fullmatch(item.message) for item in quality if item.slug == "rows-read"]
    return {m[1]: (number(m[2]), number(m[3]), number(m[4])) for m in found if m is not None}


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_kept_or_set_aside_for_a_reason(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    said = accounts(trace.quality)
    asides = {
        table: sum(
            item.count
            for item in trace.quality
            if item.slug in rows.REASONS and item.slug != "rows-clipped" and item.message.startswith(f"{table}: ")
        )
        for table in said
    }
    assert {table: read for table, (read, _, _) in said.items()} == in_file(name)
    for table, (read, kept, aside) in said.items():
        made = ["nvtx_ranges", "nvtx_marks"] if table == "nvtx" else [table]
        assert kept == sum(trace[t].num_rows for t in made), table
        assert read == kept + aside
        assert aside == asides[table]


def test_a_row_that_goes_missing_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: an account that counts one row too many as kept."""
    plain = rows.Account.kept.fget
    assert plain is not None
    monkeypatch.setattr(rows.Account, "kept", property(lambda account: plain(account) + 1))
    with pytest.raises(InvariantError, match="accounted for"):
        load_trace(fixture_trace("torch_graph"))
