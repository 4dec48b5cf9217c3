"""Lines torn by another writer: repaired or counted, never silently lost and never made up."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.model.trace import AppLog
from tests.log_samples import JOB, OTHER, Call, events, item, log_of, read, rows, slugs

TIMING = "CUZK_TIMING: gpu_tid=0 batch_add_ms=650"
STAMPED = "2026-11-30T18:22:30.602109Z  INFO cuzk_core::engine: partition GPU prove complete job_id=x partition=0"


@pytest.mark.parametrize(
    "torn",
    [
        f"TIMELINE,2560,GPU_START{TIMING}\n,{JOB},worker=0,partition=3\n",
        f"TIMELINE,498,GPU_START,{TIMING}\n{JOB},worker=0,partition=3\n",
        f"TIMELINE,10338,GPU_START,{JOB},worker=0,partition=3{TIMING}\n\n",
        f"TIMELINE,10338,GPU_START,{JOB},worker=0,partition=3{TIMING}\n",
        f"TIMELINE,10{TIMING}\n338,GPU_START,{JOB},worker=0,partition=3\n",
        f"TIME{TIMING}\nLINE,10338,GPU_START,{JOB},worker=0,partition=3\n",
        f"TIMELINE,10338,GPU_START,{JOB},worker=0,part{STAMPED}\nition=3\n",
        f"TIMELINE,2560{TIMING}\n,GPU_START{TIMING}\n,{JOB},worker=0,partition=3\n",
        f"TIMELINE,2560{TIMING}\n{TIMING}\n{STAMPED}\n,GPU_START,{JOB},worker=0,partition=3\n",
        f"TIMELINE,2560,GPU_STARTTIMELINE,2561,GPU_START,{OTHER},worker=1\n,{JOB},worker=0,partition=3\n",
    ],
)
def test_shapes_seen_in_practice(torn: str) -> None:
    log = read(f"TIMELINE,1,SYNTH_START,{JOB},partition=3\n{torn}TIMELINE,99999,GPU_END,{JOB},worker=0,partition=3\n")
    row = next(row for row in rows(log.runs[0]) if row["job"] == JOB)
    assert row["gpu_start_ms"] in {2560, 498, 10338}
    assert (row["partition"], row["worker"]) == (3, 0)
    assert slugs(log).get("log-lines-rejected", 0) == 0
    assert slugs(log)["log-lines-repaired"] == 1


def test_the_other_line_is_read_too() -> None:
    log = read(f"TIMELINE,2560,GPU_START{TIMING}\n,{JOB},worker=0,partition=3\n")
    assert log.runs[0].timings == {"batch_add_ms": (1, 650)}
    log = read(f"{TIMING[:-2]}TIMELINE,5,GPU_START,{JOB},worker=0\n50\n")
    assert log.runs[0].timings == {"batch_add_ms": (1, 650)}
    assert slugs(log) == {"log-lines-repaired": 1, "log-brackets-open": 1}


def test_an_anchor_cut_in_two_is_found() -> None:
    anchor = "2026-11-30T18:21:55.101754Z  INFO cuzk_core::engine: starting cuzk engine pipeline_enabled=true"
    whole = read(f"{anchor}\nTIMELINE,5,GPU_START,{JOB},worker=0\n").runs[0].anchor_utc_ns
    for cut in range(1, len(anchor)):
        log = read(f"{anchor[:cut]}TIMELINE,5,GPU_START,{JOB},worker=0\n{anchor[cut:]}\n")
        assert log.runs[0].anchor_utc_ns == whole, cut


def test_torn_by_text_of_no_known_kind() -> None:
    known = f"TIMELINE,1,SYNTH_START,{JOB},partition=3\n"
    log = read(f"{known}TIMELINE,2560,GPU_STARTsum 0\n,{JOB},worker=0,partition=3\n")
    assert rows(log.runs[0])[0]["gpu_start_ms"] == 2560
    log = read(f"{known}TIMELINE,2560,GPU_START,{JOB[:9]}sum 0\n{JOB[9:]},worker=0,partition=3\n")
    assert rows(log.runs[0])[0]["gpu_start_ms"] == 2560
    # Which digits are the offset's cannot be known: lost, and counted.
    log = read(f"{known}TIMELINE,25sum 0\n60,GPU_START,{JOB},worker=0,partition=3\n")
    assert rows(log.runs[0])[0]["gpu_start_ms"] is None
    assert item(log, "log-lines-rejected").count == 1
    assert item(log, "log-fragments").count == 1


def test_a_head_whose_rest_never_comes_is_counted() -> None:
    torn = f"TIMELINE,2560,GPU_START{TIMING}\n"
    whole = f"TIMELINE,1,SYNTH_START,{JOB},partition=3\n"
    for text in (torn + whole, whole + torn, torn + whole * 20, torn * 3 + whole):
        log = read(text)
        assert item(log, "log-lines-rejected").count == text.count("GPU_START")
        assert f"line {text[: text.index('GPU_START')].count(chr(10)) + 1})" in item(log, "log-lines-rejected").message


def test_half_a_detail_is_not_a_job_of_its_own() -> None:
    log = read(
        f"TIMELINE,1,SYNTH_START,{JOB},partition=12\n"
        f"TIMELINE,2,GPU_START,{JOB},worksum\nker=0,partition=12\n"
        f"TIMELINE,3,GPU_END,{JOB},worker=0,partition=1 sum\n2\n"
    )
    assert [(r["partition"], r["gpu_start_ms"], r["gpu_end_ms"]) for r in rows(log.runs[0])] == [(12, None, None)]
    assert item(log, "log-lines-rejected").count == 2


def test_a_number_cut_by_a_known_line_is_not_taken_short() -> None:
    log = read(
        f"TIMELINE,9,GPU_END,{JOB},worker=0,partition=1{TIMING}\n2,gpu_ms=4\nTIMELINE,1,GPU_START,{JOB},worker=0,partition=12\n"
    )
    assert [(r["partition"], r["gpu_ms"]) for r in rows(log.runs[0])] == [(12, 4)]


CALLS = [
    Call(JOB, partition, partition % 2, 10 * partition, 1000 + partition, 1001 + partition, 1500 + 90 * partition,
         1500 + 90 * partition, 1580 + 90 * partition)
    for partition in range(3)
] + [Call("wdpost-1000-0-[12 200]", None, 0, 40, 900, 900, 2100, 2101, 2311)]  # fmt: skip
LINES = log_of(CALLS)
EXPECTED = Counter(
    (when, line.split(",")[2], call.job, call.partition) for call in CALLS for when, line in call.lines()
)
INTRUDERS = [
    TIMING,
    STAMPED,
    "\x1b[2m2026-11-30T18:22:30.602109Z\x1b[0m  INFO plain words",
    "CUZK_NTT_H: d_b_alloc=1ms total=690ms",
    "TIMELINE,1800,MEMORY_NOTE,elsewhere,bytes=1",
    "sum 0",
    "warning: [cuda] out of luck, retrying",
    "",
]


def test_the_sample_reads_clean() -> None:
    log = read("\n".join(LINES))
    assert slugs(log) == {}
    assert Counter(events(log.runs[0])) == EXPECTED


def accounted(log: AppLog, intruder: str) -> None:
    """Every event of the sample is there, or something says that a line was damaged; none is changed or made up."""
    found = Counter(event for run in log.runs for event in events(run) if event[1] != "MEMORY_NOTE")
    expected = EXPECTED
    counts = slugs(log)
    missing = expected - found
    lost = counts.get("log-lines-rejected", 0) + counts.get("log-fragments", 0)
    assert missing.total() <= lost, (missing, counts)
    if intruder in {TIMING, STAMPED} or intruder.startswith(("CUZK_NTT_H", "\x1b")):
        # A line of a known kind shows where the tear is: nothing need be lost.
        assert not missing, missing
    assert not found - expected, found - expected


@settings(max_examples=250, deadline=None)
@given(
    line=st.integers(0, len(LINES) - 1),
    cut=st.integers(0, 120),
    intruder=st.sampled_from(INTRUDERS),
)
def test_tear_any_line_anywhere(line: int, cut: int, intruder: str) -> None:
    text = LINES[line]
    cut = min(cut, len(text))
    torn = [*LINES[:line], text[:cut] + intruder + "\n" + text[cut:], *LINES[line + 1 :]]
    accounted(read("\n".join(torn) + "\n"), intruder)


@settings(max_examples=150, deadline=None)
@given(line=st.integers(0, len(LINES) - 1), other=st.integers(0, len(LINES) - 1), cut=st.integers(0, 120))
def test_tear_a_line_by_another_event(line: int, other: int, cut: int) -> None:
    if line == other:
        return
    text = LINES[line]
    cut = min(cut, len(text))
    rest = [item for place, item in enumerate(LINES) if place not in {line, other}]
    torn = [*rest[:line], text[:cut] + LINES[other], text[cut:], *rest[line:]]
    log = read("\n".join(torn) + "\n")
    assert Counter(event for run in log.runs for event in events(run)) == EXPECTED


@settings(max_examples=60, deadline=None)
@given(
    tears=st.lists(
        st.tuples(st.integers(0, len(LINES) - 1), st.integers(1, 120), st.sampled_from(INTRUDERS[:5])),
        min_size=2,
        max_size=8,
        unique_by=lambda tear: tear[0],
    )
)
def test_many_tears(tears: list[tuple[int, int, str]]) -> None:
    torn = list(LINES)
    for line, cut, intruder in tears:
        torn[line] = LINES[line][:cut] + intruder + "\n" + LINES[line][cut:]
    accounted(read("\n".join(torn) + "\n"), INTRUDERS[5])


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400), place=st.integers(0, len("\n".join(LINES))))
def test_any_bytes_in_between(data: bytes, place: int) -> None:
    whole = "\n".join(LINES).encode()
    log = read(whole[:place] + data + whole[place:])
    assert sum(len(run.events) for run in log.runs) >= len(LINES) - 12
