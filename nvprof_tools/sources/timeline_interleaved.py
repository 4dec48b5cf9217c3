"""Separates engines that wrote into one log at the same time, each on its own clock.

Every event belongs to one engine. What must hold: the file's order is the order of real time (but for a few
milliseconds), an engine's clock never runs backwards, a partition goes through its events in order and once, and the
durations that the lines state fit. A beam search over the assignments keeps those that break least; the result is
refused when even the best breaks too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nvprof_tools.model.pipeline import ROLES
from nvprof_tools.sources.timeline_events import NONE, Events, Ints

BEAM = 32
MAX_ENGINES = 4
MAX_EVENTS = 50_000
JITTER_MS = 5
"""An event may be written this much after its time was taken."""
ANCHOR_MS = 3
CLOSE_CALL = 0.5
HOPELESS = 12.0
"""A guess that breaks this much more than the best one is dropped."""

_SYNTH_START, _SYNTH_END, _GPU_START, _GPU_END = (
    ROLES.index(role) for role in ("synth_start", "synth_end", "gpu_start", "gpu_end")
)


@dataclass(frozen=True)
class Split:
    """Row indices by engine. ``unsure``: rows that an almost as good split gives to another engine."""

    rows: tuple[Ints, ...]
    cost: float
    unsure: int


class _Row(NamedTuple):
    """One event as plain numbers."""

    time: int
    role: int
    worker: int
    gpu_ms: int
    synth_ms: int
    job: int
    line: int


class _Chain(NamedTuple):
    """How far one partition has come on one engine."""

    role: int
    time: int
    synth_start: int
    gpu_start: int
    worker: int


class _Pick(NamedTuple):
    """The engine an event was given to, and all picks before it: guesses share their past."""

    engine: int
    before: _Pick | None


@dataclass(slots=True)
class _Guess:
    cost: float
    last: list[int | None]
    ahead: list[list[float]]
    """``ahead[a][b]``: engine b started at least this many ms after engine a."""
    chains: dict[tuple[int, int], _Chain]
    jobs: dict[int, int]
    pick: _Pick | None = None

    def copy(self) -> _Guess:
        ahead = [list(row) for row in self.ahead]
        return _Guess(self.cost, list(self.last), ahead, self.chains.copy(), self.jobs.copy(), self.pick)


def split(events: Events, engines: int, anchors: Sequence[tuple[int, int]] = ()) -> Split | None:
    """Assigns each event to one of ``engines`` engines.

    :param anchors: (line, UTC ns) of each engine's start, in file order; empty or one for each engine.
    :returns: null when no assignment is clean.
    """
    if not 2 <= engines <= MAX_ENGINES or len(events) > MAX_EVENTS:
        return None
    tries = [_search(events, engines, anchors)] if len(anchors) == engines else []
    if not tries or tries[0].cost > _allowance(events):
        # Without anchors, or with anchors that contradict the lines (a wall clock may be minutes off).
        tries.append(_search(events, engines, ()))
    best = min(tries, key=lambda result: result.cost)
    return best if best.cost <= _allowance(events) and all(len(rows) for rows in best.rows) else None


def _allowance(events: Events) -> float:
    return 2.0 + 0.05 * len(events)


def _search(events: Events, engines: int, anchors: Sequence[tuple[int, int]]) -> Split:
    ahead = [[float("-inf")] * engines for _ in range(engines)]
    for a, (_, start_a) in enumerate(anchors):
        for b, (_, start_b) in enumerate(anchors):
            ahead[a][b] = (start_b - start_a) / 1_000_000 - ANCHOR_MS
    used = sorted(set(events.role[events.role >= 0].tolist()))
    chains = events.chains().tolist()
    columns = [getattr(events, name) for name in ("time_ms", *_Row._fields[1:])]
    beam = [_Guess(0.0, [None] * engines, ahead, {}, {})]
    for chain, *values in zip(chains, *(column.tolist() for column in columns), strict=True):
        row = _Row(*values)
        children: list[tuple[float, int, _Guess]] = []
        for guess in beam:
            fresh = guess.last.count(None)
            for engine in range(engines):
                # Engines that nothing tells apart yet are one and the same choice.
                if not anchors and guess.last[engine] is None and engine > engines - fresh:
                    continue
                cost = guess.cost + _cost(guess, engine, chain, row, used, anchors)
                children.append((cost, engine, guess))
        children.sort(key=lambda child: child[0])
        limit = children[0][0] + HOPELESS
        beam = _grow([child for child in children[:BEAM] if child[0] <= limit], chain, row)
    return _result(beam, len(events), engines)


def _cost(
    guess: _Guess, engine: int, chain: int, row: _Row, used: list[int], anchors: Sequence[tuple[int, int]]
) -> float:
    """What it breaks to give this event to this engine."""
    time = row.time
    cost = 0.0
    own = guess.last[engine]
    if own is not None and time < own - JITTER_MS:
        cost += 3 + (own - time) / 50
    for other, last in enumerate(guess.last):
        if other != engine and last is not None:
            gap = last - time - JITTER_MS + guess.ahead[engine][other]
            if gap > 0:
                cost += 1 + gap / 10
    if anchors and row.line < anchors[engine][0]:
        cost += 3
    if guess.jobs.get(row.job, 1 << engine) & (1 << engine) == 0:
        cost += 1
    return cost if row.role < 0 else cost + _chain_cost(guess.chains.get((engine, chain)), row, used)


def _chain_cost(state: _Chain | None, row: _Row, used: list[int]) -> float:
    time, role, worker = row.time, row.role, row.worker
    before = [r for r in used if r < role]
    if state is None:
        return 6.0 + len(before) if before else 0.0
    if role <= state.role:
        return 50.0
    cost = 2.0 * sum(r > state.role for r in before)
    if time < state.time - JITTER_MS:
        cost += 5
    if worker != NONE and state.worker not in (NONE, worker):
        cost += 5
    if role == _SYNTH_END and NONE not in (row.synth_ms, state.synth_start):
        cost += _mismatch(time - state.synth_start - row.synth_ms, 3)
    if role == _GPU_END and NONE not in (row.gpu_ms, state.gpu_start):
        cost += _mismatch(time - state.gpu_start - row.gpu_ms, 10)
    return cost


def _mismatch(error: int, tolerance: int) -> float:
    """A duration that does not fit the one stated; among those that fit, the closest is the likeliest."""
    fits = -2 <= error <= tolerance
    return 0.05 * abs(error) if fits else min(5.0, abs(error) / tolerance)


def _grow(children: list[tuple[float, int, _Guess]], chain: int, row: _Row) -> list[_Guess]:
    """The next beam; a guess with one child is changed in place, only one with several is copied."""
    count: dict[int, int] = {}
    for _, _, guess in children:
        count[id(guess)] = count.get(id(guess), 0) + 1
    grown = []
    for cost, engine, guess in children:
        count[id(guess)] -= 1
        child = guess.copy() if count[id(guess)] else guess
        child.cost = cost
        _apply(child, engine, chain, row)
        grown.append(child)
    return grown


def _apply(guess: _Guess, engine: int, chain: int, row: _Row) -> None:
    time, role, worker, job = row.time, row.role, row.worker, row.job
    for other, last in enumerate(guess.last):
        if other != engine and last is not None:
            bound = last - time - JITTER_MS
            if bound + guess.ahead[engine][other] <= 0:
                guess.ahead[other][engine] = max(guess.ahead[other][engine], bound)
    own = guess.last[engine]
    guess.last[engine] = time if own is None else max(own, time)
    guess.jobs[job] = guess.jobs.get(job, 0) | (1 << engine)
    guess.pick = _Pick(engine, guess.pick)
    if role < 0:
        return
    state = guess.chains.get((engine, chain)) or _Chain(role, time, NONE, NONE, NONE)
    guess.chains[engine, chain] = _Chain(
        role,
        time,
        time if role == _SYNTH_START else state.synth_start,
        time if role == _GPU_START else state.gpu_start,
        worker if worker != NONE else state.worker,
    )


def _picks(guess: _Guess, count: int) -> Ints:
    picks = np.empty(count, np.int64)
    link = guess.pick
    index = count
    while link is not None:
        index -= 1
        picks[index], link = link.engine, link.before
    return picks


def _result(beam: list[_Guess], count: int, engines: int) -> Split:
    best = _picks(beam[0], count)
    unsure = 0
    for other in beam[1:]:
        if other.cost > beam[0].cost + CLOSE_CALL:
            break
        unsure = max(unsure, int(np.count_nonzero(_picks(other, count) != best)))
    return Split(tuple(np.flatnonzero(best == engine) for engine in range(engines)), beam[0].cost, unsure)
