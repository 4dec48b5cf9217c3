"""What must not change, or must change by exactly so much, when a capture is changed in a known way.

No expected figure is computed here: each test compares two answers. Captures are the random ones of the oracle, and
rows of any int64 whatever, which must end in an answer that adds up or in a ``ToolError``.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.depth import examples, settled
from oracle.random_traces import Case, case
from oracle.rows import Call, Gpu, Os, Overhead, Range, World, trace_of

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.categories import BUSY, CATEGORIES
from nvprof_tools.errors import ToolError
from nvprof_tools.model.attribution import Attribution, DeviceView
from nvprof_tools.pipelines.load import load_pipeline

PIPELINES = {name: load_pipeline(name) for name in ("cuzk", "generic")}
SEEDS = range(examples(12))
Told = tuple[list[object], list[object]]


def ask(world: World, pipeline: str, window: tuple[int, int]) -> Attribution:
    """The answer for a window."""
    return attribute(trace_of(world), None, [PIPELINES[pipeline]], Options(window=f"{window[0]}:{window[1]}"))


def told(a: Attribution, by: int = 0, scale: int = 1) -> Told:
    """Every figure that a change of names or order must leave alone; times less ``by``, then over ``scale``."""

    def time(t: int | None) -> float:
        return ((t or 0) - by) / scale

    def per(figures: Mapping[str, int] | None) -> list[tuple[str, float]]:
        return sorted((k, v / scale) for k, v in (figures or {}).items() if v)

    def details(of: Mapping[str, Mapping[str, int]]) -> list[object]:
        return sorted((category, per(split)) for category, split in of.items() if category not in {"kernel", *BUSY})

    devices: list[object] = [(d.device, d.wall_ns / scale, per(d.categories), details(d.details)) for d in a.devices]
    partitions: list[object] = sorted(
        (time(p.start_ns), time(p.end_ns), p.device, per(p.categories), per(p.driver_locks), per(p.blockers))
        for p in a.partitions
    )
    return devices, partitions


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by", [1, 10**17 + 7, -1000, -(10**17)])
def test_moved_in_time(seed: int, by: int) -> None:
    of = case(seed)
    low, high = of.window
    # Where times are negative a capture begins with its first work.
    first = Gpu(min(of.world.times()), low, 0, 88, 0, "kernel", "first", None)
    world = replace(of.world, gpu=(*of.world.gpu, first))
    moved = ask(world.mapped(lambda t: t + by), of.pipeline, (low + by, high + by))
    assert told(moved, by) == told(ask(world, of.pipeline, of.window))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [2, 150])
def test_scaled(seed: int, scale: int) -> None:
    of = case(seed)
    low, high = of.window
    larger = ask(of.world.mapped(lambda t: t * scale), of.pipeline, (low * scale, high * scale))
    assert told(larger, 0, scale) == told(ask(of.world, of.pipeline, of.window))


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_shuffled_and_threads_renumbered(seed: int) -> None:
    of = case(seed)
    assert told(ask(shuffled(of.world, seed), of.pipeline, of.window)) == told(ask(of.world, of.pipeline, of.window))


def shuffled(world: World, seed: int) -> World:
    """The same capture: rows in another order, threads, processes and streams under other numbers."""
    rng = random.Random(seed)
    thread = rng.sample(range(len(world.threads)), len(world.threads))
    count = max(world.threads) + 1
    process = rng.sample(range(count), count)
    place = rng.sample(range(len(world.calls)), len(world.calls))
    calls: list[Call] = [world.calls[0]] * len(world.calls)
    for i, call in enumerate(world.calls):
        calls[place[i]] = call._replace(thread=thread[call.thread])
    gpu = [
        g._replace(call=None if g.call is None else place[g.call], stream=100 - g.stream, process=process[g.process])
        for g in rng.sample(world.gpu, len(world.gpu))
    ]
    owner = [0] * len(world.threads)
    for i, p in enumerate(world.threads):
        owner[thread[i]] = process[p]
    return World(
        tuple(owner),
        world.devices,
        world.end,
        tuple(calls),
        tuple(gpu),
        tuple(r._replace(thread=thread[r.thread]) for r in rng.sample(world.ranges, len(world.ranges))),
        tuple(o._replace(thread=thread[o.thread]) for o in rng.sample(world.os, len(world.os))),
        tuple(o._replace(thread=thread[o.thread]) for o in rng.sample(world.overheads, len(world.overheads))),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_split_where_they_may_touch(seed: int) -> None:
    of = case(seed)
    assert told(ask(split(of.world, seed), of.pipeline, of.window)) == told(ask(of.world, of.pipeline, of.window))


def split(world: World, seed: int) -> World:
    """Every kernel, copy and overhead, and every OS call inside a CUDA call, in two pieces that touch."""
    rng = random.Random(seed)

    def cut(row: Gpu | Os | Overhead) -> list[Gpu | Os | Overhead]:
        at = rng.randint(row.start, row.end)
        return [row._replace(end=at), row._replace(start=at)]

    gpu = tuple(piece for g in world.gpu for piece in cut(g))
    overheads = tuple(piece for o in world.overheads for piece in cut(o))
    os = tuple(piece for o in world.os for piece in (cut(o) if in_call(world, o) else [o]))
    return replace(world, gpu=gpu, overheads=overheads, os=os)


def in_call(world: World, o: Os) -> bool:
    """Whether an OS call lies well inside a CUDA call of its thread."""
    return any(c.thread == o.thread and c.start < o.start and o.end < c.end for c in world.calls)


@pytest.mark.parametrize("seed", SEEDS)
def test_work_added_in_idle_time(seed: int) -> None:
    rng = random.Random(seed)
    idle: list[dict[str, int]] = []
    while not idle:
        of = case(seed)
        before = ask(of.world, of.pipeline, of.window)
        shown = {view.device for view in before.devices}
        rows = [r for r in before.device_segments.to_pylist() if r["device"] in shown]
        idle = [r for r in rows if r["category"] not in BUSY]
        seed += 10**6
    row = rng.choice(idle)
    begin = rng.randint(row["start_ns"], row["end_ns"] - 1)
    end = rng.randint(begin + 1, row["end_ns"])
    work = Gpu(begin, end, row["device"], 77, 0, rng.choice(["kernel", "HtoD", "DtoH", "memset"]), "pageable", None)
    after = ask(replace(of.world, gpu=(*of.world.gpu, work)), of.pipeline, of.window)
    busy = {"HtoD": "upload", "DtoH": "download"}.get(work.kind, work.kind)
    for old, new in zip(before.devices, after.devices, strict=True):
        want = Counter(dict(old.categories))
        if old.device == row["device"]:
            want[row["category"]] -= end - begin
            want[busy] += end - begin
        assert dict(new.categories) == {c: ns for c, ns in want.items() if ns}
    # The work is nobody's, so what the sections do stays as it was.
    assert told(after)[1] == told(before)[1]


# --- any int64 ------------------------------------------------------------------------------------------------------

EDGE = st.sampled_from([-(2**62), -(2**61), -1, 0, 1, 2, 3, 5, 10**9, 2**53 + 1, 2**61, 2**62 - 1, 2**62])
TIME = st.one_of(st.integers(-5, 60), EDGE, st.integers(-(2**62), 2**62))
THREAD = st.integers(0, 3)
CALL_NAMES = st.sampled_from(
    ["cudaHostRegister", "cudaDeviceSynchronize", "cudaMalloc", "cudaLaunchKernel", "cudaFree", "cudaEventRecord"]
)
RANGE_NAMES = st.sampled_from(
    ["gpu_section", "gpu_prove", "mutex_acquire", "gpu_mutex_held", "barrier_wait", "synthesis", "prep", ""]
)


@st.composite
def anything(draw: st.DrawFn) -> tuple[World, str, str | None]:
    """A capture of rows that need make no sense, a pipeline, and a window or none."""

    def times(ordered: bool = True) -> tuple[int, int]:
        pair = draw(TIME), draw(TIME)
        return (min(pair), max(pair)) if ordered else pair

    backwards = False
    some = st.integers(0, 4)
    calls = [Call(*times(not backwards), draw(THREAD), draw(CALL_NAMES)) for _ in range(draw(some))]
    calling = st.none() if not calls else st.one_of(st.none(), st.integers(0, len(calls) - 1))
    kind = st.sampled_from(["kernel", "HtoD", "DtoH", "DtoD", "memset", "graph"])
    number = st.integers(0, 1)
    world = World(
        (0, 0, 0, 1),
        2,
        draw(st.one_of(st.none(), TIME)),
        tuple(calls),
        tuple(
            Gpu(*times(not backwards), draw(number), draw(number), draw(number), draw(kind), "_GS_NTT", draw(calling))
            for _ in range(draw(some))
        ),
        tuple(Range(*times(not backwards), draw(THREAD), draw(RANGE_NAMES)) for _ in range(draw(some))),
        tuple(Os(*times(not backwards), draw(THREAD), "pthread_mutex_lock") for _ in range(draw(some))),
        tuple(Overhead(*times(not backwards), draw(THREAD), draw(st.booleans())) for _ in range(draw(some))),
    )
    window = draw(st.one_of(st.none(), st.tuples(TIME, TIME)))
    return world, draw(st.sampled_from(sorted(PIPELINES))), None if window is None else f"{window[0]}:{window[1]}"


@settled(150)
@given(anything())
def test_any_int64_adds_up_or_is_refused(asked: tuple[World, str, str | None]) -> None:
    world, pipeline, window = asked
    try:
        a = attribute(trace_of(world), None, [PIPELINES[pipeline]], Options(window=window))
    except ToolError as error:
        # No invariant of the tool's own may break but that of time itself: walls of 146 years do not fit one axis.
        assert error.exit_code != 4
        return
    wall = a.window.end_ns - a.window.start_ns
    assert wall > 0
    for view in a.devices:
        assert adds_up(view.categories, wall)
        assert view.wall_ns == wall
        assert filled(a, "device_segments", "device", view.device, view) == wall
    for p in a.partitions:
        if p.start_ns is None or p.end_ns is None:
            assert not p.categories
        else:
            assert adds_up(p.categories, p.end_ns - p.start_ns)
            assert sum((p.driver_locks or {}).values()) == sum((p.blockers or {}).values())
            for category, ns in (p.driver_locks or {}).items():
                assert 0 < ns <= p.categories[category]
    for rung in a.ladder:
        assert rung.busy_ns is None or 0 <= rung.busy_ns <= wall or rung.rung == "timeline_sum"


def adds_up(categories: Mapping[str, int], wall: int) -> bool:
    """Known categories, no negative time, and all of it is there."""
    return (
        set(categories) <= set(CATEGORIES)
        and min(categories.values(), default=0) >= 0
        and sum(categories.values()) == wall
    )


def filled(a: Attribution, table: str, key: str, number: int, view: DeviceView) -> int:
    """Length of one wall's segments, which follow each other without a gap; each category's are its total."""
    segments = getattr(a, table)
    rows = segments.filter(pc.equal(segments[key], number)).to_pylist()
    total = Counter[str]()
    for one, after in itertools.pairwise(rows):
        assert one["end_ns"] == after["start_ns"]
    for row in rows:
        assert row["start_ns"] < row["end_ns"]
        total[row["category"]] += row["end_ns"] - row["start_ns"]
    assert dict(total) == {c: ns for c, ns in view.categories.items() if ns}
    return rows[-1]["end_ns"] - rows[0]["start_ns"] if rows else 0


def test_the_walls_of_a_case_are_worth_comparing() -> None:
    cases: list[Case] = [case(seed) for seed in range(20)]
    assert sum(len(c.world.calls) for c in cases) > 100
    assert any(c.world.overheads for c in cases)
