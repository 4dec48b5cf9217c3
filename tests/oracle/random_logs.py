"""The log that a random capture's pipeline would have written: whole milliseconds on a clock of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from nvprof_tools.model.trace import AppLog
from oracle.oracle import Section, begun_by, call_category, sections_of
from oracle.random_traces import Case, bare_case, case
from oracle.rows import Logged, World, log_of

MS = 1_000_000
UTC = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class LoggedCase:
    """A capture at a scale of milliseconds, its log, and what is true of both.

    ``partitions[i]`` is the log's row of the capture's section ``i``, by start; ``offset``: trace time of the engine's
    start, ns. ``spans``: from when to when a section is busy, and its caller.
    """

    of: Case
    log: AppLog
    partitions: tuple[Logged, ...]
    spans: tuple[tuple[int, int, int], ...]
    offset: int

    @property
    def world(self) -> World:
        """The capture."""
        return self.of.world


def logged_case(seed: int) -> LoggedCase:
    """One process whose log's anchor is good. The same seed gives the same case."""
    rng = random.Random(seed)
    small = next(c for c in (case(rng.randrange(2**32), processes=1) for _ in range(1000)) if all_launch(c))
    scale = rng.randint(200_000, 900_000)
    begin = rng.randint(10 * MS, 500 * MS)
    of = Case(small.world.mapped(lambda t: begin + t * scale), small.pipeline, (0, 0))
    return written(rng, of, sections_of(of.world, of.rules))


def cut_case(seed: int) -> LoggedCase:
    """A logged capture that ends early, after every worker has begun and some section has launched; its log goes on.
    A section that began later has no row in ``spans``, but has one in ``partitions``, after the others."""
    rng = random.Random(seed)
    whole = logged_case(seed)
    sections = sections_of(whole.world, whole.of.rules)
    launched = [
        c.end
        for s in sections
        for c in whole.world.calls
        if call_category(c.name) == "launch" and c.start < c.end and begun_by(s, c)
    ]
    begun = [min(s.start for s in sections if s.caller == caller) for caller in {s.caller for s in sections}]
    since = max(min(launched), *begun) + 1
    end = rng.randint(since, max(since, max(s.end for s in sections) - 1))
    seen = tuple((a, min(b, end), caller) for a, b, caller in whole.spans if a < end)
    begins = sorted((row.gpu_start or 0) * MS + whole.offset for row in whole.partitions[: len(seen)])
    still_open = [a for a, b, _ in seen if b == end]
    if len(still_open) > 1 and max(begins[-len(still_open) :]) < min(still_open) + MS:
        return cut_case(seed + 10**6)  # two cut sections would fit each other's bracket
    return replace(whole, of=replace(whole.of, world=whole.world.cut_at(end)), spans=seen)


def bare_logged_case(seed: int) -> LoggedCase:
    """The same of a capture without ranges."""
    rng = random.Random(seed)
    small, spans = bare_case(seed)
    scale = rng.randint(200_000, 900_000)
    begin = rng.randint(10 * MS, 500 * MS)
    of = Case(small.world.mapped(lambda t: begin + t * scale), small.pipeline, (0, 0))
    sections = sorted((begin + a * scale, begin + b * scale, caller) for a, b, caller in spans)
    return written(rng, of, tuple(Section(a, b, caller, 0) for a, b, caller in sections))


def written(rng: random.Random, of: Case, sections: tuple[Section, ...]) -> LoggedCase:
    """The capture with a log of its sections."""
    offset = min(of.world.times()) - rng.randint(200 * MS, 900 * MS)
    workers = sorted({s.caller for s in sections})
    rows = [row_of(rng, i, s, sections, workers, offset) for i, s in enumerate(sections)]
    log = log_of(rng.sample(rows, len(rows)), anchor_utc_ns=UTC + offset)
    return LoggedCase(of, log, tuple(rows), tuple((s.start, s.end, s.caller) for s in sections), offset)


def all_launch(of: Case) -> bool:
    """Whether every section launches something: by its launches a section is found in the log. Where a pipeline's
    brackets need not hold more than the launches, two workers' could be told apart by nothing else."""
    sections = sections_of(of.world, of.rules)
    launches = [c for c in of.world.calls if call_category(c.name) == "launch" and c.start < c.end]
    alone = of.pipeline == "cuzk" or len({s.caller for s in sections}) == 1
    return alone and all(any(begun_by(s, c) for c in launches) for s in sections)


def row_of(
    rng: random.Random, number: int, s: Section, sections: tuple[Section, ...], workers: list[int], offset: int
) -> Logged:
    """What the log says of one section: its bracket lies between those of the worker's neighbours."""
    before = max((o.end for o in sections if o.caller == s.caller and o.end <= s.start), default=s.start - 4 * MS)
    after = min((o.start for o in sections if o.caller == s.caller and o.start >= s.end), default=s.end + 4 * MS)
    gpu_start = s.start - rng.randint(0, (s.start - before) // 2)
    gpu_end = s.end + rng.randint(0, (after - s.end) // 2)
    picked = gpu_start - rng.randint(0, MS // 2)
    sent = picked - rng.randint(0, 20 * MS)
    synth_end = sent - rng.randint(0, 3 * MS)
    synth_start = synth_end - rng.randint(MS, 60 * MS)

    def stamp(time: int) -> int:
        return (time - offset) // MS

    return Logged(
        f"job-{number % 2}",
        number,
        workers.index(s.caller),
        *(stamp(t) for t in (synth_start, synth_end, sent, picked, gpu_start, gpu_end)),
    )
