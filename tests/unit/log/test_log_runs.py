"""Several runs in one file: one after the other, tried again, collected twice, and two engines at once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.errors import SourceError
from tests.fixture_files import fixture_log
from tests.log_samples import JOB, LOGS, OTHER, Call, events, log_of, read, rows, slugs

ANCHOR = "2026-11-30T18:21:55.101754Z  INFO cuzk_core::engine: starting cuzk engine pipeline_enabled=true"


def without_stdout(path: Path) -> str:
    lines = path.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith(("TIMELINE", "CUZK")))


@pytest.mark.parametrize("name", ["p9_gw2", "sim_w2", "p9_nonvtx"])
def test_three_runs_in_one_file(name: str) -> None:
    text = fixture_log(name).read_text()
    (alone,) = read(text).runs
    log = read(text * 3)
    assert [run.index for run in log.runs] == [1, 2, 3]
    for run in log.runs:
        assert run.partitions.equals(alone.partitions)
        assert run.anchor_utc_ns == alone.anchor_utc_ns
        assert run.timings == alone.timings
    assert slugs(log) == {"log-several-runs": 3}


@pytest.mark.parametrize("name", ["p9_gw2", "sim_w2", "p9_nonvtx"])
def test_three_runs_without_an_anchor(name: str) -> None:
    text = without_stdout(fixture_log(name))
    (alone,) = read(text).runs
    log = read(text * 3)
    assert [run.partitions.equals(alone.partitions) for run in log.runs] == [True] * 3
    assert [run.timings for run in log.runs] == [alone.timings] * 3
    assert [run.anchor_utc_ns for run in log.runs] == [None] * 3


def test_three_runs_of_other_jobs_and_lengths() -> None:
    short = log_of([Call(OTHER, 0, 0, 0, 10, 10, 10, 10, 20)])
    long = log_of([Call(JOB, 0, 0, 0, 9_000, 9_000, 9_001, 9_001, 12_000)])
    for marks in ([ANCHOR], []):
        log = read("\n".join([*marks, *long, *marks, *short, *marks, *long]))
        jobs = [[row["job"] for row in rows(run)] for run in log.runs]
        # Without its anchor the last one cannot be told from a long pause of the one before.
        assert jobs == ([[JOB], [OTHER], [JOB]] if marks else [[JOB], [OTHER, JOB]])
        assert all((run.anchor_utc_ns is not None) == bool(marks) for run in log.runs)


def test_restarts_of_a_few_milliseconds() -> None:
    lines = log_of([Call(JOB, 0, 0, 0, 3, 3, 3, 3, 7)])
    assert len(read("\n".join(lines * 3)).runs) == 3


def test_an_engine_that_died_and_came_back() -> None:
    call = Call(JOB, 0, 0, 0, 900, 900, 901, 901, 1500)
    dead = log_of([call])[:4]
    log = read("\n".join([*dead, *log_of([call])]))
    assert [row["gpu_end_ms"] for run in log.runs for row in rows(run)] == [None, 1500]


def test_the_published_log_three_times() -> None:
    log = read((LOGS / "three_jobs.log").read_text() * 3)
    assert [len(run.partitions) for run in log.runs] == [4, 4, 4]


def test_a_job_tried_again_in_one_run() -> None:
    first = log_of([Call(JOB, 0, 0, 0, 100, 100, 101, 101, 200), Call(JOB, 1, 0, 0, 110, 110, 201, 201, 300)])[:-1]
    again = log_of(
        [Call(JOB, p, 0, 5000, 5100 + p, 5101, 5200 + 100 * p, 5200 + 100 * p, 5300 + 100 * p) for p in (0, 1)]
    )
    third = log_of(
        [Call(JOB, 2, 0, 9000, 9001, 9001, 9002, 9002, 9003), Call(JOB, 1, 0, 9100, 9101, 9101, 9102, 9102, 9103)]
    )
    log = read("\n".join(first + again + third))
    (run,) = log.runs
    assert [(row["job"], row["partition"], row["gpu_start_ms"], row["gpu_end_ms"]) for row in rows(run)] == [
        (JOB, 0, 101, 200),
        (JOB, 1, 201, None),
        (f"{JOB} (attempt 2)", 0, 5200, 5300),
        (f"{JOB} (attempt 2)", 1, 5300, 5400),
        (f"{JOB} (attempt 2)", 2, 9002, 9003),
        (f"{JOB} (attempt 3)", 1, 9102, 9103),
    ]
    assert slugs(log)["log-job-repeated"] == 1


def test_lines_collected_twice_are_taken_once() -> None:
    lines = log_of([Call(JOB, p, p, p, 100 + p, 100 + p, 101 + p, 101 + p, 200 + p) for p in range(2)])
    log = read("\n".join(line for line in lines for _ in range(2)))
    (run,) = log.runs
    assert run.partitions.equals(read("\n".join(lines)).runs[0].partitions)
    assert slugs(log)["log-lines-duplicated"] == len(lines)


TWO = fixture_log("p9_two_procs")


def check_two(log_text: str) -> None:
    """Every partition of both provers is whole, and the durations that the lines state fit."""
    log = read(log_text)
    assert len(log.runs) == 2
    for run in log.runs:
        assert sorted(row["partition"] for row in rows(run)) == [0, 1, 2, 3]
        for row in rows(run):
            assert abs(row["synth_end_ms"] - row["synth_start_ms"] - row["synth_ms"]) <= 1
            assert abs(row["gpu_end_ms"] - row["gpu_start_ms"] - row["gpu_ms"]) <= 1
    assert slugs(log)["log-runs-interleaved"] >= 2


def test_two_provers_in_one_log() -> None:
    check_two(TWO.read_text())
    log = read(TWO.read_text())
    # 39.5 ms lie between their starts; the first two lines of events are of the first, which had no rival yet.
    first, second = log.runs
    assert second.anchor_utc_ns - first.anchor_utc_ns == 39_538_000
    assert sorted(row["gpu_end_ms"] for row in rows(first)) == [162, 250, 340, 443]
    assert sorted(row["gpu_end_ms"] for row in rows(second)) == [169, 255, 337, 396]
    # The program said on the wall clock when each call was over: the split must agree, and was not told.
    for run in log.runs:
        ends = sorted(run.anchor_utc_ns + row["gpu_end_ms"] * 10**6 for row in rows(run))
        assert all(any(0 <= stamp - end < 2_000_000 for stamp in TWO_STAMPS) for end in ends)


TWO_STAMPS = [
    1796062950_000000000 + offset * 1000 for offset in (602109, 648061, 690418, 734880, 779594, 816151, 875900, 883033)
]


def test_two_provers_whose_streams_were_stored_apart() -> None:
    lines = TWO.read_text().splitlines(keepends=True)
    out = "".join(line for line in lines if line.startswith("\x1b"))
    err = "".join(line for line in lines if not line.startswith("\x1b"))
    whole = read(TWO.read_text())
    for text in (out + err, err + out):
        check_two(text)
        for run, expected in zip(read(text).runs, whole.runs, strict=True):
            assert sorted(events(run)) == sorted(events(expected))
            assert run.anchor_utc_ns == expected.anchor_utc_ns


def test_two_provers_without_an_anchor() -> None:
    check_two(without_stdout(TWO))


def test_one_prover_whose_streams_were_stored_apart() -> None:
    lines = fixture_log("p9_gw2").read_text().splitlines(keepends=True)
    out = "".join(line for line in lines if line.startswith("\x1b"))
    err = "".join(line for line in lines if not line.startswith("\x1b"))
    whole = read("".join(lines)).runs[0]
    for text in (out + err, err + out, out * 2 + err * 2):
        for run in read(text).runs:
            assert run.anchor_utc_ns == whole.anchor_utc_ns
            assert run.partitions.equals(whole.partitions)


def mixed() -> list[str]:
    """Every event of a partition twice, in an order that no engine writes."""
    backwards = log_of([Call(JOB, 0, 0, 0, 30, 30, 30, 30, 60)])[:0:-1]
    return [line.replace(",worker=0", f",worker={worker}") for line in backwards for worker in (0, 1)]


def test_two_engines_that_cannot_be_told_apart() -> None:
    with pytest.raises(SourceError) as error:
        read("\n".join(mixed()))
    assert error.value.slug == "log-runs-mixed"
    assert "file of its own" in error.value.hint


def test_a_mixed_run_does_not_spoil_the_others() -> None:
    good = log_of([Call(OTHER, 0, 0, 0, 900, 900, 901, 901, 1500)])
    log = read("\n".join([ANCHOR, *good, ANCHOR, *mixed(), ANCHOR, *good]))
    assert [run.index for run in log.runs] == [1, 3]
    assert slugs(log)["log-runs-mixed"] == len(mixed())


@st.composite
def engines(draw: st.DrawFn) -> tuple[list[list[str]], list[str], int]:
    """Two provers' logs, the file they make together, and how many ms after the first the second started."""
    apart = draw(st.sampled_from([0, 7, 23, 40, 160, 900, 5_000]))
    seed = draw(st.integers(0, 2**32))
    same_job = draw(st.booleans())
    chance = random.Random(seed)
    logs = []
    for engine in range(2):
        calls, free = [], [0, 0]
        for partition in range(chance.randint(3, 6)):
            start = 15 * partition + chance.randint(0, 9)
            ready = start + chance.randint(70, 140)
            worker = min((0, 1), key=lambda w: free[w])
            begin = max(ready, free[worker]) + chance.randint(0, 2)
            free[worker] = begin + chance.randint(40, 90)
            job = JOB if same_job or engine else OTHER
            calls.append(Call(job, partition, worker, start, ready, ready, begin, begin, free[worker]))
        logs.append(sorted((pair for call in calls for pair in call.lines()), key=lambda pair: pair[0]))
    real = [(when + apart * engine, line) for engine, pairs in enumerate(logs) for when, line in pairs]
    both = [line for _, line in sorted(real, key=lambda pair: pair[0])]
    return [[line for _, line in pairs] for pairs in logs], both, apart


@settings(max_examples=60, deadline=None)
@given(engines())
def test_any_two_engines_with_anchors(sample: tuple[list[list[str]], list[str], int]) -> None:
    alone, both, apart = sample
    stamp = "2026-11-30T18:00:{:02}.{:03}000Z  INFO cuzk_core::engine: starting cuzk engine"
    anchors = [stamp.format(0, 0), stamp.format(apart // 1000, apart % 1000)]
    log = read("\n".join([*anchors, *both]))
    expected = [Counter(events(read("\n".join(lines)).runs[0])) for lines in alone]
    found = [Counter(events(run)) for run in log.runs]
    assert sum(found, Counter()) == expected[0] + expected[1]
    unsure = any("could as well" in item.message for item in log.quality)
    if apart >= 20 and not unsure:
        assert found == expected


@settings(max_examples=60, deadline=None)
@given(engines())
def test_any_two_engines_without_anchors(sample: tuple[list[list[str]], list[str], int]) -> None:
    """Every event is in one run, and no run holds an event of a partition twice; or the log is refused."""
    _, both, _ = sample
    try:
        log = read("\n".join(both))
    except SourceError as error:
        assert error.slug == "log-runs-mixed"
        return
    found = Counter(event[:4] for run in log.runs for event in events(run))
    assert found.total() == len(both)
    for run in log.runs:
        keys = Counter((name, job, partition) for _, name, job, partition in events(run))
        assert max(keys.values()) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_lines_that_change_places_within_a_moment(seed: int, calls: int) -> None:
    chance = random.Random(seed)
    sample = [
        Call(JOB, p, p % 2, 7 * p, 500 + p, 501 + p, 600 + 50 * p, 601 + 50 * p, 680 + 50 * p) for p in range(calls)
    ]
    pairs = sorted((pair for call in sample for pair in call.lines()), key=lambda pair: pair[0])
    moved = [line for _, line in sorted(pairs, key=lambda pair: pair[0] + chance.uniform(0, 20))]
    log = read("\n".join(moved))
    (run,) = log.runs
    order = sorted(rows(run), key=lambda row: row["partition"])
    assert order == sorted(rows(read("\n".join(line for _, line in pairs)).runs[0]), key=lambda row: row["partition"])


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(
        log_of([Call(JOB, p, 0, p, 100, 101, 200 * p + 300, 200 * p + 301, 200 * p + 400) for p in range(3)])
    )
)
def test_lines_in_any_order_are_one_run(lines: list[str]) -> None:
    log = read("\n".join(lines))
    found = Counter(event for run in log.runs for event in events(run))
    assert found.total() == len(lines)
    if len(log.runs) == 1:
        assert {row["gpu_end_ms"] for row in rows(log.runs[0])} == {400, 600, 800}
