"""Whole tables of recorded captures against plain SQL on the same file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

import pytest

from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_trace

NAMES = [
    "p9_gw2",
    "p9_cut",
    "p9_two_procs",
    "torch_graph_node",
    "public/nsys_ai_mfu_2gpu_before",
    "public/pipit_cloverleaf_cuda",
]


def rows(name: str, sql: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(fixture_trace(name))
    try:
        return [tuple(r) for r in database.execute(sql).fetchall()]
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error)
        return []
    finally:
        database.close()


def tids(trace: Trace) -> list[tuple[int, int]]:
    pids = trace["processes"]["pid"].to_pylist()
    return [(pids[t["process"]], t["tid"]) for t in trace["threads"].to_pylist()]


def table(trace: Trace, name: str, *columns: str) -> Iterable[tuple[object, ...]]:
    return zip(*(trace[name][c].to_pylist() for c in columns), strict=True)


def key(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(map(repr, row))


STRING = "(SELECT value FROM StringIds WHERE id = {})"
PID, TID = "({} >> 24) & 0xFFFFFF", "{} & 0xFFFFFF"


@pytest.mark.parametrize("name", NAMES)
def test_api_calls(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    where = tids(trace)
    found = [(s, e, *where[t], c, n, r) for s, e, t, c, n, r in table(
        trace, "api_calls", "start_ns", "end_ns", "thread", "correlation_id", "name", "return_value")]  # fmt: skip
    expected = [
        (*r[:5], re.sub(r"_pt[sd][zs]$", "", re.sub(r"_v\d{4,5}$", "", str(r[5]))), r[6])
        for r in rows(
            name,
            f"SELECT start, end, {PID.format('globalTid')}, {TID.format('globalTid')}, correlationId, "
            f"{STRING.format('nameId')}, returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME",
        )
    ]
    assert sorted(found, key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("name", NAMES)
def test_kernels(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    pids = trace["processes"]["pid"].to_pylist()
    columns = (
        "start_ns", "end_ns", "process", "context", "stream", "correlation_id", "name", "signature", "grid_x",
        "block_x", "registers", "shared_bytes", "graph_node",
    )  # fmt: skip
    found = [(*r[:2], pids[int(str(r[2]))], *r[3:]) for r in table(trace, "kernels", *columns)]
    expected = rows(
        name,
        f"SELECT start, end, {PID.format('globalPid')}, contextId, streamId, correlationId, "
        f"{STRING.format('shortName')}, {STRING.format('demangledName')}, gridX, blockX, registersPerThread, "
        "staticSharedMemory + dynamicSharedMemory, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL",
    )
    assert sorted(found, key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("name", NAMES)
def test_copies(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    found = table(trace, "copies", "start_ns", "end_ns", "stream", "kind", "bytes", "source_memory")
    kinds = "CASE copyKind WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' WHEN 8 THEN 'DtoD' WHEN 10 THEN 'PtoP' END"
    memory = "CASE srcKind WHEN 0 THEN 'pageable' WHEN 1 THEN 'pinned' WHEN 2 THEN 'device' END"
    expected = rows(name, f"SELECT start, end, streamId, {kinds}, bytes, {memory} FROM CUPTI_ACTIVITY_KIND_MEMCPY")
    assert sorted(found, key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("name", NAMES)
def test_ranges(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    where = tids(trace)
    found = [
        (s, e, *where[int(str(t))], n)
        for s, e, t, n in table(trace, "nvtx_ranges", "start_ns", "end_ns", "thread", "name")
    ]
    expected = rows(
        name,
        f"SELECT start, end, {PID.format('globalTid')}, {TID.format('globalTid')}, "
        f"coalesce(text, {STRING.format('textId')}, '') FROM NVTX_EVENTS WHERE eventType IN (59, 60)",
    )
    assert sorted(found, key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("name", NAMES)
def test_os_calls(name: str) -> None:
    trace = load_trace(fixture_trace(name))
    where = tids(trace)
    end = trace.session.end_ns
    found = [
        (s, e, *where[int(str(t))], n)
        for s, e, t, n in table(trace, "os_calls", "start_ns", "end_ns", "thread", "name")
    ]
    expected = rows(
        name,
        f"SELECT start, min(end, {end}), {PID.format('globalTid')}, {TID.format('globalTid')}, "
        f"{STRING.format('nameId')} FROM OSRT_API WHERE start < {end}",
    )
    assert sorted(found, key=key) == sorted(expected, key=key)


def test_metrics() -> None:
    name = "p9_gw2"
    trace = load_trace(fixture_trace(name))
    found = table(trace, "gpu_metrics", "metric", "time_ns", "value")
    expected = rows(
        name,
        "SELECT i.metricName, m.timestamp, CAST(m.value AS REAL) FROM GPU_METRICS m JOIN TARGET_INFO_GPU_METRICS i "
        f"ON m.typeId = i.typeId AND m.metricId = i.metricId WHERE m.timestamp < {trace.session.end_ns}",
    )
    assert sorted(found, key=key) == sorted(expected, key=key)


def test_memory_events() -> None:
    name = "p9_gw2"
    trace = load_trace(fixture_trace(name))
    found = table(trace, "memory_events", "time_ns", "free", "bytes", "address", "correlation_id")
    expected = [
        (r[0], bool(r[1]), r[2], int(str(r[3])) & (1 << 64) - 1, r[4] or None)
        for r in rows(
            name, "SELECT start, memoryOperationType, bytes, address, correlationId FROM CUDA_GPU_MEMORY_USAGE_EVENTS"
        )
    ]
    assert sorted(found, key=key) == sorted(expected, key=key)
