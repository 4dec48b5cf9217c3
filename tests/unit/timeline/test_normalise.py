"""Import: every schema generation, clocks, rows that cannot be used, names, devices, what counts as measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.model.quality import Severity
from nvprof_tools.model.tables import TABLES
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import GENERATIONS, Export, global_pid


def load(export: Export, folder: Path, **how: int) -> Trace:
    return load_trace(export.write(folder / "trace.sqlite", **how))


def slugs(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in trace.quality:
        found[item.slug] = found.get(item.slug, 0) + item.count
    return found


def column(trace: Trace, table: str, name: str) -> list[object]:
    return list(trace[table][name].to_pylist())


def scenario(version: str) -> Export:
    """One of everything a prover's capture has."""
    export = Export(version)
    export.board(0, ordinal=0)
    export.process(100, "/opt/app/prover")
    export.thread_name(101, "gpu-worker-0")
    export.call(100, 200, "cudaHostRegister_v4000", thread=101)
    export.call(210, 260, "cudaMemcpyAsync_ptsz_v7000", correlation=5, thread=101)
    export.copy(230, 290, size=1 << 20, correlation=5, srcKind=1, dstKind=2)
    export.call(300, 310, "cudaLaunchKernel_v7000", correlation=6, thread=101)
    export.kernel(320, 400, "ntt", correlation=6)
    export.call(410, 415, "cuMemsetD8Async", correlation=7, thread=101, event_class=1)
    export.memset(420, 430, correlation=7)
    export.call(440, 500, "cudaStreamSynchronize_v3020", correlation=8, thread=101)
    export.sync(441, 499, correlation=8)
    export.nvtx(90, 600, "gpu_prove", thread=101)
    export.nvtx(95, None, "note", kind=34, thread=101)
    export.os_call(20, 90, "pthread_mutex_lock", thread=101)
    export.overhead(500, 520, "CUPTI Buffer flush", kind=3, thread=101)
    return export


@pytest.mark.parametrize("version", GENERATIONS)
def test_every_generation_gives_the_same_tables(version: str, tmp_path: Path) -> None:
    trace = load(scenario(version), tmp_path)
    assert trace["api_calls"].select(["start_ns", "end_ns", "name", "driver_api"]).to_pylist() == [
        {"start_ns": 100, "end_ns": 200, "name": "cudaHostRegister", "driver_api": False},
        {"start_ns": 210, "end_ns": 260, "name": "cudaMemcpyAsync", "driver_api": False},
        {"start_ns": 300, "end_ns": 310, "name": "cudaLaunchKernel", "driver_api": False},
        {"start_ns": 410, "end_ns": 415, "name": "cuMemsetD8Async", "driver_api": True},
        {"start_ns": 440, "end_ns": 500, "name": "cudaStreamSynchronize", "driver_api": False},
    ]
    kernel = trace["kernels"].to_pylist()[0]
    assert (kernel["start_ns"], kernel["end_ns"], kernel["name"], kernel["api_call"]) == (320, 400, "ntt", 2)
    assert (kernel["grid_x"], kernel["block_x"], kernel["registers"], kernel["cooperative"]) == (4, 128, 32, False)
    copy = trace["copies"].to_pylist()[0]
    assert (copy["kind"], copy["bytes"], copy["source_memory"], copy["api_call"]) == ("HtoD", 1 << 20, "pinned", 1)
    assert column(trace, "memsets", "api_call") == [3]
    assert (column(trace, "syncs", "kind"), column(trace, "syncs", "api_call")) == (["stream"], [4])
    assert (column(trace, "nvtx_ranges", "name"), column(trace, "nvtx_marks", "name")) == (["gpu_prove"], ["note"])
    assert column(trace, "os_calls", "name") == ["pthread_mutex_lock"]
    assert column(trace, "profiler_overhead", "is_profiler") == [True]
    assert [(t["tid"], t["name"]) for t in trace["threads"].to_pylist()] == [(101, "gpu-worker-0")]
    assert column(trace, "devices", "name") == ["NVIDIA H200"]
    assert trace.source.schema_version == GENERATIONS[version]
    assert trace.session.end_ns == (600 if version == "2020.5" else 1_000_000)
    assert ("capture-end-unknown" in slugs(trace)) == (version == "2020.5")
    for name, table in trace.tables.items():
        assert table.schema == TABLES[name].schema
        table.validate(full=True)


def test_import_needs_no_pandas(tmp_path: Path) -> None:
    import subprocess

    path = scenario("2025.3").write(tmp_path / "trace.sqlite")
    code = (
        "import sys; from pathlib import Path; from nvprof_tools.timeline.normalise import load_trace; "
        f"load_trace(Path({str(path)!r})); sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_shuffled_rows_give_equal_tables(tmp_path: Path) -> None:
    export = scenario("2025.3")
    for i in range(40):  # ties on every sort column
        export.call(700, 710, f"cudaFree_v{3000 + i % 3}", thread=101, result=i)
        export.kernel(720, 730, f"k{i % 4}", registersPerThread=i)
        export.metric(800 + i % 5, i, f"m{i % 3}")
    plain = load(export, tmp_path)
    for seed in range(5):
        (tmp_path / str(seed)).mkdir()
        mixed = load(export, tmp_path / str(seed), shuffle=seed)
        for name in TABLES:
            assert mixed[name].equals(plain[name]), name
        assert mixed.quality == plain.quality


def test_normalised_times_are_shifted_back_once(tmp_path: Path) -> None:
    """Case 22: ``--ts-normalize`` adds the wall clock to each time and leaves the wall clock column alone."""
    utc = 1_700_000_000_000_000_000
    plain = scenario("2025.3")
    moved = Export("2025.3", shift=utc)
    moved.metadata = {"EXPORT_PARAM_TIME_NORMALIZE": "true", "EXPORT_CONFIG_TIME_SHIFT": str(utc)}
    for table, rows in plain.tables.items():
        for row in rows:
            times = {k: v + utc for k, v in row.items() if k in {"start", "end"} and isinstance(v, int)}
            moved.add(table, **{**row, **times})
    moved.strings = plain.strings
    (tmp_path / "moved").mkdir()
    first, second = load(plain, tmp_path), load(moved, tmp_path / "moved")
    assert all(first[name].equals(second[name]) for name in TABLES)
    assert first.session.utc_epoch_ns == second.session.utc_epoch_ns == utc
    assert first.session.end_ns == second.session.end_ns


def test_rows_that_cannot_be_used_are_set_aside_and_counted(tmp_path: Path) -> None:
    export = Export(duration=1000)
    export.kernel(10, 20, "good")
    export.kernel(0, 0, "never collected")
    export.kernel(30, 20, "reversed")
    export.kernel(-(1 << 63), 20, "far")
    export.kernel(5, (1 << 63) - 1, "far end")
    export.kernel(1000, 1100, "after the end")
    export.kernel(990, 1010, "across the end")
    export.kernel(15, 15, "empty")
    export.kernel(-50, -40, "early")
    export.os_call(10, 20, "read")
    export.add("OSRT_API", start=1, end=2, nameId=export.string("no thread"))
    trace = load(export, tmp_path)
    assert column(trace, "kernels", "name") == ["early", "good", "empty", "across the end"]
    assert column(trace, "kernels", "end_ns") == [-40, 20, 15, 1000]
    found = slugs(trace)
    assert found["rows-without-time"] == 1
    assert found["rows-reversed"] == 1
    assert found["rows-time-out-of-range"] == 2
    assert found["rows-past-capture"] == 1
    assert found["rows-clipped"] == 1
    assert found["rows-without-thread"] == 1
    said = {i.message for i in trace.quality if i.slug == "rows-read"}
    assert "kernels: 9 rows read, 4 kept, 5 set aside" in said
    assert "os_calls: 2 rows read, 1 kept, 1 set aside" in said


def test_missing_times_are_not_zero(tmp_path: Path) -> None:
    export = Export("2025.3")
    export.add("GPU_METRICS", timestamp=None, typeId=1, metricId=0, value=7)
    export.metric(5, 50)
    trace = load(export, tmp_path)
    assert column(trace, "gpu_metrics", "time_ns") == [5]
    assert slugs(trace)["rows-without-time"] == 1


def test_ordinals_map_to_physical_gpus(tmp_path: Path) -> None:
    """Case 11 and CUDA_VISIBLE_DEVICES: the same ordinal means another GPU in each process."""
    export = Export("2025.3")
    export.board(0, ordinal=3, name="A")
    export.board(1, ordinal=2, name="B")
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=100)
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=200)
    export.kernel(1, 2, "first", device=0)
    export.kernel(3, 4, "second", pid=200, device=0)
    trace = load(export, tmp_path)
    names = trace["devices"]["name"].to_pylist()
    assert [names[d] for d in column(trace, "kernels", "device")] == ["B", "A"]
    assert "device-mapping-assumed" not in slugs(trace)


def test_ordinals_fall_back_to_cu_device_and_say_when_that_is_a_guess(tmp_path: Path) -> None:
    export = Export("2024.5")
    export.board(0, ordinal=1, name="A")
    export.board(1, ordinal=0, name="B")
    export.kernel(1, 2, device=0)
    alone = load(export, tmp_path)
    assert alone["devices"]["name"][column(alone, "kernels", "device")[0]].as_py() == "B"
    assert "device-mapping-assumed" not in slugs(alone)
    other = Export("2024.5")
    other.kernel(1, 2, device=0)
    other.kernel(3, 4, pid=200, device=0)
    (tmp_path / "x").mkdir()
    assert slugs(load(other, tmp_path / "x"))["device-mapping-assumed"] == 1


def test_a_wait_is_on_its_contexts_device(tmp_path: Path) -> None:
    """Synchronisation rows name device 0 whatever the context."""
    export = Export()
    export.kernel(1, 2, device=1, context=4)
    export.sync(3, 4)
    export.tables["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"][0]["contextId"] = 4
    trace = load(export, tmp_path)
    assert column(trace, "syncs", "device") == column(trace, "kernels", "device")


def test_identifiers_are_unsigned(tmp_path: Path) -> None:
    """A hardware id above 127 makes the packed id negative in SQLite."""
    export = Export()
    pid = global_pid(77, hardware=0xFE)
    assert pid < 0
    name = export.string("cudaFree_v3020")
    export.add("CUPTI_ACTIVITY_KIND_RUNTIME", start=1, end=2, globalTid=pid | 5, nameId=name)
    export.memory(10, 64, address=0xFFFF_8000_0000_0000)
    trace = load(export, tmp_path)
    assert [(t["tid"]) for t in trace["threads"].to_pylist()] == [5]
    assert 77 in trace["processes"]["pid"].to_pylist()
    assert column(trace, "memory_events", "address") == [0xFFFF_8000_0000_0000]


def test_unsigned_metric_values_and_negative_times(tmp_path: Path) -> None:
    """Case 17."""
    export = Export()
    export.metric(-500, 40)
    export.metric(0, -1)
    export.metric(0, -16, "PCIe RX Bytes")
    trace = load(export, tmp_path)
    rows = {(r["metric"], r["time_ns"]): r["value"] for r in trace["gpu_metrics"].to_pylist()}
    assert rows["SMs Active [Throughput %]", -500] == 40.0
    assert rows["SMs Active [Throughput %]", 0] is None
    assert rows["PCIe RX Bytes", 0] == float(2**64 - 16)
    assert slugs(trace)["metric-values-implausible"] == 2


def test_metrics_are_named_by_type_and_number(tmp_path: Path) -> None:
    export = Export()
    export.metric(1, 10, "GR Active [Throughput %]", gpu=0)
    export.metric(1, 20, "SMs Active [Throughput %]", gpu=1)
    export.tables["TARGET_INFO_GPU_METRICS"][1]["metricId"] = 0
    export.tables["GPU_METRICS"][1]["metricId"] = 0
    trace = load(export, tmp_path)
    rows = [(r["device"], r["metric"], r["value"]) for r in trace["gpu_metrics"].to_pylist()]
    assert rows == [(0, "GR Active [Throughput %]", 10.0), (1, "SMs Active [Throughput %]", 20.0)]


@pytest.mark.parametrize("damage", [None, '{"SM Active": }', "[1, 2]", '{"a": "b"}', "{" * 100])
def test_json_metrics_of_older_versions(damage: str | None, tmp_path: Path) -> None:
    export = Export("2022.4")
    kind = (1 << 56) + 1
    export.add("GENERIC_EVENT_SOURCES", sourceId=9, nameId=export.string("x"), data=json.dumps({"Name": "GpuMetrics"}))
    export.add("GENERIC_EVENT_SOURCES", sourceId=8, nameId=export.string("FTrace"), data="{}")
    export.add("GENERIC_EVENT_TYPES", typeId=kind, sourceId=9)
    export.add("GENERIC_EVENT_TYPES", typeId=3, sourceId=8)
    for i in range(3):
        sample = {"SM Active": str(10 * i), "GR Active": 20 * i, "note": "text"}
        export.add("GENERIC_EVENTS", rawTimestamp=i, timestamp=100 + i, typeId=kind, data=json.dumps(sample))
    export.add("GENERIC_EVENTS", rawTimestamp=0, timestamp=5, typeId=3, data='{"SM Active": 99}')
    if damage is not None:
        export.add("GENERIC_EVENTS", rawTimestamp=0, timestamp=200, typeId=kind, data=damage)
    trace = load(export, tmp_path)
    rows = [(r["metric"], r["time_ns"], r["value"]) for r in trace["gpu_metrics"].to_pylist()]
    assert rows == [("GR Active", 100 + i, 20.0 * i) for i in range(3)] + [
        ("SM Active", 100 + i, 10.0 * i) for i in range(3)
    ]
    assert slugs(trace).get("metric-json-unreadable", 0) == (damage is not None)


def test_suffixed_tables_are_found(tmp_path: Path) -> None:
    """Case 8."""
    export = scenario("2025.3")
    export.names = {"NVTX_EVENTS": "NVTX_EVENTS_V2", "CUPTI_ACTIVITY_KIND_KERNEL": "CUPTI_ACTIVITY_KIND_KERNEL_V3"}
    trace = load(export, tmp_path)
    assert column(trace, "nvtx_ranges", "name") == ["gpu_prove"]
    assert column(trace, "kernels", "name") == ["ntt"]


def test_newer_schemas_and_partial_exports_are_said(tmp_path: Path) -> None:
    export = scenario("2026.4")
    export.metadata = {"EXPORT_SCHEMA_VERSION": "3.99.0", "EXPORT_PARAM_TABLES_TO_EXPORT": "NVTX_EVENTS,*KERNEL*"}
    trace = load(export, tmp_path)
    assert {"schema-newer", "partial-export"} <= set(slugs(trace))
    assert trace["kernels"].num_rows == 1


def test_absent_is_not_zero(tmp_path: Path) -> None:
    """Case 5 and its like: what was not looked at is not in ``measured``; what was and did not happen is."""
    ranges = Export()
    ranges.nvtx(1, 2, "only a range")
    trace = load(ranges, tmp_path)
    assert trace.measured == {"nvtx_ranges", "nvtx_marks", "threads", "processes"}
    assert "cuda-not-measured" in slugs(trace)
    calls = Export()
    calls.call(1, 2, "cudaFree_v3020")
    (tmp_path / "x").mkdir()
    trace = load(calls, tmp_path / "x")
    assert {"kernels", "copies", "memsets", "syncs", "graphs"} <= trace.measured
    assert not {"gpu_metrics", "os_calls", "memory_events", "nvtx_ranges"} & trace.measured


def test_overhead_by_type_and_by_name(tmp_path: Path) -> None:
    old = Export("2022.4")
    names = [
        "CUPTI: Buffer flush", "TLS allocation", "Unknown", "Chunk Allocation", "dlopen(libcuda.so.1)",
        "CUDA profiling memory allocation", "Driver JIT compiler", "Runtime triggered module loading",
        "Lazy function loading", "Command Buffer Full",
    ]  # fmt: skip
    for i, name in enumerate(names):
        old.overhead(10 * i, 10 * i + 5, name)
    assert column(load(old, tmp_path), "profiler_overhead", "is_profiler") == [True] * 6 + [False] * 4
    new = Export("2026.1")
    for i, kind in enumerate([3, 4, 5, 2, 6, 7, 8]):
        new.overhead(10 * i, 10 * i + 5, "Lazy function loading" if kind == 3 else "x", kind=kind)
    new.overhead(100, 101, "y", kind=8, table="CUPTI_ACTIVITY_KIND_OVERHEAD")
    (tmp_path / "x").mkdir()
    trace = load(new, tmp_path / "x")
    assert column(trace, "profiler_overhead", "is_profiler") == [True] * 3 + [False] * 5
    assert column(trace, "profiler_overhead", "name")[-1] == "y"


def test_diagnostics_become_items_without_paths(tmp_path: Path) -> None:
    export = Export()
    export.say("Not all CUDA events might have been collected.")
    export.say("Reached the size limit on recording trace events for this process")
    export.say("Couldn't allocate CUPTI buffer 3 times. Some CUPTI events may be missing.", severity=3)
    export.say("No CUDA events collected. Does the process use CUDA?")
    export.say("Loaded library: /opt/nvidia/secret/libcupti.so.13", severity=2, time=9_999_999_999)
    trace = load(export, tmp_path)
    by = {i.slug: i for i in trace.quality}
    assert slugs(trace)["events-lost"] == 2
    assert by["trace-truncated"].severity is Severity.DATA_LOSS
    assert by["profiler-note"].severity is Severity.INFO
    assert "secret" not in repr(trace.quality) and "secret" not in str(trace["diagnostics"].to_pylist())
    assert trace["diagnostics"].num_rows == 5


def test_only_allow_listed_facts_are_imported(tmp_path: Path) -> None:
    export = scenario("2025.3")
    export.metadata = {
        "EXPORT_HOST": "secret-host",
        "EXPORT_USER": "secret-user",
        "EXPORT_PARAM_INPUT_PATH": "/secret/x",
    }
    export.capture += [("ENVIRONMENT", "TOKEN=secret"), ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph")]
    export.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="secret-host")
    export.add("TARGET_INFO_SYSTEM_ENV", name="NvDriverVersion", value="580.1")
    export.add("TARGET_INFO_SYSTEM_ENV", name="CudaDriverVersion", value="/secret/path")
    trace = load(export, tmp_path)
    assert trace.session.facts["driver_version"] == "580.1"
    assert trace.session.facts["cuda_graph_trace"] == "Graph"
    everything = repr((trace.source, trace.session, trace.quality)) + "".join(
        str(t.to_pylist()) for t in trace.tables.values()
    )
    assert "secret" not in everything and "/opt/app" not in everything


def test_programs_output_gives_its_log_lines_only(tmp_path: Path) -> None:
    """Case 31."""
    export = scenario("2025.3")
    export.output(
        "/tmp/stdout.log",
        "password=hunter2\n\x1b[2m2026-11-30T18:21:55.1Z\x1b[0m INFO engine: starting cuzk engine\n"
        "2026-11-30T18:21:56.1Z INFO token=hunter2\n",
    )
    export.output(
        "/tmp/stderr.log",
        "hunter2\nTIMELINE,0,SYNTH_START,j,partition=0\nhunter2 between\nTIMELINE,5,SYN2026-11-30T18:21:56Z INFO x\n"
        "TH_END,j,partition=0\nhunter2 again\nCUZK_TIMING: a=1\nCUZK_NTT_H: b=2\n",
    )
    trace = load(export, tmp_path)
    assert trace.embedded_log is not None
    assert trace.embedded_log.splitlines() == [
        "\x1b[2m2026-11-30T18:21:55.1Z\x1b[0m INFO engine: starting cuzk engine",
        "TIMELINE,0,SYNTH_START,j,partition=0",
        "TIMELINE,5,SYN2026-11-30T18:21:56Z INFO x",
        "TH_END,j,partition=0",
        "CUZK_TIMING: a=1",
        "CUZK_NTT_H: b=2",
    ]
    silent = scenario("2025.3")
    silent.output("stdout.log", "nothing of interest\n")
    (tmp_path / "x").mkdir()
    assert load(silent, tmp_path / "x").embedded_log is None


def test_an_implausible_end_is_cut_to_its_streams_next_work(tmp_path: Path) -> None:
    """Case 16: a copy recorded as ending seconds after its stream went on."""
    second = 1_000_000_000
    export = Export(duration=20 * second)
    for i in range(1000):
        export.kernel(i * 10_000_000, i * 10_000_000 + 9_000_000, correlation=i + 1)
    export.copy(5_500, 9 * second, correlation=2001)
    export.copy(2 * second, 2 * second + 5 * second, correlation=2002, stream=9)
    trace = load(export, tmp_path)
    ends = {r["stream"]: r["end_ns"] for r in trace["copies"].to_pylist()}
    assert ends == {7: 10_000_000, 9: 7 * second}
    assert slugs(trace)["rows-end-implausible"] == 1


def test_graphs_seen_and_unseen(tmp_path: Path) -> None:
    """Cases 3 and 4."""
    whole = Export()
    whole.call(1, 2, "cudaGraphLaunch_v10000", correlation=1)
    whole.graph(3, 90, correlation=1)
    trace = load(whole, tmp_path)
    assert column(trace, "graphs", "api_call") == [0] and "graph-work-unseen" not in slugs(trace)
    nodes = Export()
    nodes.call(1, 2, "cudaGraphLaunch_v10000", correlation=1)
    for i in range(3):
        nodes.kernel(10 * i + 3, 10 * i + 9, correlation=1, graphNodeId=40 + i)
    (tmp_path / "n").mkdir()
    trace = load(nodes, tmp_path / "n")
    assert column(trace, "kernels", "api_call") == [0, 0, 0]
    assert column(trace, "kernels", "graph_node") == [40, 41, 42]
    hidden = Export("2023.4")
    hidden.call(1, 2, "cudaGraphLaunch_v10000", correlation=1)
    (tmp_path / "h").mkdir()
    trace = load(hidden, tmp_path / "h")
    assert slugs(trace)["graph-work-unseen"] == 1 and "graphs" not in trace.measured


def test_text_that_is_not_utf8_is_repaired(tmp_path: Path) -> None:
    import sqlite3

    export = scenario("2025.3")
    path = export.write(tmp_path / "trace.sqlite")
    database = sqlite3.connect(path)
    database.execute("UPDATE NVTX_EVENTS SET text = CAST(x'61ff62' AS TEXT) WHERE eventType = 59")
    database.commit()
    database.close()
    trace = load_trace(path)
    assert column(trace, "nvtx_ranges", "name") == ["a\ufffdb"]
    assert slugs(trace)["text-not-utf8"] == 1


def test_batched_copies_and_unified_memory(tmp_path: Path) -> None:
    """Case 10: unified-memory copies have correlation id 0 and no call."""
    export = Export("2026.1")
    export.call(1, 2, "cudaMemcpyAsync_v3020", correlation=4)
    export.copy(3, 4, correlation=4, copyCount=8)
    export.copy(5, 6, 11, correlation=0, stream=0, migrationCause=2)
    trace = load(export, tmp_path)
    assert column(trace, "copies", "copy_count") == [8, None]
    assert column(trace, "copies", "kind") == ["HtoD", "UVM-HtoD"]
    assert column(trace, "copies", "api_call") == [0, None]
    assert column(trace, "copies", "correlation_id") == [4, None]


def test_schema_order_is_that_of_the_specs(tmp_path: Path) -> None:
    trace = load(scenario("2025.3"), tmp_path)
    assert list(trace.tables) == list(TABLES)
    assert isinstance(trace["kernels"], pa.Table)
