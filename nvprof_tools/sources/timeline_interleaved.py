"""Separates engines that wrote into one log at the same time, each on its own clock.

Every event belongs to one engine. What must hold: the file's order is the order of real time (but for a few
milliseconds), an engine's clock never runs backwards, a partition goes through its events in order and once, and the
durations that the lines state fit. A beam search over the assignments keeps those that break least; the result is
refused when even the best breaks too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nvprof_tools.model.pipeline import ROLES
from nvprof_tools.sources.timeline_events import NONE, Events, Ints

BEAM = 32
MAX_ENGINES = 4
MAX_EVENTS = 200_000
JITTER_MS = 5
"""An event may be written this much after its time was taken."""
ANCHOR_MS = 3
CLOSE_CALL = 0.5

_SYNTH_END, _GPU_START, _GPU_END = ROLES.index("synth_end"), ROLES.index("gpu_start"), ROLES.index("gpu_end")


@dataclass(frozen=True)
class Split:
    """Row indices by engine. ``unsure``: rows that an almost as good split gives to another engine."""

    rows: tuple[Ints, ...]
    cost: float
    unsure: int


@dataclass(slots=True)
class _Chain:
    """How far one partition has come on one engine."""

    role: int
    time: int
    times: dict[int, int] = field(default_factory=dict)
    worker: int = NONE


@dataclass(slots=True)
class _Guess:
    cost: float
    last: list[int | None]
    ahead: list[list[float]]
    """``ahead[a][b]``: engine b started at least this many ms after engine a."""
    chains: dict[tuple[int, int], _Chain]
    jobs: dict[int, int]
    picks: tuple[int, object] | None = None

    def copy(self) -> _Guess:
        chains = {key: _Chain(c.role, c.time, dict(c.times), c.worker) for key, c in self.chains.items()}
        return _Guess(self.cost, list(self.last), [list(r) for r in self.ahead], chains, dict(self.jobs), self.picks)


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
    columns = (events.time_ms, events.role, events.worker, events.gpu_ms, events.synth_ms, events.job, events.line)
    beam = [_Guess(0.0, [None] * engines, ahead, {}, {})]
    for chain, *row in zip(chains, *(column.tolist() for column in columns), strict=True):
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
        beam = _grow(children[:BEAM], chain, row)
    return _result(beam, len(events), engines)


def _cost(
    guess: _Guess, engine: int, chain: int, row: list[int], used: list[int], anchors: Sequence[tuple[int, int]]
) -> float:
    """What it breaks to give this event to this engine."""
    time, role, worker, gpu_ms, synth_ms, job, line = row
    cost = 0.0
    own = guess.last[engine]
    if own is not None and time < own - JITTER_MS:
        cost += 3 + (own - time) / 50
    for other, last in enumerate(guess.last):
        if other != engine and last is not None:
            gap = last - time - JITTER_MS + guess.ahead[engine][other]
            if gap > 0:
                cost += 1 + gap / 10
    if anchors and line < anchors[engine][0]:
        cost += 3
    if guess.jobs.get(job, 1 << engine) & (1 << engine) == 0:
        cost += 1
    return cost if role < 0 else cost + _chain_cost(guess.chains.get((engine, chain)), row, used)


def _chain_cost(state: _Chain | None, row: list[int], used: list[int]) -> float:
    time, role, worker, gpu_ms, synth_ms, _, _ = row
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
    if role == _SYNTH_END and synth_ms != NONE and 0 in state.times:
        cost += _mismatch(time - state.times[0] - synth_ms, 3)
    if role == _GPU_END and gpu_ms != NONE and _GPU_START in state.times:
        cost += _mismatch(time - state.times[_GPU_START] - gpu_ms, 10)
    return cost


def _mismatch(error: int, tolerance: int) -> float:
    return min(5.0, abs(error) / tolerance) if error < -2 or error > tolerance else 0.0


def _grow(children: list[tuple[float, int, _Guess]], chain: int, row: list[int]) -> list[_Guess]:
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


def _apply(guess: _Guess, engine: int, chain: int, row: list[int]) -> None:
    time, role, worker, _, _, job, _ = row
    for other, last in enumerate(guess.last):
        if other != engine and last is not None:
            bound = last - time - JITTER_MS
            if bound + guess.ahead[engine][other] <= 0:
                guess.ahead[other][engine] = max(guess.ahead[other][engine], bound)
    own = guess.last[engine]
    guess.last[engine] = time if own is None else max(own, time)
    guess.jobs[job] = guess.jobs.get(job, 0) | (1 << engine)
    guess.picks = (engine, guess.picks)
    if role < 0:
        return
    state = guess.chains.setdefault((engine, chain), _Chain(role, time))
    state.role, state.time = role, time
    state.times[role] = time
    state.worker = worker if worker != NONE else state.worker
    if role == len(ROLES) - 1:
        # Done: an event that comes again must find no open partition here, and memory stays small.
        state.times.clear()


def _picks(guess: _Guess, count: int) -> Ints:
    picks = np.empty(count, np.int64)
    link = guess.picks
    for index in range(count - 1, -1, -1):
        assert link is not None
        picks[index], link = link  # type: ignore[assignment]
    return picks


def _result(beam: list[_Guess], count: int, engines: int) -> Split:
    best = _picks(beam[0], count)
    unsure = 0
    for other in beam[1:]:
        if other.cost > beam[0].cost + CLOSE_CALL:
            break
        unsure = max(unsure, int(np.count_nonzero(_picks(other, count) != best)))
    return Split(tuple(np.flatnonzero(best == engine) for engine in range(engines)), beam[0].cost, unsure)
