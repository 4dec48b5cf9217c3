"""The attribution against the oracle, nanosecond by nanosecond, on small random captures."""

from __future__ import annotations

import pytest
from oracle.compare import differences, smallest
from oracle.depth import examples
from oracle.oracle import answer, lawful, sections_of
from oracle.random_traces import Case, case
from oracle.rows import World, trace_of

from nvprof_tools.attribution.attribute import Options, attribute
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
