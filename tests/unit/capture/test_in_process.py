"""``collect()``: what cupti-python hands over is read like any capture. A stand-in package replays records."""

from __future__ import annotations

import enum
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nvprof_tools.capture import collect
from nvprof_tools.errors import ToolError
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace

KINDS = {
    "MEMCPY": 1, "MEMSET": 2, "DRIVER": 4, "RUNTIME": 5, "DEVICE": 8, "CONTEXT": 9, "CONCURRENT_KERNEL": 10,
    "MARKER": 12, "OVERHEAD": 17, "MEMCPY2": 22, "JIT": 52, "SYNCHRONIZATION": 38, "MEMORY2": 49, "GRAPH_TRACE": 51,
}  # fmt: skip
AHEAD = 5_000_000_000_000
"""By how much the stand-in's clock is ahead of CLOCK_MONOTONIC."""


class FakeCupti:
    """As much of cupti-python's module as is used; ``records`` come with the flush."""

    ActivityKind = enum.IntEnum("ActivityKind", KINDS)

    class cuptiError(Exception):  # noqa: N801 - the package's own name
        """One."""

    def __init__(self) -> None:
        self.enabled: set[int] = set()
        self.refuse: set[str] = set()
        self.records: list[Any] = []
        self.flushes: list[int] = []
        self.fails = False

    def set_thread_id_type(self, kind: int) -> None:
        assert kind == 1

    def activity_enable(self, kind: int) -> None:
        if self.ActivityKind(kind).name in self.refuse or "ALL" in self.refuse:
            raise self.cuptiError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)")
        self.enabled.add(int(kind))

    def activity_disable(self, kind: int) -> None:
        self.enabled.discard(int(kind))

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        assert requested() == (8 << 20, 0)
        self.completed = completed

    def activity_flush_all(self, flag: int) -> None:
        if self.fails:
            raise RuntimeError("the context is gone")
        self.flushes.append(flag)
        self.completed(self.records)

    def activity_get_num_dropped_records(self, context: int, stream: int, place: int) -> None:
        assert (context, stream) == (0, 0)
        assert place

    def get_timestamp(self) -> int:
        return time.monotonic_ns() + AHEAD

    def get_callback_name(self, domain: int, cbid: int) -> str:
        return {(2, 211): "cudaLaunchKernel_v7000", (1, 5): "cuInit"}[domain, cbid]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    module = ModuleType("cupti")
    module.cupti = FakeCupti()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupti", module)
    return module.cupti  # type: ignore[attr-defined,no-any-return]


def record(kind: str, **values: Any) -> SimpleNamespace:
    common = {"device_id": 0, "context_id": 1, "stream_id": 7, "correlation_id": 3, "graph_node_id": 0, "graph_id": 0}
    return SimpleNamespace(kind=KINDS[kind], **common | values)


def of_thread(tid: int) -> dict[str, Any]:
    return {"object_kind": 2, "object_id": SimpleNamespace(pt=SimpleNamespace(thread_id=tid, process_id=1))}


def kernel(start: int, name: str = "_Z3addPf") -> SimpleNamespace:
    sizes = dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 2)
    return record(
        "CONCURRENT_KERNEL", start=start, end=start + 1000, name=name, static_shared_memory=0, dynamic_shared_memory=64,
        registers_per_thread=16, launch_type=0, **sizes,
    )  # fmt: skip


def loaded(folder: Path) -> Trace:
    return load_trace(folder)


def test_records_become_a_trace(fake: FakeCupti, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with collect(folder, memory=True, driver=True) as path:
        assert {KINDS[k] for k in ("CONCURRENT_KERNEL", "RUNTIME", "MEMORY2", "DRIVER", "GRAPH_TRACE")} <= fake.enabled
        now = fake.get_timestamp()
        fake.records = [
            record("DEVICE", id=0, name="NVIDIA H200", global_memory_size=1 << 37,
                   global_memory_bandwidth=4_800_000_000, compute_capability_major=9,
                   compute_capability_minor=0, num_multiprocessors=132,
                   max_warps_per_multiprocessor=64, core_clock_rate=1_980_000),
            record("RUNTIME", start=now, end=now + 50, thread_id=77, cbid=211, return_value=0),
            record("DRIVER", start=now, end=now + 50, thread_id=77, cbid=5, return_value=0, correlation_id=9),
            kernel(now + 100),
            kernel(0),
            record("MEMCPY", start=now, end=now + 9, bytes=4096, copy_kind=1, src_kind=2, dst_kind=3, flags_=1),
            record("MEMSET", start=now, end=now + 9, bytes=64, value=0, memory_kind=3),
            record("SYNCHRONIZATION", start=now, end=now + 9, type=3),
            record("OVERHEAD", start=now, end=now + 9, overhead_kind=1 << 16, **of_thread(77)),
            record("MEMORY2", timestamp=now, address=1 << 40, bytes=512, memory_kind=3, memory_operation_type=1),
            record("MARKER", id=1, timestamp=now, flags_=2, name="work", domain="mine", **of_thread(77)),
            record("MARKER", id=1, timestamp=now + 500, flags_=4, name=None, domain=None, **of_thread(77)),
            record("MARKER", id=2, timestamp=now + 10, flags_=1, name="note", domain=None, **of_thread(77)),
            record("MARKER", id=3, timestamp=now + 20, flags_=2, name="open", domain=None, **of_thread(77)),
            record("JIT", start=now, end=now),
            SimpleNamespace(kind=KINDS["MEMCPY"]),
        ]  # fmt: skip
        time.sleep(0.01)
    assert fake.enabled == set()
    assert fake.flushes == [1]
    trace = loaded(folder)
    assert trace.source.kind == "nvprof-capture"
    assert path.parent == folder
    calls = trace["api_calls"].to_pylist()
    assert [(c["name"], c["driver_api"], c["end_ns"] - c["start_ns"]) for c in calls] == [
        ("cudaLaunchKernel", False, 50), ("cuInit", True, 50),
    ]  # fmt: skip
    (launch,) = [c for c in calls if not c["driver_api"]]
    # On the session's clock, not on CUPTI's.
    assert 0 <= launch["start_ns"] < 10**9
    assert trace["kernels"].select(["name", "signature", "grid_x", "shared_bytes"]).to_pylist() == [
        {"name": "add", "signature": "add(float*)", "grid_x": 2, "shared_bytes": 64}
    ]
    assert trace["kernels"]["api_call"].to_pylist() == [calls.index(launch)]
    assert trace["copies"].select(["kind", "source_memory", "target_memory"]).to_pylist() == [
        {"kind": "HtoD", "source_memory": "pinned", "target_memory": "device"}
    ]
    assert trace["memory_events"]["free"].to_pylist() == [False]
    assert trace["syncs"]["kind"].to_pylist() == ["stream"]
    assert [(r["name"], r["domain"], r["open"]) for r in trace["nvtx_ranges"].to_pylist()] == [
        ("work", "mine", False), ("open", "", True),
    ]  # fmt: skip
    assert trace["nvtx_marks"]["name"].to_pylist() == ["note"]
    assert trace["threads"]["tid"].to_pylist() == [77]
    assert trace["devices"]["sm_count"].to_pylist() == [132]
    said = {item.slug: item.count for item in trace.quality}
    assert said["rows-without-time"] == 1
    assert not {"capture-unfinished", "capture-truncated", "capture-blocks-malformed"} & set(said)


def test_a_second_stretch_has_a_file_of_its_own(fake: FakeCupti, tmp_path: Path) -> None:
    paths = []
    for _ in range(2):
        with collect(tmp_path) as path:
            paths.append(path)
            fake.records = [kernel(fake.get_timestamp())]
    assert len(set(paths)) == 2
    assert loaded(tmp_path)["kernels"].num_rows == 2


def test_the_program_s_own_error_comes_through(fake: FakeCupti, tmp_path: Path) -> None:
    with pytest.raises(KeyError), collect(tmp_path):
        fake.records = [kernel(fake.get_timestamp())]
        raise KeyError("mine")
    assert loaded(tmp_path)["kernels"].num_rows == 1
    with collect(tmp_path):
        pass


def test_what_is_refused_is_said(fake: FakeCupti, tmp_path: Path) -> None:
    fake.refuse = {"OVERHEAD"}
    with collect(tmp_path):
        fake.records = [kernel(fake.get_timestamp())]
        fake.fails = True
    trace = loaded(tmp_path)
    assert {"collector-refused", "records-dropped"} <= {item.slug for item in trace.quality}


def test_another_profiler_in_the_process(fake: FakeCupti, tmp_path: Path) -> None:
    fake.refuse = {"ALL"}
    with pytest.raises(ToolError) as caught, collect(tmp_path):
        pass
    assert caught.value.slug == "cupti-python-failed"
    assert "MULTIPLE_SUBSCRIBERS" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_one_at_a_time(fake: FakeCupti, tmp_path: Path) -> None:
    with collect(tmp_path), pytest.raises(ToolError) as caught, collect(tmp_path):
        pass
    assert "already" in caught.value.message


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    with pytest.raises(ToolError) as caught, collect(tmp_path):
        pass
    assert caught.value.slug == "cupti-python-missing"
    assert "nvprof-tools[cupti]" in caught.value.hint
