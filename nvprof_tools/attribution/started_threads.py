"""Threads that callers start: which section each works for, when.

A fresh thread a partition launches its kernels. With one mutex a GPU the section that holds it then is the one; where
holds of several GPUs overlap, the call that created the thread decides, else the hold that began last before it.
A section of which no hold is known counts as held while it is the only one of its process that is open.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution.evidence import Evidence, Rows
from nvprof_tools.attribution.sections import Held, Owners, Sections
from nvprof_tools.timeline.intervals import Ints
from nvprof_tools.timeline.lanes import locate, slots

_CREATION_NS = 5_000_000
"""A thread makes its first traced step this soon after its creation, or its creation is not looked for."""


def with_started_threads(evidence: Evidence, sections: Sections, owners: Owners, holds: Held) -> Owners:
    """Add to the callers the threads they started."""
    calls = evidence.calls
    other = np.flatnonzero(~np.isin(calls.thread, np.unique(owners.thread)))
    if len(other) == 0:
        return owners
    threads, number = np.unique(calls.thread[other], return_inverse=True)
    first, last = _extent(number, calls.start[other], calls.end[other], len(threads))
    process = np.empty(len(threads), np.int64)
    process[number] = calls.process[other]
    chosen = _by_whole_span(evidence, sections, holds, process, threads, first, last)
    loose = np.flatnonzero(chosen[number] < 0)
    served = _by_each_call(sections, _joined(holds, _alone(sections, holds)), calls.where(other[loose]))
    kept = np.flatnonzero(chosen >= 0)
    low, high = _widened(evidence, threads[kept], first[kept], last[kept])
    section = np.concatenate([chosen[kept], served.code])
    start = np.maximum(np.concatenate([low, served.start]), sections.start[section])
    end = np.maximum(np.minimum(np.concatenate([high, served.end]), sections.end[section]), start + 1)
    return Owners(
        np.concatenate([owners.thread, threads[kept], served.thread]),
        np.concatenate([owners.start, start]),
        np.concatenate([owners.end, end]),
        np.concatenate([owners.section, section]),
        np.concatenate([owners.caller, np.zeros(len(section), bool)]),
    )


def _by_whole_span(
    evidence: Evidence, sections: Sections, holds: Held, process: Ints, threads: Ints, first: Ints, last: Ints
) -> Ints:
    """For each thread the section whose hold contains all of its calls; −1 for none."""
    if len(holds) == 0:
        return np.full(len(threads), -1, np.int64)
    slot, count = slots(holds.start, holds.end)
    fits = np.full((count, len(threads)), -1, np.int64)
    for k in range(count):
        rows = np.flatnonzero(slot == k)
        rows = rows[np.argsort(holds.start[rows], kind="stable")]
        at = np.searchsorted(holds.start[rows], first, side="right") - 1
        hold = rows[np.maximum(at, 0)]
        good = (at >= 0) & (last <= holds.end[hold]) & (sections.process[holds.section[hold]] == process)
        fits[k] = np.where(good, hold, -1)
    begins = np.where(fits >= 0, holds.start[fits], np.iinfo(np.int64).min)
    latest = fits[begins.argmax(axis=0), np.arange(len(threads))]
    section = np.where(latest >= 0, holds.section[latest], -1)
    several = np.flatnonzero((fits >= 0).sum(axis=0) > 1)
    if len(several):
        made_for = _creators(evidence, sections, threads[several])
        among = ((fits[:, several] >= 0) & (holds.section[fits[:, several]] == made_for)).any(axis=0)
        section[several[among]] = made_for[among]
    return section


def _creators(evidence: Evidence, sections: Sections, threads: Ints) -> Ints:
    """The section whose caller created each thread; −1 where that is not known.

    A thread was made by the creating call that began last before its first traced step, if no earlier-born thread
    claims that call.
    """
    created = evidence.creations.where(np.argsort(evidence.creations.start, kind="stable"))
    every = (evidence.calls, evidence.ranges, evidence.overhead, evidence.waits, evidence.os_waits)
    known, number = np.unique(np.concatenate([rows.thread for rows in every]), return_inverse=True)
    born = np.full(len(known), np.iinfo(np.int64).max)
    np.minimum.at(born, number, np.concatenate([rows.start for rows in every]))
    row = np.searchsorted(created.start, born, side="left") - 1
    by_birth = np.lexsort((born, row))
    first = np.append(True, row[by_birth][1:] != row[by_birth][:-1])[: len(row)]
    claimed = np.zeros(len(known), bool)
    claimed[by_birth[first]] = True
    claimed &= (row >= 0) & (born - np.append(created.start, 0)[row] <= _CREATION_NS)
    mine = np.searchsorted(known, threads)
    maker = np.where(claimed[mine], row[mine], -1)
    section = locate(
        sections.caller,
        sections.start,
        sections.end,
        np.append(created.thread, -2)[maker],
        np.append(created.start, 0)[maker],
    )
    return np.where(maker >= 0, section, -1)


def _alone(sections: Sections, holds: Held) -> Held:
    """When a section of which no hold is known is the only open one of its process."""
    rows = np.arange(len(sections))
    time, process = np.concatenate([sections.start, sections.end]), np.tile(sections.process, 2)
    order = np.lexsort((time, process))
    opened = np.cumsum(np.repeat([1, -1], len(rows))[order])[:-1]
    # Where one is open, the sum of the open ones' numbers is its own.
    number = np.cumsum(np.concatenate([rows, -rows])[order])[:-1]
    begin, end = time[order][:-1], time[order][1:]
    alone = (opened == 1) & (begin < end)
    alone[alone] = ~np.isin(number[alone], holds.section)
    return Held(number[alone], begin[alone], end[alone])


def _joined(first: Held, second: Held) -> Held:
    return Held(
        np.concatenate([first.section, second.section]),
        np.concatenate([first.start, second.start]),
        np.concatenate([first.end, second.end]),
    )


def _by_each_call(sections: Sections, holds: Held, calls: Rows) -> Rows:
    """A thread that serves several sections in turn works for each during the hold it calls under. ``code``: the
    section."""
    hold = locate(sections.process[holds.section], holds.start, holds.end, calls.process, calls.start)
    mine = calls.where(np.flatnonzero(hold >= 0))
    pair = np.unique(np.stack([mine.thread, hold[hold >= 0]]), axis=1)
    section = holds.section[pair[1]]
    return Rows(holds.start[pair[1]], holds.end[pair[1]], pair[0], sections.process[section], section)


def _extent(group: npt.NDArray[np.intp], start: Ints, end: Ints, count: int) -> tuple[Ints, Ints]:
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, group, start)
    # A call of no length is still a call: its thread works for the section at that instant.
    np.maximum.at(high, group, np.maximum(end, start + 1))
    return low, high


def _widened(evidence: Evidence, threads: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """A fresh thread begins with the profiler's own set-up and may end in it: it works for its section meanwhile."""
    low, high = start.copy(), end.copy()
    for rows in (evidence.ranges, evidence.overhead):
        at = np.searchsorted(threads, rows.thread)
        known = np.flatnonzero((at < len(threads)) & (np.append(threads, -1)[at] == rows.thread))
        np.minimum.at(low, at[known], rows.start[known])
        np.maximum.at(high, at[known], rows.end[known])
    return low, high
