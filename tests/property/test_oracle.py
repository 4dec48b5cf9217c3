"""The attribution against the oracle, nanosecond by nanosecond, on small random captures."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from oracle.compare import differences, smallest
from oracle.depth import examples
from oracle.oracle import Background, answer, lawful, sections_of
from oracle.random_logs import MS, UTC, LoggedCase, bare_logged_case, cut_case, logged_case
from oracle.random_traces import Case, case
from oracle.rows import Logged, World, trace_of

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.model.attribution import Attribution, PartitionView
from nvprof_tools.pipelines.load import load_pipeline

PIPELINES = {name: load_pipeline(name) for name in ("cuzk", "generic")}
CHUNKS = 10


def wrong(world: World, of: Case) -> list[str]:
    """Where the two answers differ."""
    low, high = of.window
    got = attribute(trace_of(world), None, [PIPELINES[of.pipeline]], Options(window=f"{low}:{high}"))
    return differences(got, answer(world, of.rules, of.window))


def explain(of: Case, seed: int) -> str:
    """The smallest capture that still shows a difference, and what differs."""

    def fails(world: World) -> bool:
        sections = sections_of(world, of.rules)
        return bool(sections) and lawful(world, sections) and bool(wrong(world, of))

    world = smallest(of.world, fails)
    return "\n".join([f"seed {seed}, pipeline {of.pipeline}, window {of.window}", repr(world), *wrong(world, of)])


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_nanosecond_is_what_the_oracle_says(chunk: int) -> None:
    for seed in range(chunk, examples(300), CHUNKS):
        of = case(seed)
        if wrong(of.world, of):
            pytest.fail(explain(of, seed))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_with_a_log(chunk: int) -> None:
    for seed in range(chunk, examples(60), CHUNKS):
        of = logged_case(seed)
        got = attribute(trace_of(of.world, UTC), of.log, [PIPELINES[of.of.pipeline]])
        assert against_log(got, of, None) == [], seed


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_with_a_log_and_no_ranges(chunk: int) -> None:
    for seed in range(chunk, examples(60), CHUNKS):
        of = bare_logged_case(seed)
        got = attribute(trace_of(of.world, UTC), of.log, [PIPELINES["cuzk"]])
        # A section lasts from its pick-up to its bracket's end, or longer where its own calls do.
        stays = [
            (min(begin, middle(got, row.picked)), max(end, middle(got, row.gpu_end)), caller)
            for (begin, end, caller), row in zip(of.spans, of.partitions, strict=True)
        ]
        if len({begin for begin, *_ in stays}) == len(stays):  # "the oldest" must be one
            assert against_log(got, of, stays) == [], seed


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_capture_cut_while_the_log_goes_on(chunk: int) -> None:
    for seed in range(chunk, examples(60), CHUNKS):
        of = cut_case(seed)
        got = attribute(trace_of(of.world, UTC), of.log, [PIPELINES[of.of.pipeline]])
        unseen = sorted(p.partition for p in got.partitions if p.start_ns is None and not p.categories)
        assert unseen == [row.partition for row in of.partitions[len(of.spans) :]], seed
        shown = replace(got, partitions=tuple(p for p in got.partitions if p.start_ns is not None))
        assert [p.open for p in shown.partitions] == [p.end_ns == of.world.end for p in shown.partitions], seed
        lossy = any(middle(got, row.gpu_end) > (of.world.end or 0) for row in of.partitions)
        assert against_log(shown, of, None, lossy) == [], seed


def middle(got: Attribution, stamp: int | None) -> int:
    """A stamp of the log on the trace's clock: it stands for the middle of its millisecond."""
    assert stamp is not None
    assert got.clock.offset_ns is not None
    return stamp * MS + MS // 2 + got.clock.offset_ns


def against_log(
    got: Attribution, of: LoggedCase, stays: list[tuple[int, int, int]] | None, lossy: bool = False
) -> list[str]:
    """Where the answer differs from the oracle's and from what the log says."""
    rows = of.partitions

    def times(begin: str, end: str) -> tuple[tuple[int, int], ...]:
        return tuple((middle(got, getattr(r, begin)), middle(got, getattr(r, end))) for r in rows)

    brackets = times("gpu_start", "gpu_end")
    window = min(a for a, _ in brackets), min(max(b for _, b in brackets), of.world.end or 0)
    ranges = tuple((r.start, r.end) for r in of.world.ranges if r.name == "synthesis")
    background = Background(times("sent", "picked"), ranges or times("synth_start", "synth_end"))
    want = answer(of.world, of.of.rules, window, background, stays, lossy)
    order = sorted(range(len(of.spans)), key=lambda i: (stays or of.spans)[i])
    shown = [(p.start_ns, p.end_ns, *told(p)) for p in got.partitions]
    wanted = [
        (s.start, s.end, rows[i].job, rows[i].partition, rows[i].worker, *brackets[i])
        for i, s in zip(order, want.sections, strict=True)
    ]
    return [
        *([] if (got.window.start_ns, got.window.end_ns) == window else [f"window {got.window}, want {window}"]),
        *([] if abs((got.clock.offset_ns or 0) - of.offset) <= (got.clock.uncertainty_ns or 0) else [f"{got.clock}"]),
        *([] if sorted(shown) == sorted(wanted) else [f"partitions {shown}, want {wanted}"]),
        *differences(got, want),
        # A bracket in the window whose section the capture did not see has no device of its own.
        *(
            brackets_differ(got, [(brackets[i], s.device) for i, s in zip(order, want.sections, strict=True)])
            if all(begin >= window[1] for begin, _ in brackets[len(order) :])
            else []
        ),
        *jobs_differ(got, rows),
    ]


def told(p: PartitionView) -> tuple[object, ...]:
    """What the log gave a partition."""
    return p.job, p.partition, p.worker, p.bracket_start_ns, p.bracket_end_ns


def brackets_differ(got: Attribution, brackets: list[tuple[tuple[int, int], int | None]]) -> list[str]:
    """The rungs that the log alone gives: the brackets' parts inside the window, added up and united."""
    out = []
    low, high = got.window.start_ns, got.window.end_ns
    for view in got.devices:
        mine = [(max(a, low), min(b, high)) for (a, b), device in brackets if device == view.device]
        edges = sorted({t for span in mine for t in span})
        united = sum(b - a for a, b in pairwise(edges) if any(x <= a and b <= y for x, y in mine))
        rungs = {r.rung: r.busy_ns for r in got.ladder if r.device == view.device}
        for name, value in (("timeline_sum", sum(b - a for a, b in mine)), ("timeline_bracket", united)):
            if rungs[name] != value:
                out.append(f"{name} of device {view.device}: got {rungs[name]}, want {value}")
    return out


def jobs_differ(got: Attribution, rows: tuple[Logged, ...]) -> list[str]:
    """Jobs add up their partitions."""
    out = []
    for job in got.jobs:
        mine = [r for r in rows if r.job == job.job]
        views = [p for p in got.partitions if p.job == job.job]
        total: dict[str, int] = {}
        for view in views:
            for category, ns in view.categories.items():
                total[category] = total.get(category, 0) + ns
        queued = sum(((r.picked or 0) - (r.sent or 0)) * MS for r in mine)
        if dict(job.categories) != total or job.partitions != len(mine) or job.queue_ns != queued:
            out.append(f"{job}, want {total}, {len(mine)}, {queued}")
    return out
