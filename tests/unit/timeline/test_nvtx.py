"""NVTX: names, domains, categories, marks, open and start/end ranges."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export
from tests.fixture_files import fixture_trace


def load(export: Export, folder: Path) -> Trace:
    return load_trace(export.write(folder / "t.sqlite"))


def by_name(trace: Trace) -> dict[str, dict[str, object]]:
    return {r["name"]: r for r in trace["nvtx_ranges"].to_pylist()}


def test_start_end_ranges_without_cuda() -> None:
    """Case 5."""
    trace = load_trace(fixture_trace("public/centerformer_poolformer_nvtx_only"))
    ranges = trace["nvtx_ranges"].to_pylist()
    assert sum(not r["push_pop"] for r in ranges) == 2444
    assert sum(r["push_pop"] for r in ranges) == 19552
    assert "cuda-not-measured" in {i.slug for i in trace.quality}
    assert not trace.measured & {"kernels", "copies", "memsets", "api_calls"}


def test_text_then_registered_string_then_unnamed(tmp_path: Path) -> None:
    """Case 7."""
    export = Export()
    export.nvtx(1, 2, "plain")
    export.nvtx(3, 4, registered="registered")
    export.nvtx(5, 6, "both", registered="other")
    export.nvtx(7, 8)
    export.nvtx(9, 10)
    export.tables["NVTX_EVENTS"][-1]["textId"] = 999_999
    trace = load(export, tmp_path)
    assert trace["nvtx_ranges"]["name"].to_pylist() == ["plain", "registered", "both", "", ""]


def test_metadata_and_marks_are_no_ranges(tmp_path: Path) -> None:
    """Case 6: rows with no end that are domains, marks, categories and thread names."""
    export = Export()
    export.nvtx(0, None, "mylib", kind=75, domain=2)
    export.nvtx(0, None, "mylib of another process", kind=75, domain=2, pid=200)
    export.nvtx(0, None, "io", kind=33, domain=2, category=5)
    export.nvtx(1, None, "renamed", kind=39)
    export.nvtx(2, None, "instant", kind=34, domain=2, category=5, int64Value=-7)
    export.nvtx(3, 9, "range", domain=2, category=5, uint64Value=12)
    export.nvtx(4, 9, "elsewhere", domain=2, pid=200)
    export.nvtx(5, 9, "default", category=6)
    trace = load(export, tmp_path)
    ranges = by_name(trace)
    assert set(ranges) == {"range", "elsewhere", "default"}
    assert (ranges["range"]["domain"], ranges["range"]["category"], ranges["range"]["payload"]) == ("mylib", "io", 12)
    assert (ranges["elsewhere"]["domain"], ranges["elsewhere"]["category"]) == ("mylib of another process", None)
    assert (ranges["default"]["domain"], ranges["default"]["category"]) == ("", "6")
    assert trace["nvtx_marks"].select(["time_ns", "name", "domain", "category", "payload"]).to_pylist() == [
        {"time_ns": 2, "name": "instant", "domain": "mylib", "category": "io", "payload": -7}
    ]
    assert [t["name"] for t in trace["threads"].to_pylist()] == ["renamed", None]
    said = {i.message for i in trace.quality if i.slug == "rows-read"}
    assert "nvtx: 8 rows read, 4 kept, 4 set aside" in said


def test_open_ranges_end_with_the_capture(tmp_path: Path) -> None:
    """Newer exports leave the end out, older ones write the session's end."""
    export = Export(duration=1000)
    export.nvtx(10, None, "never closed")
    export.nvtx(20, 1000, "closed by the exporter")
    export.nvtx(30, 4000, "past the end")
    export.nvtx(40, 999, "closed")
    trace = load(export, tmp_path)
    ranges = by_name(trace)
    assert {n: r["open"] for n, r in ranges.items()} == {
        "never closed": True, "closed by the exporter": True, "past the end": True, "closed": False,
    }  # fmt: skip
    assert {r["end_ns"] for n, r in ranges.items() if n != "closed"} == {1000}
    assert [i.count for i in trace.quality if i.slug == "nvtx-ranges-open"] == [3]


def test_open_ranges_where_the_captures_end_is_unknown(tmp_path: Path) -> None:
    export = Export("2020.5")
    export.kernel(5, 700)
    export.nvtx(10, None, "never closed")
    export.nvtx(900, None, "opened last")
    trace = load(export, tmp_path)
    ranges = by_name(trace)
    assert (ranges["never closed"]["end_ns"], ranges["never closed"]["open"]) == (700, True)
    assert (ranges["opened last"]["end_ns"], ranges["opened last"]["open"]) == (900, True)
    assert trace.session.end_ns == 900


def test_a_range_that_ends_on_another_thread(tmp_path: Path) -> None:
    export = Export()
    export.nvtx(1, 2, "moves", kind=60, thread=100, endGlobalTid=export.tid(101), rangeId=1)
    export.nvtx(3, 4, "stays", kind=60, thread=100, endGlobalTid=export.tid(100), rangeId=2)
    trace = load(export, tmp_path)
    ranges = by_name(trace)
    tids = trace["threads"]["tid"].to_pylist()
    assert tids[int(str(ranges["moves"]["end_thread"]))] == 101
    assert ranges["stays"]["end_thread"] is None
    assert not ranges["moves"]["push_pop"]


def test_lost_ranges_are_said(tmp_path: Path) -> None:
    export = Export("2023.4")
    export.nvtx(0, None, "mylib", kind=75, domain=1)
    trace = load(export, tmp_path)
    assert "nvtx-ranges-lost" in {i.slug for i in trace.quality}


@pytest.mark.parametrize("name", ["p9_gw2", "p9_barrier", "sim_w2"])
def test_a_whole_capture_leaves_nothing_open(name: str) -> None:
    assert not any(load_trace(fixture_trace(name))["nvtx_ranges"]["open"].to_pylist())


def test_a_cut_capture_leaves_ranges_open() -> None:
    """Case 23: the three ranges open on each worker, closed at the capture's end."""
    trace = load_trace(fixture_trace("p9_cut"))
    opened = [r for r in trace["nvtx_ranges"].to_pylist() if r["open"]]
    assert len(opened) == 6
    assert {r["end_ns"] for r in opened} == {3004111089}
    assert "events-lost" in {i.slug for i in trace.quality}
