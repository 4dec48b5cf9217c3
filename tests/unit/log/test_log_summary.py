"""The figures of a log alone, against published ones, against figures worked out by hand, and against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.attribution.log_summary import summarise
from nvprof_tools.errors import UsageError
from nvprof_tools.model.log_summary import LogSummary
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.pipelines.load import load_pipeline
from tests.fixture_files import fixture_log
from tests.log_samples import CUZK, JOB, LOGS, OTHER, Call, log_of, published_run, read


def summary(text: str, run: int | None = None, pipeline: Pipeline = CUZK) -> LogSummary:
    return summarise(read(text, pipeline), pipeline, run)


def test_the_published_three_jobs() -> None:
    s = summary((LOGS / "three_jobs.log").read_text())
    assert [(j.job, j.synth_ms, j.gpu_ms, j.idle_before_ms, j.idle_cause, j.cold, j.open) for j in s.jobs] == [
        ("P1", 48_006, 26_229, None, None, True, False),
        ("P2", 48_035, 32_872, 14, "dispatch", False, False),
        ("P3", 44_126, 27_890, 15_350, "starved", False, False),
        ("P4", None, None, None, None, False, True),
    ]
    t = s.totals
    assert round(100 * t.utilisation_busy_idle, 1) == 85.0
    assert (t.jobs, t.open_jobs, t.wall_ms, t.idle_ms) == (3, 1, 237_481 - 135_126, 15_364)
    assert t.first_synth_to_last_gpu_ms == 237_481 - 87_097
    assert t.seconds_per_proof == pytest.approx(150.384 / 3)
    assert [j.queue_ms for j in s.jobs] == [None] * 4
    assert [j.slack_ms for j in s.jobs] == [None, 161_355 - 135_132, 0, None]
    assert s.partitions["slack_ms"].to_pylist() == [None, 161_355 - 135_132, 194_241 - 209_588, None]
    assert (s.steady.jobs, s.steady.idle_ms, s.steady.wall_ms) == (2, 15_350, 237_481 - 161_369)


def test_the_published_run_of_fifteen_proofs() -> None:
    s = summary("\n".join(published_run()))
    t = s.totals
    assert (t.jobs, t.partitions, t.wall_ms, t.gpu_sum_ms) == (15, 150, 611_400, 550_800)
    assert round(100 * t.utilisation_sum, 1) == round(100 * t.utilisation_union, 1) == 90.1
    assert round(100 * t.utilisation_busy_idle, 1) == 90.1
    assert t.idle_ms == 60_600
    assert t.idle_per_partition_ms == pytest.approx(404)
    assert t.mean_gpu_ms == pytest.approx(3672)
    assert t.mean_gap_ms == pytest.approx(60_600 / 149)


def test_a_real_run_of_two_workers() -> None:
    s = summary(fixture_log("p9_gw2").read_text())
    t = s.totals
    # First GPU_START 317, last GPU_END 1474; first SYNTH_START 0. Brackets overlap: the union has no hole.
    assert (t.wall_ms, t.gpu_union_ms, t.idle_ms, t.first_synth_to_last_gpu_ms) == (1157, 1157, 0, 1474)
    assert t.gpu_sum_ms == 130 + 157 + 215 + 215 + 217 + 224 + 224 + 224 + 222 + 211
    assert t.utilisation_sum == pytest.approx(2039 / 1157)
    assert t.seconds_per_proof == pytest.approx(0.737)
    first, second = s.jobs
    assert first.synth_ms == 316 + 405 + 409 + 417 + 364
    assert first.queue_ms == 0 + 0 + (458 - 410) + (570 - 418) + 0
    assert (first.cold, second.cold) == (True, False)
    assert (first.idle_before_ms, second.idle_before_ms) == (None, 0)
    assert s.timings["mutex_held_ms"] == (10, 1135)
    assert s.devices == ()


def test_idle_causes_by_hand() -> None:
    calls = [
        Call("a", 0, 0, 0, 100, 100, 100, 100, 200),
        # 200-250 nothing sent, synthesis of b runs; 250-270 sent, not picked up; 270-300 picked up, not started.
        Call("b", 0, 0, 150, 250, 250, 270, 300, 400),
        # 400-450 nothing at all; 450-500 synthesis; then at once.
        Call("c", 0, 0, 450, 500, 500, 500, 500, 600),
    ]
    s = summary("\n".join(log_of(calls)))
    assert [(j.idle_before_ms, j.idle_cause) for j in s.jobs] == [(None, None), (100, "starved"), (100, "starved")]
    assert s.totals.idle_causes == {"section": 30, "dispatch": 20, "starved": 100, "drained": 50}
    assert s.totals.idle_ms == 200


def test_failures_leave_holes_not_zeros() -> None:
    s = summary(
        f"TIMELINE,0,SYNTH_START,{JOB},partition=0\n"
        f"TIMELINE,10,GPU_PICKUP,{JOB},worker=0,partition=0\n"
        f"TIMELINE,20,GPU_START,{JOB},worker=0,partition=1\n"
    )
    t = s.totals
    assert (t.wall_ms, t.gpu_sum_ms, t.gpu_union_ms, t.idle_ms, t.utilisation_sum) == (None,) * 5
    assert (t.jobs, t.open_jobs, t.partitions, t.open_partitions) == (0, 1, 0, 2)
    assert (t.seconds_per_proof, t.proofs_per_minute, t.mean_gpu_ms, t.mean_synth_ms, t.mean_gap_ms) == (None,) * 5
    assert s.jobs[0].gpu_ms is None
    assert s.steady is None


def test_equal_stamps_are_legal() -> None:
    calls = [Call("a", p, p % 2, 7, 7, 7, 7, 7 + p // 2, 7 + p // 2) for p in range(4)]
    s = summary("\n".join(log_of(calls)))
    assert (s.totals.wall_ms, s.totals.gpu_sum_ms, s.totals.gpu_union_ms, s.totals.idle_ms) == (1, 0, 0, 1)
    assert s.totals.utilisation_union == 0
    alone = summary("\n".join(log_of(calls[:1])))
    assert (alone.totals.wall_ms, alone.totals.utilisation_union) == (0, None)


def test_runs_are_chosen() -> None:
    text = (LOGS / "three_jobs.log").read_text() + fixture_log("p9_gw2").read_text()
    assert (summary(text).run, summary(text).runs) == (2, 2)
    assert summary(text).totals.wall_ms == 1157
    assert summary(text, 1).totals.wall_ms == 102_355
    assert summary(text + "TIMELINE,0,SYNTH_START,x,partition=0\n").run == 2
    with pytest.raises(UsageError) as error:
        summary(text, 3)
    assert (error.value.slug, error.value.hint) == ("unknown-run", "its runs are 1, 2")


def test_workers_of_two_gpus() -> None:
    calls = [Call("a", p, p, 0, 10, 10, 10, 100 * p + 10, 100 * p + 60) for p in range(4)]
    s = summary("\n".join(log_of(calls)))
    assert [(d.device, d.workers, d.partitions, d.gpu_union_ms) for d in s.devices] == [
        (0, (0, 1), 2, 100),
        (1, (2, 3), 2, 100),
    ]
    assert "log-several-devices" in {item.slug for item in s.quality}


def test_extra_events_get_their_meaning(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    events = 'name = "mine"\n[events]\ngpu_start = "GPU_START"\ngpu_end = "GPU_END"\n'
    path.write_text(events + '[extra_events]\nMUTEX_ACQUIRE = "waits"\n')
    mine = load_pipeline(str(path))
    s = summary("TIMELINE,1,GPU_START,a,worker=0\nTIMELINE,2,MUTEX_ACQUIRE,a,\nTIMELINE,3,NEWS,a,\n", None, mine)
    assert s.extra_events == {"MUTEX_ACQUIRE": (1, "waits")}
    assert s.unknown_events == {"NEWS": 1}


def test_the_bracket_is_the_pipelines(tmp_path) -> None:
    path = tmp_path / "wide.toml"
    path.write_text(
        'name = "wide"\nbracket = ["GPU_PICKUP", "GPU_END"]\n'
        '[events]\npicked = "GPU_PICKUP"\ngpu_start = "GPU_START"\ngpu_end = "GPU_END"\n'
    )
    s = summary("\n".join(log_of([Call("a", 0, 0, 0, 10, 10, 20, 50, 90)])), None, load_pipeline(str(path)))
    assert s.totals.wall_ms == 70


@st.composite
def histories(draw: st.DrawFn) -> list[Call]:
    calls = []
    for number in range(draw(st.integers(1, 7))):
        marks = sorted(draw(st.lists(st.integers(0, 60), min_size=6, max_size=6)))
        job = draw(st.sampled_from([JOB, OTHER, "c"]))
        calls.append(Call(job, number, draw(st.integers(0, 2)), *marks))
    return calls


@settings(max_examples=200, deadline=None)
@given(histories())
def test_against_brute_force(calls: list[Call]) -> None:
    """Every millisecond of the wall looked at by itself."""
    s = summary("\n".join(log_of(calls)))
    low, high = min(c.start for c in calls), max(c.end for c in calls)
    causes = {"section": 0, "dispatch": 0, "starved": 0, "drained": 0}
    busy = 0
    for now in range(low, high):
        if any(c.start <= now < c.end for c in calls):
            busy += 1
        elif any(c.picked <= now < c.start for c in calls):
            causes["section"] += 1
        elif any(c.sent <= now < c.picked for c in calls):
            causes["dispatch"] += 1
        elif any(c.synth_start <= now < c.synth_end for c in calls):
            causes["starved"] += 1
        else:
            causes["drained"] += 1
    t = s.totals
    assert (t.wall_ms, t.gpu_union_ms, t.idle_ms) == (high - low, busy, high - low - busy)
    assert t.idle_causes == causes
    assert t.gpu_sum_ms == sum(c.end - c.start for c in calls)
    gaps = [gap for gap in s.partitions["idle_before_ms"].to_pylist() if gap is not None]
    assert sum(gaps) == t.idle_ms
    assert sum((j.idle_before_ms or 0) + (j.idle_inside_ms or 0) for j in s.jobs) == t.idle_ms
    for job in s.jobs:
        own = [c for c in calls if c.job == job.job]
        assert job.synth_ms == sum(c.synth_end - c.synth_start for c in own)
        assert job.queue_ms == sum(c.picked - c.sent for c in own)
        assert job.wall_ms == max(c.end for c in own) - min(c.synth_start for c in own)


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(1, 10**9))
def test_shifted_clocks_change_nothing(calls: list[Call], shift: int) -> None:
    times = ("synth_start", "synth_end", "sent", "picked", "start", "end")
    moved = [Call(c.job, c.partition, c.worker, *(getattr(c, name) + shift for name in times)) for c in calls]
    one, two = summary("\n".join(log_of(calls))), summary("\n".join(log_of(moved)))
    assert (one.totals, one.steady, one.jobs) == (two.totals, two.steady, two.jobs)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_the_steady_state_is_the_rest(calls: list[Call]) -> None:
    s = summary("\n".join(log_of(calls)))
    cold = next(j.job for j in s.jobs if j.cold)
    rest = [c for c in calls if c.job != cold]
    if not rest:
        assert s.steady is None
        return
    low, high = min(c.start for c in rest), max(c.end for c in rest)
    busy = sum(any(c.start <= now < c.end for c in calls) for now in range(low, high))
    assert (s.steady.wall_ms, s.steady.gpu_union_ms, s.steady.idle_ms) == (high - low, busy, high - low - busy)
    assert sum(s.steady.idle_causes.values()) == s.steady.idle_ms
    assert s.steady.gpu_sum_ms == sum(c.end - c.start for c in rest)
    assert s.steady.partitions == len(rest)
