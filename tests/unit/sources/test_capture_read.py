"""What a capture says, field by field, and what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.cli.main import run
from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources.capture_file import MOST_FILES, facts_of
from nvprof_tools.timeline.normalise import load_trace
from tests.capture_writer import ABSENT, Capture

BOOT, UTC = 10**15, 17 * 10**17


def begun(**info: object) -> Capture:
    capture = Capture(**info)  # type: ignore[arg-type]
    capture.clock(BOOT, UTC)
    return capture


def finished(capture: Capture, folder: Path, name: str = "p.nvcap", end: int = 10_000) -> Trace:
    capture.clock(BOOT + end, UTC + end)
    return load_trace(capture.write(folder / name))


def item(trace: Trace, slug: str) -> QualityItem:
    (found,) = [i for i in trace.quality if i.slug == slug]
    return found


def rows(trace: Trace, table: str, *columns: str) -> list[tuple[object, ...]]:
    return list(zip(*(trace[table][c].to_pylist() for c in columns), strict=True))


def test_what_is_not_there_is_null(tmp_path: Path) -> None:
    capture = begun()
    capture.row("runtime", start=BOOT + 1, end=BOOT + 2, tid=7, name=capture.word("cudaFree"), returnValue=ABSENT)
    capture.row("runtime", start=BOOT + 3, end=BOOT + 4, tid=7, name=ABSENT, correlationId=ABSENT, returnValue=1)
    capture.row("runtime", start=BOOT + 5, end=BOOT + 6, tid=ABSENT, name=capture.word("cudaFree"))
    capture.row("kernel", start=BOOT + 1, end=BOOT + 2, name=ABSENT, correlationId=0, launchType=3)
    capture.row("synchronization", start=BOOT + 1, end=BOOT + 2, contextId=ABSENT, streamId=ABSENT, syncType=4)
    trace = finished(capture, tmp_path)
    assert rows(trace, "api_calls", "name", "correlation_id", "return_value") == [
        ("cudaFree", None, None),
        ("unknown", None, 1),
    ]
    assert item(trace, "rows-without-thread").count == 1
    assert rows(trace, "kernels", "name", "signature", "mangled", "graph_node", "correlation_id", "cooperative") == [
        ("unknown", None, None, None, None, None)
    ]
    assert rows(trace, "syncs", "stream", "kind") == [(None, "context")]


def test_zero_times_were_not_collected(tmp_path: Path) -> None:
    capture = begun()
    capture.row("kernel", start=0, end=0, name=capture.word("lost"))
    capture.row("kernel", start=BOOT, end=BOOT + 5, name=capture.word("kept"))
    trace = finished(capture, tmp_path)
    assert rows(trace, "kernels", "start_ns", "name") == [(0, "kept")]
    assert item(trace, "rows-without-time").severity == Severity.DATA_LOSS


def test_readable_kernel_names(tmp_path: Path) -> None:
    capture = begun()
    names = ["_ZN3gpu3nttILi2EN2ff2frEEEvPT0_j", "plain_c_name", "_Z", "_Zbroken", "_Z3sumI4pairIiiEEvT_", b"\xff\xfe"]
    for i, name in enumerate(names):
        capture.row("kernel", start=BOOT + i, end=BOOT + i + 1, name=capture.word(name))
    trace = finished(capture, tmp_path)
    assert trace["kernels"]["name"].to_pylist() == ["ntt", "plain_c_name", "_Z", "_Zbroken", "sum", "\ufffd\ufffd"]
    signatures = trace["kernels"]["signature"].to_pylist()
    assert signatures[0] == "void gpu::ntt<2, ff::fr>(ff::fr*, unsigned int)"
    assert signatures[1] == "plain_c_name"
    assert trace["kernels"]["mangled"].to_pylist()[0] == names[0]
    assert item(trace, "text-not-utf8").count == 1


def test_a_call_that_had_not_returned_lasts_to_the_end(tmp_path: Path) -> None:
    capture = begun()
    capture.row("runtime", start=BOOT + 100, end=0, tid=7, name=capture.word("cudaDeviceSynchronize_v3020"))
    capture.row("driver", start=BOOT + 50, end=0, tid=8, name=capture.word("cuCtxSynchronize"))
    trace = finished(capture, tmp_path)
    assert rows(trace, "api_calls", "start_ns", "end_ns", "name", "driver_api") == [
        (50, 10_000, "cuCtxSynchronize", True),
        (100, 10_000, "cudaDeviceSynchronize", False),
    ]
    assert sum(i.count for i in trace.quality if i.slug == "api-calls-open") == 2


def test_names_given_by_the_program_win(tmp_path: Path) -> None:
    capture = begun()
    for tid in (7, 8):
        capture.row("runtime", start=BOOT + tid, end=BOOT + 50, tid=tid, name=capture.word("cudaFree"))
    for tid, name, source in ((7, "by nvtx", 1), (7, "by the system", 0), (8, "first", 0), (8, "second", 0)):
        capture.row("thread_name", tid=tid, name=capture.word(name), source=source)
    trace = finished(capture, tmp_path)
    assert rows(trace, "threads", "tid", "name") == [(7, "by nvtx"), (8, "second")]
    assert rows(trace, "processes", "pid", "name") == [(100, "prover")]


def test_metrics_are_scaled_and_devices_described(tmp_path: Path) -> None:
    capture = begun(pm={"state": "on", "hz": 1000, "gpu_clock": "estimated"})
    capture.row(
        "device", id=0, name=capture.word("NVIDIA H200"), globalMemoryBandwidth=4_814_304_000, coreClockRate=1_980_000,
        numMultiprocessors=132, globalMemorySize=1 << 37, computeMajor=9, maxWarpsPerMultiprocessor=ABSENT,
    )  # fmt: skip
    for number, name, scale in ((1, "SMs Active [Throughput %]", 100), (2, "GPC Clock Frequency [MHz]", 1)):
        capture.row("gpu_metric_name", metricId=number, name=capture.word(name), scale=scale)
    for at, number, value in ((10, 1, 4250), (20, 1, -1), (10, 2, 1980)):
        capture.row("gpu_metric", start=BOOT + at, end=BOOT + at + 10, metricId=number, value=value)
    trace = finished(capture, tmp_path)
    assert rows(trace, "gpu_metrics", "metric", "time_ns", "value")[0] == ("GPC Clock Frequency [MHz]", 10, 1980.0)
    assert rows(trace, "gpu_metrics", "metric", "time_ns", "value")[1] == ("SMs Active [Throughput %]", 10, 42.5)
    assert trace["gpu_metrics"]["value"].to_pylist()[2] is None
    (device,) = trace["devices"].to_pylist()
    assert device == {
        "device": 0, "name": "NVIDIA H200", "sm_count": 132, "memory_bytes": 1 << 37, "clock_hz": 1_980_000_000,
        "memory_bandwidth": 4_814_304_000_000, "max_warps_per_sm": None, "compute_capability": "9.0",
    }  # fmt: skip
    assert trace.session.facts["gpu_metrics_hz"] == "1000"
    assert "late" in item(trace, "collector-note").message


def test_rows_that_say_nothing_are_left_out_and_counted(tmp_path: Path) -> None:
    capture = begun()
    capture.row("overhead", start=BOOT + 1, end=BOOT + 2, overheadKind=1 << 16)
    capture.row("overhead", start=BOOT + 1, end=BOOT + 2, overheadKind=99 << 16, tid=7)
    capture.row("memory", start=BOOT + 1, memoryOperationType=0, bytes=5)
    capture.row("memory", start=BOOT + 2, memoryOperationType=2, bytes=6)
    trace = finished(capture, tmp_path)
    assert rows(trace, "profiler_overhead", "name", "is_profiler") == [("Unknown", True)]
    assert rows(trace, "memory_events", "bytes", "free") == [(6, True)]
    assert sum(i.count for i in trace.quality if i.slug == "capture-rows-unused") == 2


def test_the_session_is_where_the_snapshots_are(tmp_path: Path) -> None:
    first, second = begun(pid=1), Capture(pid=2)
    first.row("runtime", start=BOOT + 5, end=BOOT + 6, tid=1, name=first.word("a"))
    first.clock(BOOT + 400, UTC + 400 + 5_000_000)
    second.clock(BOOT - 1_000, UTC - 1_000)
    second.row("runtime", start=BOOT + 7, end=BOOT + 8, tid=1, name=second.word("b"))
    second.clock(BOOT + 9_000, UTC + 9_000)
    first.write(tmp_path / "p-1.nvcap")
    second.write(tmp_path / "p-2.nvcap")
    trace = load_trace(tmp_path)
    assert (trace.session.utc_epoch_ns, trace.session.end_ns) == (UTC - 1_000, 10_000)
    assert rows(trace, "api_calls", "start_ns", "name") == [(1_005, "a"), (1_007, "b")]
    assert "5.0 ms" in item(trace, "wall-clock-set").message
    assert trace.source.kind == "nvprof-capture"


def test_a_capture_that_was_cut_ends_with_its_last_event(tmp_path: Path) -> None:
    capture = begun()
    capture.end = None
    capture.row("runtime", start=BOOT + 700, end=BOOT + 900, tid=1, name=capture.word("a"))
    capture.row("kernel", start=BOOT + 800, end=BOOT + (1 << 60), name=capture.word("k"))
    trace = load_trace(capture.write(tmp_path / "p.nvcap"))
    assert trace.session.end_ns == 900
    assert item(trace, "capture-unfinished").severity == Severity.DATA_LOSS


def test_without_snapshots_the_first_event_begins_it(tmp_path: Path) -> None:
    capture = Capture()
    capture.row("runtime", start=BOOT + 700, end=BOOT + 900, tid=1, name=capture.word("a"))
    trace = load_trace(capture.write(tmp_path / "p.nvcap"))
    assert rows(trace, "api_calls", "start_ns", "end_ns") == [(0, 200)]
    assert {"capture-clock-missing", "capture-end-unknown", "wall-clock-unknown"} <= {i.slug for i in trace.quality}


SAID = {
    "subscriber-present": ("collector-not-alone", Severity.DATA_LOSS),
    "cupti-missing": ("collector-without-cupti", Severity.DATA_LOSS),
    "cupti-refused": ("collector-refused", Severity.DATA_LOSS),
    "buffer-declined": ("records-dropped", Severity.DATA_LOSS),
    "records-dropped": ("records-dropped", Severity.DATA_LOSS),
    "record-unknown": ("collector-note", Severity.INFO),
    "nvtx-dropped": ("records-dropped", Severity.DATA_LOSS),
    "nvtx-unmatched": ("collector-note", Severity.INFO),
    "driver-rows-late": ("collector-note", Severity.NOTICE),
    "pm-refused": ("gpu-metrics-refused", Severity.NOTICE),
    "pm-overflow": ("gpu-metrics-incomplete", Severity.DATA_LOSS),
    "pm-stopped": ("gpu-metrics-incomplete", Severity.DATA_LOSS),
    "flush-timeout": ("records-dropped", Severity.DATA_LOSS),
    "write-failed": ("capture-disk-full", Severity.DATA_LOSS),
    "memory-short": ("records-dropped", Severity.DATA_LOSS),
    "something-new": ("collector-note", Severity.NOTICE),
}


@pytest.mark.parametrize("slug", SAID)
def test_what_the_collector_says_is_told(slug: str, tmp_path: Path) -> None:
    capture = begun()
    capture.notice(slug, 12, "because\nof\x1b[31m this")
    trace = finished(capture, tmp_path)
    found = item(trace, SAID[slug][0])
    assert (found.severity, found.count) == (SAID[slug][1], 12)
    assert found.message.endswith("(12): because of [31m this")


def test_drops_without_a_notice_are_told_too(tmp_path: Path) -> None:
    capture = begun()
    capture.end = {"dropped_by_cupti": 3, "dropped_by_us": 4, "complete": False}
    trace = finished(capture, tmp_path)
    assert sorted(i.count for i in trace.quality if i.slug == "records-dropped") == [3, 4]


def test_facts_are_plain_words(tmp_path: Path) -> None:
    capture = begun(collector="1.2/../x\n", program="/home/somebody/prover", cupti=130000)
    trace = finished(capture, tmp_path)
    said = facts_of(tmp_path / "p.nvcap", DEFAULT_LIMITS)
    assert said == {"version": "1.2?..?x", "cupti": "130000", "driver_api": "13000"}
    assert "collector_version" not in trace.session.facts
    capture.row("runtime", start=BOOT + 1, end=BOOT + 2, tid=7, name=capture.word("cudaFree"))
    assert rows(finished(capture, tmp_path), "processes", "name") == [("prover",)]


def test_import_attribute_and_report_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    capture = begun()
    capture.row(
        "runtime", start=BOOT + 1, end=BOOT + 2, tid=7, name=capture.word("cudaLaunchKernel_v7000"), correlationId=3
    )
    capture.row("kernel", start=BOOT + 5, end=BOOT + 900, name=capture.word("k"), correlationId=3, streamId=7)
    finished(capture, folder)
    assert run(["import", str(folder), "-o", str(tmp_path / "tables")]) == 0
    assert load_trace(tmp_path / "tables")["kernels"].to_pylist() == load_trace(folder)["kernels"].to_pylist()
    for path in (folder, folder / "p.nvcap"):
        assert run(["attribute", str(path), "--window", "trace"]) == 0
        assert "kernel_busy" in capsys.readouterr().out
    assert run(["report", str(folder), "-o", str(tmp_path / "r.html")]) == 0
    assert "nvprof-capture" in (tmp_path / "r.html").read_text("utf-8")


def test_a_process_that_replaced_itself_is_no_loss(tmp_path: Path) -> None:
    shell, program = begun(), Capture()
    shell.end = None
    shell.write(tmp_path / "sh-100.nvcap")
    program.clock(BOOT + 50, UTC + 50)
    trace = finished(program, tmp_path, "prover-100-1.nvcap")
    assert "capture-unfinished" not in {i.slug for i in trace.quality}
    trace = load_trace(tmp_path)
    found = item(trace, "capture-unfinished")
    assert (found.severity, "exec" in found.message) == (Severity.INFO, True)


def test_a_folder_of_very_many_files_is_refused(tmp_path: Path) -> None:
    data = Capture().bytes()
    (tmp_path / "first.nvcap").write_bytes(data)
    for i in range(MOST_FILES):
        (tmp_path / f"{i}.nvcap").hardlink_to(tmp_path / "first.nvcap")
    with pytest.raises(SourceError) as caught:
        load_trace(tmp_path)
    assert caught.value.slug == "limit-tables"


def test_a_loss_that_lasts_is_told_once_and_the_end_is_found_behind_it(tmp_path: Path) -> None:
    capture = begun()
    for _ in range(12_000):
        capture.notice("records-dropped", 2, "again")
    trace = finished(capture, tmp_path)
    assert item(trace, "records-dropped").count == 24_000
    assert "capture-unfinished" not in {i.slug for i in trace.quality}


def test_a_full_disk_is_no_killed_program(tmp_path: Path) -> None:
    capture = begun()
    capture.notice("write-failed", 1, "No space left on device")
    capture.end = None
    slugs = {i.slug for i in finished(capture, tmp_path).quality}
    assert "capture-disk-full" in slugs
    assert "capture-unfinished" not in slugs
