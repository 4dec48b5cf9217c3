"""Every form a line of the log may have, one by one; the values are read off the lines by eye."""

from __future__ import annotations

import datetime
import hashlib

import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.sources.timeline_log import parse_log, read_log
from tests.log_samples import CUZK, JOB, OTHER, SOURCE, events, item, read, rows, slugs


def test_monolithic_and_partition_forms() -> None:
    log = read(
        f"TIMELINE,87097,SYNTH_START,{OTHER},kind=porep-c2\n"
        f"TIMELINE,135132,SYNTH_END,{OTHER},synth_ms=48035\n"
        f"TIMELINE,135132,CHAN_SEND,{OTHER},\n"
        f"TIMELINE,161369,GPU_START,{OTHER},worker=0\n"
        f"TIMELINE,194241,GPU_END,{OTHER},worker=0,gpu_ms=32872\n"
        f"TIMELINE,301544,SYNTH_END,{JOB},partition=7,synth_ms=36210\n"
        f"TIMELINE,301544,CHAN_SEND,{JOB},partition=7\n"
        f"TIMELINE,301545,GPU_PICKUP,{JOB},worker=1,partition=7\n"
        f"TIMELINE,301545,GPU_START,{JOB},partition=7,worker=1\n"
        f"TIMELINE,305217,GPU_END,{JOB},worker=1,partition=7,gpu_ms=3671\n"
    )
    (run,) = log.runs
    assert rows(run) == [
        {
            "job": OTHER, "partition": None, "worker": 0, "synth_start_ms": 87097, "synth_end_ms": 135132,
            "sent_ms": 135132, "picked_ms": None, "gpu_start_ms": 161369, "gpu_end_ms": 194241, "synth_ms": 48035,
            "gpu_ms": 32872,
        },
        {
            "job": JOB, "partition": 7, "worker": 1, "synth_start_ms": None, "synth_end_ms": 301544,
            "sent_ms": 301544, "picked_ms": 301545, "gpu_start_ms": 301545, "gpu_end_ms": 305217, "synth_ms": 36210,
            "gpu_ms": 3671,
        },
    ]  # fmt: skip
    assert slugs(log) == {}


def test_queue_events_of_later_releases() -> None:
    (run,) = read(
        "TIMELINE,301544,GPU_QUEUE,porep-1000-1,partition=7\n"
        "TIMELINE,301544,GPU_QUEUE,winpost-1000-1f2e3d4c5b6a7988,monolithic\n"
        "TIMELINE,301545,SYNTH_END,snap-1000-2,snap_partition=3,synth_ms=12\n"
        "TIMELINE,301546,GPU_START,snap-1000-2,worker=0,partition=3\n"
    ).runs
    assert [(r["job"], r["partition"], r["sent_ms"]) for r in rows(run)] == [
        ("porep-1000-1", 7, 301544),
        ("winpost-1000-1f2e3d4c5b6a7988", None, 301544),
        ("snap-1000-2", 3, None),
    ]
    assert rows(run)[2]["gpu_start_ms"] == 301546
    assert [r["detail"] for r in run.events.to_pylist()][1] == "monolithic"


def test_ids_with_spaces_brackets_and_commas() -> None:
    job = "wdpost-1000-0-[12 200 7 0]"
    (run,) = read(f"TIMELINE,5,GPU_START,{job},worker=0\nTIMELINE,9,GPU_END,{job},worker=0,gpu_ms=4\n").runs
    assert rows(run)[0]["job"] == job
    commas = "a[1,2,3]"
    (run,) = read(f"TIMELINE,5,GPU_START,{commas},worker=0\nTIMELINE,9,GPU_END,{commas},worker=0,gpu_ms=4\n").runs
    assert [(r["job"], r["gpu_start_ms"], r["gpu_end_ms"]) for r in rows(run)] == [(commas, 5, 9)]


def test_loose_spellings_of_whole_lines() -> None:
    log = read(
        f"TIMELINE,5,GPU_START,{JOB},worker=0,partition=Some(3)\n"
        f"TIMELINE,6,GPU_END,{JOB},worker=0,partition=3,gpu_ms=1.75  \n"
        f"TIMELINE,7,SYNTH_START,{OTHER}\n"
        f"TIMELINE,8,SYNTH_END,{OTHER},synth_ms=1ms\n"
    )
    (run,) = log.runs
    assert [(r["partition"], r["gpu_start_ms"], r["gpu_ms"]) for r in rows(run)] == [(3, 5, 1), (None, None, None)]
    assert (rows(run)[1]["synth_start_ms"], rows(run)[1]["synth_ms"]) == (7, 1)
    assert "log-lines-rejected" not in slugs(log)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_colours_and_no_last_newline(newline: str) -> None:
    lines = [
        "\x1b[2m2026-11-30T18:21:55.101754Z\x1b[0m \x1b[32m INFO\x1b[0m cuzk_core::engine: starting cuzk engine",
        f"\x1b[1mTIMELINE,5,GPU_START,{JOB},worker=0\x1b[0m",
        f"TIMELINE,9,GPU_END,{JOB},worker=0,gpu_ms=4",
    ]
    (run,) = read(newline.join(lines)).runs
    assert [(r["gpu_start_ms"], r["gpu_end_ms"]) for r in rows(run)] == [(5, 9)]
    expected = datetime.datetime(2026, 11, 30, 18, 21, 55, tzinfo=datetime.UTC)
    assert run.anchor_utc_ns == int(expected.timestamp()) * 10**9 + 101_754_000


@pytest.mark.parametrize(
    ("stamp", "seconds", "fraction"),
    [
        ("2026-02-19T01:20:02.123456Z", 1771464002, 123_456_000),
        ("2026-02-19T01:20:02Z", 1771464002, 0),
        ("2026-02-19T01:20:02.1Z", 1771464002, 100_000_000),
        ("2026-02-19T03:20:02.123456789+02:00", 1771464002, 123_456_789),
        ("2026-02-18T19:50:02.000001-05:30", 1771464002, 1_000),
    ],
)
def test_anchor_is_exact(stamp: str, seconds: int, fraction: int) -> None:
    (run,) = read(
        f"{stamp}  INFO x: starting cuzk engine pipeline_enabled=true\nTIMELINE,0,GPU_START,a,worker=0\n"
    ).runs
    assert run.anchor_utc_ns == seconds * 10**9 + fraction


@pytest.mark.parametrize("stamp", ["2026-13-45T01:20:02.1Z", "2026-02-19T01:20:02.1", "2300-02-19T01:20:02Z"])
def test_anchor_without_a_usable_stamp_is_said(stamp: str) -> None:
    log = read(f"{stamp} INFO x: starting cuzk engine\nTIMELINE,0,GPU_START,a,worker=0\n")
    assert log.runs[0].anchor_utc_ns is None
    assert slugs(log)["log-anchor-unreadable"] == 1


def test_lines_behind_a_collectors_prefix() -> None:
    (run,) = read(
        f"prover-1  | TIMELINE,5,GPU_START,{JOB},worker=0,partition=1\n"
        f"2026-11-30T18:22:30.1Z stderr F TIMELINE,9,GPU_END,{JOB},worker=0,partition=1,gpu_ms=4\n"
        "2026-11-30T18:22:30.2Z CUZK_TIMING: prep_msm_ms=7\n"
    ).runs
    assert [(r["gpu_start_ms"], r["gpu_end_ms"], r["partition"]) for r in rows(run)] == [(5, 9, 1)]
    assert run.timings == {"prep_msm_ms": (1, 7)}


def test_figures_are_summed_by_name() -> None:
    (run,) = read(
        "TIMELINE,5,GPU_START,a,worker=0\n"
        "CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=690\n"
        "CUZK_TIMING: gpu_tid=0 tail_msm_ms=83 gpu_total_ms=1824\n"
        "CUZK_TIMING: gpu_tid=0 tail_msm_ms=85 gpu_total_ms=1800\n"
        "CUZK_TIMING: prestage_setup=ok domain=134217728 lot_of_memory=1 sync_ms=1 trim_ms=2 alloc_ms=3\n"
        "CUZK_TIMING: d_a_cache allocated 4096 MiB on gpu 0\n"
        "CUZK_NTT_H: d_b_alloc=12ms ntt_kernels=30ms total=690ms\n"
        "2026-11-30T18:22:30.1Z  INFO cuzk: FIN_TIMING finalizer partition worker_id=0 partition=Some(3) finish_ms=4\n"
    ).runs
    assert run.timings == {
        "ntt_msm_h_ms": (1, 690),
        "tail_msm_ms": (2, 168),
        "gpu_total_ms": (2, 3624),
        "sync_ms": (1, 1),
        "trim_ms": (1, 2),
        "alloc_ms": (1, 3),
        "CUZK_NTT_H.d_b_alloc": (1, 12),
        "CUZK_NTT_H.ntt_kernels": (1, 30),
        "CUZK_NTT_H.total": (1, 690),
        "FIN_TIMING.finish_ms": (1, 4),
    }


def test_completions_carry_the_wall_clock() -> None:
    (run,) = read(
        "TIMELINE,5,GPU_START,a,worker=0,partition=2\n"
        "2026-02-19T01:20:02.123456Z  INFO x: partition GPU prove complete job_id=a partition=2 gpu_ms=130\n"
        "2026-02-19T01:20:03.000001Z  INFO x: partition GPU prove complete job_id=b partition=Some(4) gpu_ms=7\n"
    ).runs
    assert run.completions.to_pylist() == [
        {"line": 2, "utc_ns": 1771464002_123456000, "job": "a", "partition": 2, "gpu_ms": 130},
        {"line": 3, "utc_ns": 1771464003_000001000, "job": "b", "partition": 4, "gpu_ms": 7},
    ]


def test_unknown_events_are_kept_and_counted() -> None:
    log = read(
        "TIMELINE,5,GPU_START,a,worker=0\n"
        "TIMELINE,6,MUTEX_ACQUIRE,a,waited long, very long\n"
        "TIMELINE,7,MUTEX_ACQUIRE,a\n"
        "TIMELINE,8,ALLOC_START,a,bytes=12\n"
    )
    (run,) = log.runs
    assert run.unknown_events == {"ALLOC_START": 1, "MUTEX_ACQUIRE": 2}
    assert [name for _, name, _, _ in events(run)] == ["GPU_START", "MUTEX_ACQUIRE", "MUTEX_ACQUIRE", "ALLOC_START"]
    assert slugs(log)["log-event-unknown"] == 3


def test_bytes_that_are_no_text() -> None:
    log = read(
        b"\xff\xfe\x00noise\nTIMELINE,5,GPU_START,caf\xe9,worker=0\nTIMELINE,6,GPU_END,caf\xe9,worker=0,gpu_ms=1\n"
    )
    assert [(r["job"], r["gpu_start_ms"], r["gpu_end_ms"]) for r in rows(log.runs[0])] == [("caf�", 5, 6)]
    assert slugs(log)["log-not-utf8"] == 1


def test_a_line_of_any_length_is_bounded() -> None:
    good = f"TIMELINE,5,GPU_START,{JOB},worker=0\n".encode()
    log = read(good + b"x" * (50 << 20) + b"TIMELINE,6,GPU_END," + JOB.encode() + b",worker=0,gpu_ms=1\n" + good[:9])
    assert [r["gpu_start_ms"] for r in rows(log.runs[0])] == [5]
    assert slugs(log)["log-lines-too-long"] == 1
    assert "log-brackets-open" in slugs(log)


def test_numbers_that_no_clock_gives_are_refused() -> None:
    log = read(
        "TIMELINE,5,GPU_START,a,worker=0\n"
        f"TIMELINE,{10**18},GPU_END,a,worker=0\n"
        "TIMELINE,-6,GPU_END,a,worker=0\n"
        "TIMELINE,7,GPU_END,a,worker=0,partition=99999999999\n"
        "TIMELINE,,GPU_END,a,worker=0\n"
    )
    assert [r["gpu_end_ms"] for r in rows(log.runs[0])] == [None]
    assert item(log, "log-lines-rejected").count == 4
    assert "line 2" in item(log, "log-lines-rejected").message


@pytest.mark.parametrize(
    "text", ["", "\n\n", "hello\n", "CUZK_TIMING: a_ms=1\n", "TIMELINE\n", "TIMELINE,x\n", "\0" * 99]
)
def test_a_log_without_events(text: str) -> None:
    with pytest.raises(SourceError) as error:
        read(text)
    assert error.value.slug == "log-without-timeline"


def test_files(tmp_path) -> None:
    path = tmp_path / "x.log"
    path.write_text("TIMELINE,5,GPU_START,a,worker=0\n")
    assert read_log(path, CUZK).source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for bad, slug in ((tmp_path, "log-unreadable"), (tmp_path / "no", "log-unreadable")):
        with pytest.raises(SourceError) as error:
            read_log(bad, CUZK)
        assert error.value.slug == slug
    with pytest.raises(SourceError) as error:
        read_log(path, CUZK, Limits(log_bytes=10))
    assert error.value.slug == "limit-log-bytes"
    with pytest.raises(SourceError) as error:
        parse_log("TIMELINE,5,GPU_START,a,", CUZK, source=SOURCE, limits=Limits(log_bytes=10))
    assert error.value.slug == "limit-log-bytes"
