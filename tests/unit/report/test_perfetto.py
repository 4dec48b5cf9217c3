"""The Perfetto trace read back through the published schema: nesting, durations, names, flows, counters."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import attribution_samples as samples
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import Trace
from nvprof_tools.report.base import Report
from nvprof_tools.report.nesting import misnested, stack_order
from nvprof_tools.report.packets import TIME_MARK, Block, Template, interleaved
from nvprof_tools.report.perfetto import PerfettoTrace

EVENT = schema.TrackEvent


@dataclass
class Read:
    """A file as a reader with one stack a track understands it."""

    tracks: dict[int, schema.TrackDescriptor] = field(default_factory=dict)
    slices: dict[str, list[tuple[int, int, str, str, int, tuple[int, ...]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Path of a track → (start, end, name, category, depth, flows)."""
    instants: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))

    def path(self, uuid: int) -> str:
        d = self.tracks[uuid]
        own = d.name or d.thread.thread_name or d.process.process_name
        return f"{self.path(d.parent_uuid)}/{own}" if d.parent_uuid else own


def read(data: bytes) -> Read:
    trace = schema.Trace()
    trace.ParseFromString(data)
    out = Read()
    names: dict[int, str] = {}
    categories: dict[int, str] = {}
    events = []
    assert trace.packet[0].sequence_flags & schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        names |= {e.iid: e.name for e in packet.interned_data.event_names}
        categories |= {e.iid: e.name for e in packet.interned_data.event_categories}
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in out.tracks
            out.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events.append(packet)
    open_slices: dict[int, list[tuple[int, str, str, tuple[int, ...]]]] = defaultdict(list)
    for packet in sorted(events, key=lambda p: p.timestamp):
        e = packet.track_event
        path = out.path(e.track_uuid)
        if e.type == EVENT.TYPE_SLICE_BEGIN:
            item = (packet.timestamp, names[e.name_iid], categories[e.category_iids[0]], tuple(e.flow_ids))
            open_slices[e.track_uuid].append(item)
        elif e.type == EVENT.TYPE_SLICE_END:
            start, name, category, flows = open_slices[e.track_uuid].pop()
            depth = len(open_slices[e.track_uuid])
            out.slices[path].append((start, packet.timestamp, name, category, depth, flows))
        elif e.type == EVENT.TYPE_INSTANT:
            out.instants[path].append((packet.timestamp, names[e.name_iid]))
        elif e.type == EVENT.TYPE_COUNTER:
            out.counters[path].append((packet.timestamp, e.double_counter_value))
    assert not any(open_slices.values()), "a slice was never closed"
    return out


def rendered(a: Attribution, trace: Trace | None) -> bytes:
    out = io.BytesIO()
    PerfettoTrace().render(Report(a, trace), out)
    return out.getvalue()


@pytest.fixture(scope="module")
def rich() -> Read:
    return read(rendered(samples.rich(), samples.rich_trace()))


def test_kernels_keep_name_start_and_end(rich: Read) -> None:
    table = samples.rich_trace()["kernels"]
    want = sorted(zip(*(table.column(c).to_pylist() for c in ("start_ns", "end_ns", "name")), strict=True))
    got = sorted((s, e, n) for s, e, n, _, _, _ in rich.slices["GPU 0 (NVIDIA H200)/kernels, stream 7"])
    assert got == want
    assert {c for _, _, _, c, _, _ in rich.slices["GPU 0 (NVIDIA H200)/kernels, stream 7"]} == {"kernel"}


def test_each_kernel_is_tied_to_its_launch(rich: Read) -> None:
    trace = samples.rich_trace()
    calls = trace["api_calls"].column("start_ns").to_pylist()
    want = {
        (calls[call], start)
        for call, start in zip(*(trace["kernels"].column(c).to_pylist() for c in ("api_call", "start_ns")), strict=True)
    }
    launches = {
        flow: start
        for path, rows in rich.slices.items()
        if path.startswith("prover/worker-")
        for start, _, name, _, _, flows in rows
        if name == "cudaLaunchKernel"
        for flow in flows
    }
    kernels = {f: s for s, _, _, _, _, flows in rich.slices["GPU 0 (NVIDIA H200)/kernels, stream 7"] for f in flows}
    assert {(launches[f], s) for f, s in kernels.items()} == want
    assert len(launches) == len(kernels) == 960


def test_idle_causes_have_a_track_of_their_own(rich: Read) -> None:
    total: Mapping[str, int] = defaultdict(int)
    for start, end, _, category, _, _ in rich.slices["GPU 0 (NVIDIA H200)/GPU 0 idle"]:
        total[category] += end - start  # type: ignore[index]
    idle = {c: samples.ns(v) for c, v in samples.DEVICE_MS.items() if c not in samples.BUSY}
    assert dict(total) == idle


def test_sections_and_what_they_do(rich: Read) -> None:
    sections = [row for path in ("worker 0", "worker 1") for row in rich.slices[f"{path}/{path}: sections"]]
    assert sum(e - s for s, e, *_ in sections) == sum(p.wall_ns or 0 for p in samples.rich().partitions)
    names = {n for path in ("worker 0", "worker 1") for _, _, n, *_ in rich.slices[f"{path}/{path}: what they do"]}
    assert {"mutex_wait", "launch, waits in the driver for host_register"} <= names


def test_counters_keep_time_and_value(rich: Read) -> None:
    table = samples.rich_trace()["gpu_metrics"]
    rows = [r for r in table.to_pylist() if r["metric"] == "SMs Active [Throughput %]"]
    got = rich.counters["GPU 0 (NVIDIA H200)/SMs Active [Throughput %]"]
    assert got == [(r["time_ns"], r["value"]) for r in rows]
    memory = samples.rich().memory[0]
    want = list(zip(memory.times_ns, map(float, memory.bytes_in_use), strict=True))
    assert rich.counters["GPU 0 (NVIDIA H200)/device memory in use"] == want


def test_graph_launches_fan_out_copies_and_calls_nest() -> None:
    calls = [
        {"start_ns": 10, "end_ns": 50, "name": "cudaGraphLaunch", "thread": 0},
        {"start_ns": 12, "end_ns": 40, "name": "cuGraphLaunch", "thread": 0},
        {"start_ns": 60, "end_ns": 60, "name": "instant", "thread": 0},
        {"start_ns": 70, "end_ns": 90, "name": "cudaMemcpyAsync", "thread": 0},
    ]
    kernels = [{"start_ns": 60 + i * 10, "end_ns": 70 + i * 10, "name": f"k{i}", "api_call": 0} for i in range(3)]
    copies = [{"start_ns": 95, "end_ns": 99, "kind": "HtoD", "api_call": 3}]
    trace = samples.make_trace(
        {"api_calls": calls, "kernels": kernels, "copies": copies, "threads": [{"tid": 7}], "processes": [{"pid": 9}]}
    )
    got = read(rendered(samples.empty(), trace))
    thread = got.slices["process 9/thread 7"]
    assert [(n, d) for _, _, n, _, d, _ in sorted(thread)] == [
        ("cudaGraphLaunch", 0), ("cuGraphLaunch", 1), ("cudaMemcpyAsync", 0),
    ]  # fmt: skip
    assert got.instants["process 9/thread 7"] == [(60, "instant")]
    flows = {n: f for _, _, n, _, _, f in thread}
    assert len(flows["cudaGraphLaunch"]) == 3
    assert sorted(f for row in got.slices["GPU 0/kernels, stream 0"] for f in row[5]) == sorted(
        flows["cudaGraphLaunch"]
    )
    assert got.slices["GPU 0/copies, stream 0"][0][5] == flows["cudaMemcpyAsync"]
    assert flows["cuGraphLaunch"] == ()


def test_times_before_zero_are_moved_together() -> None:
    trace = samples.make_trace(
        {"kernels": [{"start_ns": -50, "end_ns": -20, "name": "a"}, {"start_ns": -10, "end_ns": 5, "name": "b"}]}
    )
    got = read(rendered(samples.empty(), trace)).slices["GPU 0/kernels, stream 0"]
    assert [(s, e, n) for s, e, n, *_ in got] == [(0, 30, "a"), (40, 55, "b")]


def test_kernels_that_overlap_on_one_stream_are_all_there() -> None:
    rows = [(0, 10, "a"), (5, 15, "b"), (12, 30, "c"), (13, 20, "d")]
    trace = samples.make_trace({"kernels": [{"start_ns": s, "end_ns": e, "name": n} for s, e, n in rows]})
    got = read(rendered(samples.empty(), trace))
    assert sorted((s, e, n) for track in got.slices.values() for s, e, n, *_ in track) == rows


@cache
def hostile(payload: str) -> Read:
    return read(rendered(samples.hostile(payload), samples.hostile_trace(payload)))


@pytest.mark.parametrize("payload", samples.HOSTILE)
def test_hostile_names_are_only_names(payload: str) -> None:
    got, plain = hostile(payload), hostile("plain")
    assert sum(map(len, got.slices.values())) == sum(map(len, plain.slices.values()))
    assert len(got.tracks) == len(plain.tracks)


slices = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 15)), max_size=25).map(
    lambda rows: [(s, s + length) for s, length in rows]
)


@given(slices)
def test_what_is_left_nests_and_nothing_that_nests_is_set_apart(rows: list[tuple[int, int]]) -> None:
    start, end = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    bad = misnested(start, end)
    kept = [r for r, b in zip(rows, bad.tolist(), strict=True) if not b]

    def crosses(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]

    assert not any(crosses(a, b) for i, a in enumerate(kept) for b in kept[:i])
    if not any(crosses(a, b) for i, a in enumerate(rows) for b in rows[:i]):
        assert not bad.any()


@given(slices)
def test_edges_come_in_the_order_of_a_stack(rows: list[tuple[int, int]]) -> None:
    start, end = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    keep = np.flatnonzero(~misnested(start, end))
    index, begins = stack_order(start[keep], end[keep])
    stack: list[int] = []
    last = 0
    for i, is_begin in zip(index.tolist(), begins.tolist(), strict=True):
        time = int((start if is_begin else end)[keep][i])
        assert time >= last
        last = time
        if is_begin:
            stack.append(i)
        else:
            assert stack.pop() == i
    assert stack == []


def test_bulk_packets_are_the_librarys_own_bar_wide_integers() -> None:
    packet = schema.TracePacket()
    packet.trusted_packet_sequence_id = 3
    packet.timestamp = TIME_MARK
    packet.track_event.track_uuid = 5
    template = Template(packet, {"time": TIME_MARK})
    times = np.array([0, 1, 127, 128, 2**31, 2**62 - 1], np.int64)
    data = b"".join(interleaved([Block(template, {"time": times}, np.arange(6)[::-1].copy())]))
    trace = schema.Trace()
    trace.ParseFromString(data)
    assert [p.timestamp for p in trace.packet] == times[::-1].tolist()
    for p in trace.packet:
        want = schema.TracePacket()
        want.CopyFrom(packet)
        want.timestamp = p.timestamp
        assert p == want


def test_a_mark_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        Template(schema.TracePacket(), {"time": TIME_MARK})
