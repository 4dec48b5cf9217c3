"""The same events as an nsys export and as a capture give the same tables and the same answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.from_files import find_log
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.trace import Trace
from nvprof_tools.pipelines.load import builtin_pipelines
from nvprof_tools.report.json_doc import document
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export, global_pid
from tests.capture_from_nsys import Converter
from tests.fixture_files import fixture_log, fixture_trace


def everything() -> Export:
    """One of everything that both can say."""
    export = Export("2025.3")
    export.capture = [("CAPTURE_EVENT_TYPE", "Cuda"), ("COLLECT_GPU_MEMORY_USAGE", "true")]
    export.board(0, ordinal=0)
    export.process(100, "/opt/app/prover")
    export.thread_name(101, "gpu-worker-0")
    export.nvtx(0, None, "named by itself", kind=39, thread=102)
    export.call(100, 200, "cudaHostRegister_v4000", thread=101)
    export.call(210, 260, "cudaMemcpyAsync_ptsz_v7000", correlation=5, thread=101)
    for i, kind in enumerate((0, 1, 2, 8, 9, 10)):
        export.copy(230 + i, 290 + i, kind, size=1 << 20, correlation=5, srcKind=i, dstKind=7 - i)
    export.call(300, 310, "cudaLaunchKernel_v7000", correlation=6, thread=101)
    mangled = {"mangledName": export.string("_Z3nttIiEvPT_"), "demangledName": export.string("void ntt<int>(int*)")}
    export.kernel(320, 400, "ntt", correlation=6, graphNodeId=9, dynamicSharedMemory=512, **mangled)
    plain = {"mangledName": export.string("saxpy"), "demangledName": export.string("saxpy")}
    export.kernel(410, 500, "saxpy", launchType=2, stream=8, **plain)
    export.call(410, 415, "cuMemsetD8Async", correlation=7, thread=101, event_class=1, result=700)
    export.memset(420, 430, correlation=7)
    export.graph(510, 590, correlation=7)
    export.call(440, 500, "cudaStreamSynchronize_v3020", correlation=8, thread=102)
    export.sync(441, 499, correlation=8)
    export.sync(520, 530, kind=1, stream=0xFFFFFFFF)
    export.nvtx(1, None, "nvprof_tools", kind=75, domain=1)
    export.nvtx(1, None, "section", kind=33, domain=1, category=16)
    export.nvtx(90, 600, None, registered="gpu_prove", thread=101, domain=1, category=16, uint64Value=-(1 << 63))
    export.nvtx(91, 92, "signed", thread=101, int32Value=-5, category=3)
    export.nvtx(700, None, "open", thread=101)
    export.nvtx(120, 480, "handed over", kind=60, thread=101, endGlobalTid=export.tid(102), rangeId=4)
    export.nvtx(95, None, "note", kind=34, thread=101, domain=1)
    export.overhead(500, 520, "CUPTI Buffer flush", kind=3, thread=101)
    export.overhead(530, 540, "Lazy function loading", kind=7, thread=101)
    export.memory(50, 4096)
    export.memory(60, 4096, free=True, address=1 << 63, kind=1)
    export.metric(10, 37)
    export.metric(20, 38)
    return export


def both(database: Path, folder: Path) -> tuple[Trace, Trace]:
    """The trace of an export, and of the capture made of it."""
    return load_trace(database), load_trace(Converter(database).write(folder / "capture"))


def test_the_same_events_give_the_same_tables(tmp_path: Path) -> None:
    expected, found = both(everything().write(tmp_path / "t.sqlite"), tmp_path)
    assert found.source.kind == "nvprof-capture"
    for name, table in expected.tables.items():
        if name == "graphs":  # a capture does not know the executable graph
            table = table.set_column(9, "graph_exec_id", found[name]["graph_exec_id"])  # noqa: PLW2901
        assert found[name].schema == table.schema
        assert found[name].to_pylist() == table.to_pylist(), name
    assert found.measured == expected.measured
    assert (found.session.utc_epoch_ns, found.session.end_ns) == (
        expected.session.utc_epoch_ns,
        expected.session.end_ns,
    )
    known = {item.slug for item in expected.quality}
    assert {item.slug for item in found.quality} <= known


def test_processes_share_one_axis(tmp_path: Path) -> None:
    export = everything()
    export.process(200, "/opt/app/helper")
    export.call(50, 60, "cudaMalloc", correlation=5, thread=201, pid=200)
    export.copy(55, 58, correlation=5, pid=200, srcKind=1, dstKind=2)
    export.add("NVTX_EVENTS", start=50, end=70, eventType=59, text="other", globalTid=global_pid(200) | 201)
    expected, found = both(export.write(tmp_path / "t.sqlite"), tmp_path)
    for name in ("api_calls", "copies", "nvtx_ranges", "threads", "processes", "devices"):
        assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.parametrize("name", ["prover_two_workers", "prover_graph", "prover_two_procs"])
def test_real_captures_have_the_same_attribution(name: str, tmp_path: Path) -> None:
    pipelines = builtin_pipelines()
    answers = []
    for trace in both(fixture_trace(name), tmp_path):
        log, _ = find_log(fixture_log(name), trace, pipelines[0], DEFAULT_LIMITS)
        said = document(attribute(trace, log, pipelines, Options()))
        answers.append({key: said[key] for key in said if key not in {"inputs", "quality", "generator", "trace"}})
    expected, found = answers
    for key, value in expected.items():
        assert found[key] == value, key
