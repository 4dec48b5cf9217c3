"""Tells the runs of one file apart: engines started one after the other, and engines that wrote at the same time.

A partition goes through its events in order and once; such a passage is an *instance*. The file is cut where the
engine's clock falls back or a new wall-clock anchor stands, pieces that share an instance belong together, and within
what belongs together an event may come once a partition. If it comes twice, either a job was tried again (its passages
follow one another), or two engines wrote at once (they do not).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nvprof_tools.model.pipeline import ROLES
from nvprof_tools.sources.timeline_events import NONE, Events, Ints
from nvprof_tools.sources.timeline_interleaved import MAX_ENGINES, split

FALL_MS = 100
"""A clock that falls back further than this between two lines was restarted, or the lines are of two engines."""
MIXED_FALLS = 4
"""So many falls in lines that belong together are not just late lines."""

LATE_MS = 5
"""A line may be written this much after its time was taken."""
MAX_ACTIVE = 64
"""Passages of one partition under way at once; more are not looked at."""

_SYNTH_END, _GPU_END = ROLES.index("synth_end"), ROLES.index("gpu_end")

Anchor = tuple[int, int]
"""Line, and UTC ns since 1970."""


@dataclass(frozen=True)
class Run:
    """One engine's events in file order, or what could not be told apart (``mixed``). ``first_line`` includes its
    anchor's."""

    events: Events
    anchor_utc_ns: int | None
    first_line: int
    last_line: int
    mixed: bool = False
    shared: bool = False
    """Another engine wrote into the same lines."""
    unsure: int = 0
    out_of_order: int = 0
    repeated_jobs: int = 0
    duplicates: int = 0


@dataclass(frozen=True)
class _Instances:
    """Per row with a role: the instance it belongs to (-1 without a role); per instance: first and last row."""

    of_row: Ints
    first: Ints
    last: Ints


def find_runs(events: Events, anchors: Sequence[Anchor]) -> list[Run]:
    """The runs in file order; engines that wrote at once in the order they started.

    :param anchors: wall-clock lines in file order.
    """
    if not len(events):
        return []
    instances = _instances(events)
    pools = _pools(events, anchors, instances)
    runs: list[Run] = []
    taken = 0
    for number, (start, end) in enumerate(pools):
        part = events.take(np.arange(start, end))
        own, taken = _anchors_of(events, pools, number, anchors, taken)
        runs += _runs_of(part, own)
    return runs


def _instances(events: Events) -> _Instances:
    """Matches events to passages of their partition."""
    chains = events.chains()
    known = np.flatnonzero(events.role >= 0)
    of_row = np.full(len(events), -1, np.int64)
    order = known[np.argsort(chains[known], kind="stable")]
    chain, role = chains[order], events.role[order]
    same = np.flatnonzero(np.concatenate(([False], chain[1:] == chain[:-1]))) if len(order) else order
    fresh = np.ones(len(order), np.bool_)
    fresh[same] = False
    # Partitions whose events rise in file order are one passage: nearly all of them.
    back = same[role[same] <= role[same - 1]]
    number = np.cumsum(fresh) - 1
    of_row[order] = number
    if len(back):
        _match(events, order, chain, np.unique(chain[back]), of_row, int(number[-1]) + 1)
    count = int(of_row.max()) + 1 if len(known) else 0
    first, last = np.full(count, len(events), np.int64), np.full(count, -1, np.int64)
    np.minimum.at(first, of_row[known], known)
    np.maximum.at(last, of_row[known], known)
    used = last >= 0
    renumber = np.cumsum(used) - 1
    of_row[known] = renumber[of_row[known]]
    return _Instances(of_row, first[used], last[used])


def _match(events: Events, order: Ints, chain: Ints, odd: Ints, of_row: Ints, count: int) -> None:
    """Rewrites ``of_row`` for partitions of several passages; numbers of new ones start at ``count``.

    Of the passages that have not come as far and whose clock is not ahead, an event continues the one whose duration
    fits the one it states, then the one that has come furthest, then the one that began last.
    """
    stated = np.where(
        events.role == _SYNTH_END, events.synth_ms, np.where(events.role == _GPU_END, events.gpu_ms, NONE)
    )
    for lo, hi in zip(np.searchsorted(chain, odd), np.searchsorted(chain, odd, side="right"), strict=True):
        rows = order[lo:hi]
        active: list[tuple[int, int, int]] = []
        columns = (rows, events.role[rows], events.time_ms[rows], stated[rows])
        for row, step, time, length in zip(*(column.tolist() for column in columns), strict=True):
            best = None
            for role, number, last in active:
                if role < step and last <= time + LATE_MS:
                    fits = length != NONE and -2 <= time - last - length <= LATE_MS
                    best = max(best or (False, -1, -1), (fits, role, number))
            if best is None:
                number = count
                count += 1
            else:
                number = best[2]
                active = [passage for passage in active if passage[1] != number]
            of_row[row] = number
            if step < len(ROLES) - 1:
                active.append((step, number, time))
                del active[:-MAX_ACTIVE]


def _pools(events: Events, anchors: Sequence[Anchor], instances: _Instances) -> list[tuple[int, int]]:
    """Row ranges that no instance crosses, cut at anchors and falls of the clock; cut finer, at falls of any size,
    where a range would hold an event of a partition twice."""
    lines = np.array([line for line, _ in anchors], np.int64)
    fall = np.concatenate(([0], events.time_ms[:-1] - events.time_ms[1:]))
    group = np.searchsorted(lines, events.line)
    anchored = np.concatenate(([False], group[1:] != group[:-1]))
    crossing = np.zeros(len(events) + 1, np.int64)
    np.add.at(crossing, instances.first + 1, 1)
    np.add.at(crossing, instances.last + 1, -1)
    free = np.cumsum(crossing)[: len(events)] == 0
    begins = free & _at_a_beginning(events)
    candidates = np.flatnonzero((free & anchored) | (begins & (fall > FALL_MS)))
    cuts = _that_begin(candidates, anchored, events, instances)
    pools = []
    for start, end in _ranges(cuts, len(events)):
        inner: list[int] = []
        if _repeats(events.take(np.arange(start, end))).any():
            candidates = np.flatnonzero((begins & (fall > 0))[start + 1 : end]) + start + 1
            inner = _that_begin(candidates, anchored, events, instances)
        pools += [(start + lo, start + hi) for lo, hi in _ranges([cut - start for cut in inner], end - start)]
    return pools


def _at_a_beginning(events: Events) -> npt.NDArray[np.bool_]:
    """Rows whose next event with a role is of the kind a partition begins with."""
    known = np.flatnonzero(events.role >= 0)
    if not len(known):
        return np.ones(len(events), np.bool_)
    lowest = events.role[known].min()
    following = known[np.minimum(np.searchsorted(known, np.arange(len(events))), len(known) - 1)]
    at_beginning: npt.NDArray[np.bool_] = events.role[following] == lowest
    return at_beginning


def _that_begin(cuts: Ints, anchored: npt.NDArray[np.bool_], events: Events, instances: _Instances) -> list[int]:
    """Cuts at anchors, and those after which most partitions go on from their beginning: after a restart they do,
    in lines that are merely out of order they do not."""
    lowest = events.role[events.role >= 0].min(initial=len(ROLES))
    whole = (events.role[instances.first] == lowest).astype(np.int64)
    order = np.argsort(instances.first)
    starts = instances.first[order]
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(whole[order])))
    edges = np.searchsorted(starts, np.append(cuts, len(events)))
    good = 2 * (total[edges[1:]] - total[edges[:-1]]) >= np.diff(edges)
    return [int(cut) for cut, fine in zip(cuts, good, strict=True) if fine or anchored[cut]]


def _ranges(cuts: list[int], count: int) -> list[tuple[int, int]]:
    edges = sorted({0, *cuts, count})
    return list(pairwise(edges))


def _anchors_of(
    events: Events, pools: list[tuple[int, int]], number: int, anchors: Sequence[Anchor], taken: int
) -> tuple[list[Anchor], int]:
    """The anchors that belong to one pool, and how many have been given out.

    Usually an anchor stands before its run. Where a program's two streams were stored one after the other, all anchors
    stand before or after all events: then they are dealt out in order, if there are as many as runs.
    """
    first, last = (int(events.line[row]) for row in (pools[number][0], pools[number][1] - 1))
    if anchors and (anchors[-1][0] < int(events.line[0]) or anchors[0][0] > int(events.line[-1])):
        # Line 0: where such an anchor stands says nothing.
        apart = [(0, utc_ns) for _, utc_ns in anchors]
        if len(pools) == 1:
            return apart, len(anchors)
        if len(anchors) == 1 and anchors[0][0] < int(events.line[0]):
            return (apart, taken) if number == 0 else ([], taken)
        return ([apart[number]], taken) if len(anchors) == len(pools) else ([], taken)
    before = [anchor for anchor in anchors[taken:] if anchor[0] < first]
    inside = [anchor for anchor in anchors[taken:] if first <= anchor[0] <= last]
    return before[-1:] + inside if inside else before, taken + len(before) + len(inside)


def _runs_of(events: Events, anchors: list[Anchor]) -> list[Run]:
    """One pool's runs: one, or several of engines that wrote at once."""
    before = [line for line, _ in anchors if 0 < line < int(events.line[0])]
    first, last = max(before, default=int(events.line[0])), int(events.line[-1])
    stamp = anchors[-1][1] if anchors else None
    fall = events.time_ms[:-1] - events.time_ms[1:]
    falls, slips = int(np.count_nonzero(fall > FALL_MS)), int(np.count_nonzero(fall > LATE_MS))
    repeats = _repeats(events)
    inside = any(line > int(events.line[0]) for line, _ in anchors)
    if repeats.any() and not inside:
        if _exact_repeats(events, repeats):
            kept = events.take(~repeats)
            return [Run(kept, stamp, first, last, duplicates=int(np.count_nonzero(repeats)))]
        again = _tried_again(events) if slips < MIXED_FALLS else None
        if again is not None:
            return [Run(again[0], stamp, first, last, repeated_jobs=again[1])]
    must = bool(repeats.any() or inside)
    if must or slips >= MIXED_FALLS or (slips and len(anchors) > 1):
        together = _together(events, anchors, repeats)
        if together:
            return [replace(run, last_line=last) for run in together]
    return [Run(events, stamp if len(anchors) == 1 or not must else None, first, last, mixed=must, out_of_order=falls)]


def _together(events: Events, anchors: list[Anchor], repeats: npt.NDArray[np.bool_]) -> list[Run]:
    """The engines that wrote these lines at once; empty where no clean way to tell them apart is found."""
    engines = min(max(2, len(anchors)), MAX_ENGINES)
    own = anchors[-engines:] if len(anchors) >= engines else []
    found = split(events, engines, own)
    if found is None:
        return []
    parts = [events.take(rows) for rows in found.rows]
    if any(_repeats(part).any() for part in parts):
        return []
    if not repeats.any() and sum(len(np.unique(part.job)) for part in parts) > len(np.unique(events.job)):
        # Only evidence that a job ran twice makes it two engines' job.
        return []
    return [
        Run(part, own[engine][1] if own else None, int(part.line[0]), 0, shared=True, unsure=found.unsure)
        for engine, part in enumerate(parts)
    ]


def _repeats(events: Events) -> npt.NDArray[np.bool_]:
    """Rows whose (partition, event) has come before."""
    known = np.flatnonzero(events.role >= 0)
    key = events.chains()[known] * 16 + events.role[known]
    repeated = np.zeros(len(events), np.bool_)
    repeated[known] = True
    repeated[known[np.unique(key, return_index=True)[1]]] = False
    return repeated


def _exact_repeats(events: Events, repeats: npt.NDArray[np.bool_]) -> bool:
    """Whether every repeated row says just what its first one said: a line that was collected twice."""
    columns = (
        events.time_ms,
        events.event,
        events.job,
        events.partition,
        events.worker,
        events.gpu_ms,
        events.synth_ms,
    )
    rows = np.stack(columns, axis=1)
    first = {tuple(row) for row in rows[~repeats].tolist()}
    return all(tuple(row) in first for row in rows[repeats].tolist())


def _tried_again(events: Events) -> tuple[Events, int] | None:
    """The same events with the later passages of a job under a name of their own (``job (attempt 2)``), and how many
    jobs came again; null where passages overlap, which one engine's cannot."""
    instances = _instances(events)
    chains = events.chains()
    first, last = instances.first, instances.last
    order = np.lexsort((first, chains[first]))
    same = chains[first[order[1:]]] == chains[first[order[:-1]]]
    earlier, later = order[:-1][same], order[1:][same]
    starts = events.role[first]
    in_order = (first[later] > last[earlier]) & (events.time_ms[first[later]] >= events.time_ms[last[earlier]])
    if not in_order.all() or not (starts[later] <= starts[earlier]).all():
        return None
    again = np.unique(events.job[first[later]])
    names, jobs = list(events.job_names), events.job.copy()
    by_job = np.flatnonzero(instances.of_row >= 0)
    by_job = by_job[np.argsort(events.job[by_job], kind="stable")]
    edges = np.sort(first[later])
    edges = edges[np.argsort(events.job[edges], kind="stable")]
    for job in again.tolist():
        rows = by_job[slice(*np.searchsorted(events.job[by_job], [job, job + 1]))]
        own = edges[slice(*np.searchsorted(events.job[edges], [job, job + 1]))]
        begins = _attempts(own, chains[own])
        attempt = np.searchsorted(begins, first[instances.of_row[rows]], side="right")
        jobs[rows] = np.where(attempt == 0, job, len(names) + attempt - 1)
        names += [f"{events.job_names[job]} (attempt {number + 2})" for number in range(len(begins))]
    return replace(events, job=jobs, job_names=tuple(names)), len(again)


def _attempts(begins: Ints, chains: Ints) -> Ints:
    """Where each attempt after the first begins: where a partition comes again that the attempt under way has had.

    :param begins: where passages begin that are not the first of their partition, ascending.
    :param chains: their partitions.
    """
    found: list[int] = []
    seen: set[int] = set()
    for begin, chain in zip(begins.tolist(), chains.tolist(), strict=True):
        if not found or chain in seen:
            found.append(begin)
            seen.clear()
        seen.add(chain)
    return np.array(found, np.int64)
