"""CUPTI's records arrive as they were handed out: each kind, each loss, each refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.native.collector.capture import NONE, Capture
from tests.native.collector.conftest import Kit, Ran

Run = Callable[..., Ran]


def the_row(capture: Capture, table: str) -> dict[str, int]:
    """The only row of a table."""
    rows = capture.table(table)
    assert len(rows) == 1, (table, rows)
    return rows[0]


def test_every_kind(run: Run) -> None:
    ran = run("kinds")
    assert ran.code == 0
    capture = ran.only()
    assert [(capture.text(r["name"]), r["start"], r["end"], r["correlationId"]) for r in capture.table("kernel")] == [
        ("second", 2000, 2500, 22),
        ("first", 1000, 1500, 11),
        ("timeless", 0, 0, 33),
    ]
    kernel = capture.table("kernel")[0]
    assert [kernel[name] for name in ("deviceId", "contextId", "streamId", "gridX", "gridY", "gridZ")] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    assert [kernel[name] for name in ("blockX", "blockY", "blockZ", "registersPerThread")] == [7, 8, 9, 10]
    assert [kernel[name] for name in ("staticSharedMemory", "dynamicSharedMemory", "graphNodeId")] == [11, 12, 13]
    assert kernel["localMemoryTotal"] == 14
    copy, peer = capture.table("memcpy")
    assert (copy["copyKind"], copy["srcKind"], copy["dstKind"], copy["flags"], copy["bytes"]) == (1, 2, 3, 1, 4096)
    assert (copy["srcDeviceId"], peer["srcDeviceId"], peer["dstDeviceId"], peer["bytes"]) == (NONE, 0, 1, 8192)
    assert [the_row(capture, "memset")[name] for name in ("value", "bytes", "memKind")] == [255, 64, 3]
    call = the_row(capture, "runtime")
    assert (call["cbid"], call["tid"], capture.text(call["name"])) == (
        211,
        capture.infos["pid"],
        "cudaLaunchKernel_v7000",
    )
    sync = the_row(capture, "synchronization")
    assert (sync["syncType"], sync["streamId"], sync["eventId"], sync["returnValue"]) == (3, 3, NONE, NONE)
    overhead = the_row(capture, "overhead")
    assert (overhead["overheadKind"], overhead["tid"], overhead["deviceId"]) == (1 << 16, 77, NONE)
    memory = the_row(capture, "memory")
    assert (memory["memoryOperationType"], memory["bytes"], memory["start"], memory["name"]) == (1, 1 << 20, 4400, NONE)
    assert [the_row(capture, "memory_pool")[name] for name in ("size", "start", "utilizedSize")] == [1 << 21, 4500, 5]
    assert [the_row(capture, "graph")[name] for name in ("start", "end", "graphId")] == [4600, 4700, 6]
    assert the_row(capture, "context")["deviceId"] == 1
    device = the_row(capture, "device")
    assert (device["numMultiprocessors"], device["computeMajor"]) == (132, 9)
    assert capture.strings[device["name"]] == b"A \xff device"
    assert the_row(capture, "stream")["streamId"] == 3
    assert capture.slugs() == {"record-unknown": 1}
    assert capture.end is not None
    assert capture.end["dropped_by_us"] == 1
    assert {table: count for table, count in capture.end["rows"].items() if count} == {
        table: len(rows) for table, rows in capture.rows.items()
    }
    assert capture.infos["program"] == "scenario"


def test_a_full_pool_costs_records_and_no_time(run: Run) -> None:
    emitted = 100_000
    ran = run("burst", str(emitted), env={"NVPROF_COLLECTOR_BUFFER": "8192", "NVPROF_COLLECTOR_POOL": "16384"})
    capture = ran.only()
    dropped = int(ran.out)
    assert capture.end is not None
    assert dropped > 0, "two buffers are too few"
    assert len(capture.table("kernel")) == emitted - dropped
    assert capture.end["dropped_by_cupti"] == dropped == capture.slugs()["records-dropped"]
    assert capture.end["buffers"]["declined"] == capture.slugs()["buffer-declined"] > 0
    assert capture.end["complete"] is False


def test_nothing_is_lost_where_the_pool_is_large(run: Run) -> None:
    ran = run("burst", "50000")
    capture = ran.only()
    assert ran.out.strip() == "0"
    assert [row["correlationId"] for row in capture.table("kernel")] == list(range(50_000))
    assert capture.end is not None
    assert capture.end["complete"] is True


def test_another_subscriber(run: Run) -> None:
    ran = run("kinds", env={"FAKE_CUPTI_SUBSCRIBED": "CUPTI for Some Tool"})
    assert ran.code == 0
    capture = ran.only()
    assert capture.slugs() == {"subscriber-present": 1}
    assert "CUPTI for Some Tool" in capture.notices[0]["message"]
    assert "kernel" not in capture.rows
    assert capture.end is not None


def test_another_tool_in_the_environment(run: Run) -> None:
    capture = run("nothing", env={"NSYS_PROFILING_SESSION_ID": "1"}).only()
    assert "Nsight Systems" in capture.notices[0]["message"]


def test_no_cupti(run: Run) -> None:
    ran = run("nothing", env={"NVPROF_COLLECTOR_CUPTI": "/nowhere/libcupti.so"})
    assert ran.code == 0
    assert ran.only().slugs() == {"cupti-missing": 1}


def test_a_kind_that_is_refused(run: Run) -> None:
    capture = run("kinds", env={"FAKE_CUPTI_REFUSES": "50"}).only()
    assert capture.slugs()["cupti-refused"] == 1
    assert "MEMORY_POOL" not in capture.infos["enabled"]
    assert "CONCURRENT_KERNEL" in capture.infos["enabled"]
    assert capture.infos["refused"][0]["what"] == "MEMORY_POOL"


def test_nowhere_to_write(run: Run, tmp_path: Path) -> None:
    assert run("mark", env={"NVPROF_COLLECTOR_OUT": str(tmp_path / "missing")}).code == 0
    ran = run("mark", env={"NVPROF_COLLECTOR_OUT": ""})
    assert (ran.code, ran.files) == (0, [])


def test_driver_calls_under_the_runtime_are_left_out(run: Run) -> None:
    ran = run("nested", "3000")
    capture = ran.only()
    off, on = map(int, ran.out.split())
    assert off >= 1, "a function seen below the runtime only is switched off"
    assert on >= 2, "and on again for a moment, and for good after an own call"
    assert [row["correlationId"] for row in capture.table("driver")] == [99]
    assert len(capture.table("runtime")) == 3001
    assert capture.end is not None
    assert capture.end["driver_rows_nested"] == 3000
    assert capture.slugs() == {"driver-rows-late": 1}


def test_own_driver_calls_are_kept(run: Run) -> None:
    capture = run("own").only()
    assert [row["correlationId"] for row in capture.table("driver")] == [0, 1, 2, 3, 4]
    assert {capture.text(row["name"]) for row in capture.table("driver")} == {"cuLaunchKernel"}


def test_all_driver_calls_on_request(run: Run) -> None:
    capture = run("nested", "20", env={"NVPROF_COLLECTOR_DRIVER": "all"}).only()
    assert len(capture.table("driver")) == 21


def test_times_are_monotonic_with_or_without_our_clock(run: Run, tmp_path: Path) -> None:
    for number, env in enumerate(({}, {"FAKE_CUPTI_NO_CLOCK": "1"})):
        ran = run("clocks", env=env | {"NVPROF_COLLECTOR_OUT": str(tmp_path)})
        capture = max((Ran(0, "", "", [path]).only() for path in ran.files), key=lambda one: one.infos["pid"])
        told = int(ran.out)
        kernel = the_row(capture, "kernel")
        assert kernel["end"] - kernel["start"] == 1000
        assert abs(kernel["start"] - told) < 50_000_000
        assert capture.infos["cupti_clock"] == ("callback", "converted")[number]
        clocks = capture.table("clock")
        assert len(clocks) >= 3
        assert clocks[0]["cupti"] == 0
        assert all(row["realtime"] - row["monotonic"] > 0 for row in clocks)
        assert [row["monotonic"] for row in clocks] == sorted(row["monotonic"] for row in clocks)


def test_threads(checked: Kit, raced: Kit, tmp_path: Path) -> None:
    for kit in (checked, raced):
        out = tmp_path / kit.sanitizer
        out.mkdir()
        each = 2000
        ran = kit.run(out, "threads", str(each), env={"NVPROF_COLLECTOR_BUFFER": "65536"})
        assert ran.code == 0
        capture = ran.only()
        assert ran.out.strip() == "0"
        for table in ("kernel", "runtime"):
            assert sorted(row["correlationId"] for row in capture.table(table)) == list(range(8 * each)), table
        ranges = capture.table("nvtx_range")
        lost = capture.slugs().get("nvtx-dropped", 0)
        assert len(ranges) == 8 * each * 2 or lost > 0
        for thread in {row["tid"] for row in ranges}:
            mine = [row for row in ranges if row["tid"] == thread]
            assert {capture.text(row["text"]) for row in mine if capture.text(row["text"]) != "outer"} <= {
                f"kernel_{number}" for number in range(8)
            }
            assert all(row["start"] <= row["end"] for row in mine)
        given = [capture.text(row["name"]) for row in capture.table("thread_name") if row["source"] == 1]
        assert sorted(name for name in given if name) == [f"worker {number}" for number in range(8)]
