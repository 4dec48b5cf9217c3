"""Device work to its call: by process and correlation id, on public exports other tools joined wrongly."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.timeline.correlate import CallIndex
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export
from tests.fixture_files import fixture_trace

CALL, KERNEL = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"


def query(name: str, sql: str) -> list[tuple[int, ...]]:
    database = sqlite3.connect(fixture_trace(name))
    rows = database.execute(sql).fetchall()
    database.close()
    return rows


def test_two_processes_with_the_same_ids() -> None:
    """Case 1: 4,280 pairs by id alone, 3,986 by process and id."""
    name = "public/nsys_ai_mfu_2gpu_before"
    trace = load_trace(fixture_trace(name))
    kernels = trace["kernels"]
    assert kernels.num_rows == 4010
    assert kernels.num_rows - kernels["api_call"].null_count == 3986
    naive = query(name, f"SELECT count(*) FROM {KERNEL} k JOIN {CALL} r ON k.correlationId = r.correlationId")
    assert naive[0][0] == 4280
    expected = query(
        name,
        f"SELECT k.start, r.start FROM {KERNEL} k JOIN {CALL} r ON k.correlationId = r.correlationId "
        "AND k.globalPid = (r.globalTid & ~0xFFFFFF) ORDER BY 1, 2",
    )
    calls = trace["api_calls"]["start_ns"].to_pylist()
    found = [
        (start, calls[call])
        for start, call in zip(kernels["start_ns"].to_pylist(), kernels["api_call"].to_pylist(), strict=True)
        if call is not None
    ]
    assert sorted(found) == expected


def test_a_call_with_a_backtrace_row_is_one_call() -> None:
    """Case 2: 95 rows, 57 calls, 5 pairs for 5 kernels."""
    trace = load_trace(fixture_trace("public/pipit_saxpy_mpi_cuda"))
    assert trace["api_calls"].num_rows == 57
    assert trace["kernels"].num_rows == 5
    assert sorted(trace["kernels"]["api_call"].to_pylist()) == sorted(set(trace["kernels"]["api_call"].to_pylist()))
    assert trace["kernels"]["api_call"].null_count == 0
    assert [i.count for i in trace.quality if i.slug == "rows-duplicate"] == [38]


def test_a_backtrace_alone_is_the_call(tmp_path: Path) -> None:
    export = Export()
    export.call(1, 2, "cudaFree_v3020", correlation=1, event_class=67)
    export.call(3, 4, "cudaFree_v3020", correlation=2, event_class=67)
    export.call(3, 4, "cudaFree_v3020", correlation=2)
    export.call(5, 6, "cudaFree_v3020", correlation=2, pid=200, event_class=67)
    trace = load_trace(export.write(tmp_path / "t.sqlite"))
    assert trace["api_calls"]["start_ns"].to_pylist() == [1, 3, 5]


def test_kernels_without_a_launch_are_kept() -> None:
    """Case 9."""
    trace = load_trace(fixture_trace("public/nsys_ai_h100_2gpu_1s"))
    assert trace["kernels"].num_rows == 3442
    assert trace["kernels"]["api_call"].null_count == 1810
    assert [i.count for i in trace.quality if i.slug == "kernels-unlaunched"] == [1810]


def test_streams_are_told_apart_by_context_and_device(tmp_path: Path) -> None:
    """Case 12: the same stream number on three GPUs."""
    export = Export()
    for device in range(3):
        export.kernel(0, 86, f"k{device}", device=device, stream=17)
    trace = load_trace(export.write(tmp_path / "t.sqlite"))
    keys = {(r["process"], r["device"], r["context"], r["stream"]) for r in trace["kernels"].to_pylist()}
    assert len(keys) == 3


def test_graph_nodes_share_their_launch() -> None:
    """Case 3: with node tracing one launch owns many kernels; each of them names it."""
    name = "torch_graph_node"
    trace = load_trace(fixture_trace(name))
    kernels = trace["kernels"].to_pylist()
    launches = {i for i, n in enumerate(trace["api_calls"]["name"].to_pylist()) if n.startswith("cudaGraphLaunch")}
    of_graphs = [k for k in kernels if k["graph_node"] is not None]
    assert of_graphs and {k["api_call"] for k in of_graphs} <= launches
    expected = query(name, f"SELECT count(*) FROM {KERNEL} WHERE graphNodeId IS NOT NULL")[0][0]
    assert len(of_graphs) == expected
    assert not [i for i in trace.quality if i.slug == "graph-work-unseen"]


def test_graphs_traced_as_a_whole() -> None:
    """Case 4."""
    trace = load_trace(fixture_trace("torch_graph"))
    assert trace["graphs"].num_rows == 10
    assert trace["graphs"]["api_call"].null_count == 0
    assert "graphs" in trace.measured


def test_unified_memory_has_no_call() -> None:
    trace = load_trace(fixture_trace("public/pipit_cloverleaf_cuda"))
    copies = [c for c in trace["copies"].to_pylist() if c["kind"].startswith("UVM")]
    assert all(c["api_call"] is None and c["correlation_id"] is None for c in copies)


KEY = st.tuples(st.integers(-1, 3), st.integers(-3, 12) | st.integers(-(2**63), 2**63 - 1), st.booleans())


@given(st.lists(KEY, max_size=30), st.lists(KEY, max_size=30))
def test_index_against_a_plain_search(calls: list[tuple[int, int, bool]], work: list[tuple[int, int, bool]]) -> None:
    def split(rows: list[tuple[int, int, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return (
            np.array([r[0] for r in rows], np.int32),
            np.array([r[1] for r in rows], np.int64),
            np.array([r[2] for r in rows], np.bool_),
        )

    index = CallIndex(*split(calls))
    row, found = index.find(*split(work))
    usable = [c for c in calls if c[0] >= 0 and 0 < c[1] < 1 << 40 and c[2]]
    assert index.ambiguous == len(usable) - len({c[:2] for c in usable})
    for i, item in enumerate(work):
        matches = [j for j, c in enumerate(calls) if c in usable and c[:2] == item[:2] and item[2]]
        assert bool(found[i]) == bool(matches)
        if matches:
            assert row[i] == matches[0]
