"""The log's clock on random schedules whose offset is known: the bounds hold it, and work is paired with its bracket.

A schedule is made on the log's true clock (real-valued ms); its log has whole milliseconds, rounded down, and its
trace the same instants in ns, moved by an offset. A unit of work lies inside its bracket, a little shorter than it.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
import pytest
from oracle.depth import examples

from nvprof_tools.timeline.align import MS, Brackets, Fit, Work, fit, fit_near

SEEDS = range(examples(15))
MINUTE = 60_000 * MS


@dataclass(frozen=True)
class Known:
    """Units, brackets, the right pairing (−1: its bracket is not in the log) and the true offset, ns."""

    work: Work
    brackets: Brackets
    pair: list[int]
    offset: int

    @property
    def possible(self) -> int:
        """How many units have a bracket."""
        return sum(p >= 0 for p in self.pair)


def schedule(
    rng: random.Random,
    workers: int = 1,
    each: int = 8,
    lasts: tuple[float, float] = (20, 80),
    pause: tuple[float, float] = (1, 30),
    margin: float = 0.4,
    ppm: float = 0.0,
) -> Known:
    """``workers`` workers that run ``each`` partitions one after the other; all times in ms."""
    brackets: list[tuple[float, float, int]] = []
    for worker in range(workers):
        now = rng.uniform(0, 50)
        for _ in range(each):
            end = now + rng.uniform(*lasts)
            brackets.append((now, end, worker))
            now = end + rng.uniform(*pause)
    offset = rng.randrange(-(10**12), 10**12)

    def on_trace(ms: float) -> int:
        return round(ms * MS * (1 + ppm * 1e-6)) + offset

    order = rng.sample(range(len(brackets)), len(brackets))
    units = [brackets[i] for i in order]
    return Known(
        Work(
            np.array([on_trace(a + rng.uniform(0, margin)) for a, _, _ in units], np.int64),
            np.array([on_trace(b - rng.uniform(0, margin)) for _, b, _ in units], np.int64),
            np.array([100 + w for _, _, w in units], np.int64),
        ),
        Brackets(
            np.array([int(a) for a, _, _ in brackets], np.int64),
            np.array([int(b) for _, b, _ in brackets], np.int64),
            np.array([w for _, _, w in brackets], np.int64),
        ),
        order,
        offset,
    )


def without(known: Known, units: set[int], brackets: set[int]) -> Known:
    """The same run with units missing from the trace and brackets missing from the log."""
    here = [i for i in range(len(known.work)) if i not in units]
    rows = [j for j in range(len(known.brackets)) if j not in brackets]
    b = known.brackets
    return Known(
        known.work.take(np.array(here)),
        Brackets(b.start[rows], b.end[rows], b.worker[rows]),
        [rows.index(known.pair[i]) if known.pair[i] in rows else -1 for i in here],
        known.offset,
    )


def holds(known: Known, found: Fit | None) -> None:
    """The bounds contain the truth, no pair is wrong and none is missing."""
    assert found is not None
    assert found.low <= known.offset <= found.high
    wrong = [(i, p) for i, p in enumerate(found.pair.tolist()) if p not in {-1, known.pair[i]}]
    assert wrong == []
    assert found.matched == known.possible
    assert found.matched == int((found.pair >= 0).sum())


def anchors(offset: int, rng: random.Random) -> list[int | None]:
    """No anchor; a good one; one that is milliseconds off; one that is minutes off."""
    return [None, offset + rng.randrange(MS), offset + 20 * MS, offset - 7 * MINUTE]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_worker(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng)
    for anchor in anchors(known.offset, rng):
        holds(known, fit(known.work, known.brackets, anchor))


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_whose_brackets_overlap(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng, workers=rng.randint(2, 3), margin=rng.choice([0.2, 2.0]))
    for anchor in anchors(known.offset, rng):
        holds(known, fit(known.work, known.brackets, anchor))


@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_missing_from_the_log_or_from_the_trace(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng, each=14)
    known = without(known, set(rng.sample(range(14), 3)), set(rng.sample(range(14), rng.randint(0, 3))))
    for anchor in anchors(known.offset, rng):
        holds(known, fit(known.work, known.brackets, anchor))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_capture_that_was_cut(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng, each=20)
    begun, ended = sorted(rng.sample(range(21), 2))
    if ended - begun < 6:
        begun, ended = 0, 12
    seen = set(range(begun, ended))
    known = without(known, {i for i, p in enumerate(known.pair) if p not in seen}, set())
    last = int(np.argmax(known.work.first))
    cut = known.work.last.copy()
    cut[last] = known.work.first[last] + (cut[last] - known.work.first[last]) // 2
    for anchor in anchors(known.offset, rng):
        holds(known, fit(Work(known.work.first, cut, known.work.thread), known.brackets, anchor))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bracket_that_never_ended(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng, each=12)
    b = known.brackets
    end = b.end.copy()
    end[rng.randrange(12)] = -1
    for anchor in anchors(known.offset, rng):
        holds(known, fit(known.work, Brackets(b.start, end, b.worker), anchor))


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_the_intersection_of_what_the_pairs_allow(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng, workers=2, each=5, margin=3.0)
    found = fit_near(known.work, known.brackets, known.offset, 3 * MS)
    assert found is not None
    work, brackets = known.work, known.brackets
    pairs = [(i, p) for i, p in enumerate(found.pair.tolist()) if p >= 0]
    assert len({p for _, p in pairs}) == len(pairs) == found.matched
    # The last instant a stamp stands for is the end of its millisecond.
    assert found.low == max(int(work.last[i]) - (int(brackets.end[p]) + 1) * MS + 1 for i, p in pairs)
    assert found.high == min(int(work.first[i]) - int(brackets.start[p]) * MS for i, p in pairs)
    assert found.low <= found.high


@pytest.mark.parametrize("seed", SEEDS)
def test_no_more_is_matched_than_any_offset_allows(seed: int) -> None:
    rng = random.Random(seed)
    known = schedule(rng, workers=2, each=2, lasts=(2, 9), pause=(0, 4))
    known = without(known, {0} if seed % 2 else set(), {3} if seed % 3 else set())
    found = fit(known.work, known.brackets, None)
    assert found is not None
    assert found.matched <= most_pairs(known)


def most_pairs(known: Known) -> int:
    """The largest number of units that get a bracket each under one offset, by trying everything."""
    work, brackets = known.work, known.brackets
    allowed = {
        (i, j): (
            int(work.last[i]) - (int(brackets.end[j]) + 1) * MS + 1,
            int(work.first[i]) - int(brackets.start[j]) * MS,
        )
        for i in range(len(work))
        for j in range(len(brackets))
    }
    best = 0
    for offset in {bound for bounds in allowed.values() for bound in bounds}:
        fits = {pair for pair, (low, high) in allowed.items() if low <= offset <= high}
        columns = [*range(len(brackets)), *[-1] * len(work)]
        for choice in set(itertools.permutations(columns, len(work))):
            best = max(best, sum((i, j) in fits for i, j in enumerate(choice)))
    return best


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ppm", [-120.0, 0.0, 40.0])
def test_a_long_run_whose_clocks_drift(seed: int, ppm: float) -> None:
    rng = random.Random(seed)
    known = schedule(rng, each=60, lasts=(1000, 4000), pause=(5, 100), ppm=ppm)
    found = fit(known.work, known.brackets, known.offset if seed % 2 else None)
    assert found is not None
    assert found.pair.tolist() == known.pair
    # Anywhere in the run, the log's time lands as near to the truth as the answer says.
    assert found.spread is not None
    assert found.spread < MS
    for ms in np.linspace(int(known.brackets.start[0]), int(known.brackets.end[-1]), 20).astype(int).tolist():
        told = ms * MS + ms * found.drift_ppb // 1000 + found.middle
        assert abs(told - round(ms * MS * (1 + ppm * 1e-6)) - known.offset) <= found.spread + 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("off", [0, 600, -300])
def test_units_shorter_than_a_stamp(seed: int, off: int) -> None:
    """Many fit several brackets, and the tightest may be another's; the order of a worker's units tells."""
    known = schedule(random.Random(seed), workers=2, each=300, lasts=(0.3, 1.4), pause=(0.02, 0.3), margin=0.05)
    found = fit(known.work, known.brackets, known.offset + off)
    assert found is not None
    assert found.matched == known.possible
    assert found.pair.tolist() == known.pair
    assert found.low <= known.offset <= found.high


def test_nothing_to_pair() -> None:
    known = schedule(random.Random(0))
    none = known.work.take(np.array([], np.int64))
    assert fit(none, known.brackets, 0) is None
    empty = np.array([], np.int64)
    assert fit(known.work, Brackets(empty, empty, empty), None) is None


def test_work_longer_than_every_bracket_fits_none() -> None:
    work = Work(np.array([0]), np.array([50 * MS]), np.array([1]))
    assert fit(work, Brackets(np.array([10, 100]), np.array([20, 130]), np.array([0, 0])), None) is None


def test_the_worked_example() -> None:
    work = Work(np.array([5_200_000]), np.array([9_100_000]), np.array([1]))
    found = fit(work, Brackets(np.array([3]), np.array([6]), np.array([0])), None)
    assert found is not None
    assert (found.low, found.high) == (2_100_001, 2_200_000)
