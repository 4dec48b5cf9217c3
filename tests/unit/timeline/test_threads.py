"""Threads, processes and their names."""

from __future__ import annotations

from pathlib import Path

from nvprof_tools.errors import SourceError
from nvprof_tools.timeline.ids import MOST_IDENTIFIERS, Interned
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export
from tests.fixture_files import fixture_trace


def test_only_threads_with_events_by_process_and_tid(tmp_path: Path) -> None:
    export = Export()
    export.process(100, "C:\\tools\\first.exe")
    export.process(200, "/opt/second")
    export.process(300, "never seen")
    export.call(1, 2, "cudaFree_v3020", thread=9)
    export.call(3, 4, "cudaFree_v3020", thread=5)
    export.call(5, 6, "cudaFree_v3020", thread=5, pid=200)
    export.call(7, 3, "cudaFree_v3020", thread=77)  # reversed: set aside, so its thread has no event
    trace = load_trace(export.write(tmp_path / "t.sqlite"))
    assert trace["processes"].to_pylist() == [
        {"process": 0, "pid": 100, "name": "first.exe"},
        {"process": 1, "pid": 200, "name": "second"},
    ]
    assert [(t["process"], t["tid"]) for t in trace["threads"].to_pylist()] == [(0, 5), (0, 9), (1, 5)]
    assert trace["api_calls"]["thread"].to_pylist() == [1, 0, 2]


def test_the_last_name_given_counts_and_nvtx_beats_the_system(tmp_path: Path) -> None:
    export = Export()
    export.thread_name(9, "main")
    export.thread_name(9, "worker")
    export.thread_name(5, "main")
    export.nvtx(8, None, "late", kind=39, thread=5)
    export.nvtx(2, None, "early", kind=39, thread=5)
    for thread in (9, 5):
        export.call(1, 2, "cudaFree_v3020", thread=thread)
    trace = load_trace(export.write(tmp_path / "t.sqlite"))
    assert {t["tid"]: t["name"] for t in trace["threads"].to_pylist()} == {5: "late", 9: "worker"}
    assert trace["api_calls"].num_rows == 2


def test_work_without_a_process_belongs_to_the_only_one(tmp_path: Path) -> None:
    export = Export()
    export.call(1, 2, "cudaLaunchKernel_v7000", correlation=1)
    export.kernel(3, 4, correlation=1)
    export.tables["CUPTI_ACTIVITY_KIND_KERNEL"][0]["globalPid"] = None
    trace = load_trace(export.write(tmp_path / "t.sqlite"))
    assert trace["kernels"]["api_call"].to_pylist() == [0]
    export.call(5, 6, "cudaFree_v3020", pid=200)
    del export.tables["StringIds"]
    trace = load_trace(export.write(tmp_path / "u.sqlite"))
    assert trace["kernels"]["api_call"].to_pylist() == [None]
    assert trace["kernels"].num_rows == 1


def test_names_of_a_real_capture() -> None:
    trace = load_trace(fixture_trace("p9_gw2"))
    names = trace["threads"]["name"].to_pylist()
    assert {"gpu-worker-0", "gpu-worker-1", "synth-0"} <= set(names)
    assert trace["processes"]["name"].to_pylist() == ["proof9"]


def test_two_processes_keep_their_rows_apart() -> None:
    """Case 24."""
    trace = load_trace(fixture_trace("p9_two_procs"))
    pids = trace["processes"]["pid"].to_pylist()
    calls = trace["api_calls"].group_by("process").aggregate([("start_ns", "count")]).to_pylist()
    assert sorted(pids[c["process"]] for c in calls) == [1257, 1258]
    process_of_thread = trace["threads"]["process"].to_pylist()
    for row in trace["api_calls"].to_pylist():
        assert process_of_thread[row["thread"]] == row["process"]


def test_a_flood_of_identifiers_is_refused() -> None:
    known = Interned()
    for i in range(MOST_IDENTIFIERS):
        known.code((i,))
    known.code((5,))
    try:
        known.code((-1,))
    except SourceError as error:
        assert error.slug == "limit-identifiers"
    else:
        raise AssertionError("accepted")
