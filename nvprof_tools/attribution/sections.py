"""Sections: each partition's stay on a worker, as the trace alone shows it, with its threads, holds, waits and work.

With NVTX a section is its range; without, it is an *episode* of the thread that makes the in-lock calls: from its
first pinning call before the lock to its last call after it. The log, once aligned, names the sections and may widen
an episode to its bracket; the work below does not need it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nvprof_tools.attribution.categories import CALLS
from nvprof_tools.attribution.evidence import RANGE_ROLES, Evidence, Flags, Rows
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.timeline.columns import classify
from nvprof_tools.timeline.intervals import Index, Ints
from nvprof_tools.timeline.lanes import locate, overlapping

PINNING = CALLS.index("host_register")
UNPINNING = CALLS.index("host_unregister")
LAUNCH = CALLS.index("launch")
SYNCS = (CALLS.index("sync_wait"), CALLS.index("device_sync"))
INFERRED_WAIT_NS = 50_000
"""A lock wait shorter than the profiler's threshold leaves no row; a gap up to this long stands in for it."""


@dataclass(frozen=True)
class Held:
    """Intervals of sections: ``section`` row, ``start``/``end`` ns."""

    section: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Sections:
    """Columns, one entry a section, sorted by start then caller. Numbers are −1 where unknown."""

    start: Ints
    end: Ints
    caller: Ints
    process: Ints
    range_row: Ints
    open: Flags
    by_range: bool

    def __len__(self) -> int:
        return len(self.start)

    def caller_of(self, section: Ints) -> Ints:
        """The caller of each given section; −1 for section −1 and where it is unknown."""
        return np.append(self.caller, -1)[section]

    def sorted(self) -> Sections:
        """The same sections in order of start, then caller."""
        return self.take(np.lexsort((self.caller, self.start)))

    def take(self, rows: Index) -> Sections:
        """The chosen sections, in the order given."""
        return replace(
            self,
            start=self.start[rows],
            end=self.end[rows],
            caller=self.caller[rows],
            process=self.process[rows],
            range_row=self.range_row[rows],
            open=self.open[rows],
        )


@dataclass(frozen=True)
class Owners:
    """Which section a thread works for, when: ``thread`` works for ``section`` during ``[start, end)``.

    ``caller`` marks the caller's own rows.
    """

    thread: Ints
    start: Ints
    end: Ints
    section: Ints
    caller: Flags
    _known: dict[int, tuple[Rows, Ints]] = field(default_factory=dict, repr=False, compare=False)

    def of_rows(self, rows: Rows) -> Ints:
        """The section each row's thread works for when the row begins; −1 for none. Looked up once for the same rows,
        so the result is nobody's to change."""
        known = self._known.get(id(rows))
        if known is None:
            known = self._known[id(rows)] = (rows, self.of(rows.thread, rows.start))
        return known[1]

    def of(self, thread: Ints, at: Ints) -> Ints:
        """The section each ``(thread, at)`` works for; −1 for none."""
        return np.append(self.section, -1)[locate(self.thread, self.start, self.end, thread, at)]

    def meeting(self, rows: Rows) -> tuple[Index, Ints, Ints, Ints]:
        """Parts of rows that lie in the time their thread works for a section: ``(row, section, start, end)``."""
        row, owner = overlapping(self.thread, self.start, self.end, rows.thread, rows.start, rows.end)
        start = np.maximum(rows.start[row], self.start[owner])
        return row, self.section[owner], start, np.minimum(rows.end[row], self.end[owner])


def find(evidence: Evidence, pipeline: Pipeline, episodes: bool = True) -> Sections:
    """The sections a trace shows by itself: its section ranges, else episodes of in-lock calls, if they are asked for;
    maybe none."""
    ranges = evidence.ranges
    rows = np.flatnonzero((ranges.code == RANGE_ROLES.index("section")) & (ranges.end > ranges.start))
    if len(rows):
        rows = rows[_outermost(ranges.thread[rows], ranges.start[rows], ranges.end[rows])]
        return Sections(
            ranges.start[rows],
            ranges.end[rows],
            ranges.thread[rows],
            ranges.process[rows],
            rows.astype(np.int64),
            evidence.range_open[rows].astype(bool),
            True,
        ).sorted()
    if not episodes:
        none = np.empty(0, np.int64)
        return Sections(none, none, none, none, none, np.empty(0, bool), False)
    return _episodes(evidence, pipeline)


def _outermost(thread: Ints, start: Ints, end: Ints) -> Index:
    """Rows that lie in no earlier-begun row of their thread: a section inside a section is part of it."""
    order = np.lexsort((-end, start, thread))
    kept = []
    reach: dict[int, int] = {}
    for row in order.tolist():  # one step a section, not an event
        own = int(thread[row])
        if int(start[row]) >= reach.get(own, int(start[row])):
            kept.append(row)
            reach[own] = int(end[row])
    return np.array(kept, np.intp)


def _episodes(evidence: Evidence, pipeline: Pipeline) -> Sections:
    """One section an episode of a caller's calls: it opens with a pinning or first-in-lock call that follows a closing
    one (last-in-lock or unpinning) or begins its thread, and lasts to the last call before the next opening."""
    calls = evidence.calls
    mine = np.flatnonzero(np.isin(calls.thread, _callers(evidence, pipeline)))
    mine = mine[np.lexsort((calls.start[mine], calls.thread[mine]))]
    outside = pipeline.in_lock.pinning_outside
    opening = _named(evidence, pipeline.in_lock.first)[mine] | (outside & (calls.code[mine] == PINNING))
    closing = _named(evidence, pipeline.in_lock.last)[mine] | (outside & (calls.code[mine] == UNPINNING))
    telling = np.flatnonzero(opening | closing)
    thread = calls.thread[mine]
    fresh = np.append(True, thread[telling][1:] != thread[telling][:-1])[: len(telling)]
    after_close = np.append(True, closing[telling][:-1])[: len(telling)]
    first = telling[opening[telling] & (fresh | after_close)]
    bounds = np.flatnonzero(np.append(thread[1:] != thread[:-1], True)) if len(mine) else np.empty(0, np.intp)
    own_last = bounds[np.searchsorted(bounds, first)] if len(first) else first
    last = np.minimum(np.append(first[1:] - 1, len(mine)), own_last)
    return Sections(
        calls.start[mine[first]],
        calls.end[mine[last]],
        thread[first],
        calls.process[mine[first]],
        np.full(len(first), -1, np.int64),
        np.zeros(len(first), bool),
        False,
    ).sorted()


def _callers(evidence: Evidence, pipeline: Pipeline) -> Ints:
    """Threads that call for sections: those that pin memory, where that is done outside the lock; else those that make
    the earliest-listed first-in-lock call that any thread makes."""
    calls = evidence.calls
    if pipeline.in_lock.pinning_outside and bool((calls.code == PINNING).any()):
        return np.unique(calls.thread[calls.code == PINNING])
    for name in pipeline.in_lock.first:
        made = _named(evidence, (name,))
        if made.any():
            return np.unique(calls.thread[made])
    return np.empty(0, np.int64)


def _named(evidence: Evidence, wanted: tuple[str, ...]) -> Flags:
    return np.equal(classify(evidence.call_name, evidence.call_names, lambda word: int(word in wanted)), 1)


def caller_owners(sections: Sections) -> Owners:
    """The callers' own rows."""
    rows = np.arange(len(sections), dtype=np.int64)
    known = sections.caller >= 0
    return Owners(
        sections.caller[known], sections.start[known], sections.end[known], rows[known], np.ones(int(known.sum()), bool)
    )


def lock_waits(evidence: Evidence, sections: Sections, owners: Owners, pipeline: Pipeline) -> tuple[Held, Ints]:
    """``(waits, inferred)``: each section's waits for the GPU mutex, and which sections' wait had to be inferred.

    The wait range where the caller has one; else its lock calls outside every CUDA call; else, for a section found by
    its calls, the gap between its last pinning call and its first in-lock call if that is short.
    """
    ranges = evidence.ranges
    rows = np.flatnonzero(ranges.code == RANGE_ROLES.index("mutex_wait"))
    section = owners.of(ranges.thread[rows], ranges.start[rows])
    on_caller = (section >= 0) & (ranges.thread[rows] == sections.caller_of(section))
    rows, section = rows[on_caller], section[on_caller]
    ranged = np.isin(np.arange(len(sections)), section)
    waits = evidence.waits
    lock_section = owners.of_rows(waits)
    fit = (lock_section >= 0) & (waits.thread == sections.caller_of(lock_section))
    fit[fit] = ~ranged[lock_section[fit]]
    locks = np.flatnonzero(fit)
    waited = ranged.copy()
    waited[lock_section[locks]] = True
    gap_section, gap_start, gap_end = _short_gaps(evidence, sections, owners, ~waited, pipeline)
    return (
        Held(
            np.concatenate([section, lock_section[locks], gap_section]),
            np.concatenate([ranges.start[rows], waits.start[locks], gap_start]),
            np.concatenate([ranges.end[rows], waits.end[locks], gap_end]),
        ),
        gap_section,
    )


def _short_gaps(
    evidence: Evidence, sections: Sections, owners: Owners, wanted: Flags, pipeline: Pipeline
) -> tuple[Ints, Ints, Ints]:
    """For sections without a lock row: the gap right before the first in-lock call, if it is short and a pinning call
    comes before it: there the lock was taken."""
    calls = evidence.calls
    section = owners.of_rows(calls)
    mine = np.flatnonzero(np.append(wanted, False)[section])
    mine = mine[calls.thread[mine] == sections.caller[section[mine]]]
    here, start = section[mine], calls.start[mine]
    # The first in-lock call of each section: the earliest, of equals the first in the trace's order.
    named = np.flatnonzero(_named(evidence, pipeline.in_lock.first)[mine])
    begins = np.full(len(sections), np.iinfo(np.int64).max)
    np.minimum.at(begins, here[named], start[named])
    named = named[start[named] == begins[here[named]]]
    row = np.full(len(sections), len(mine))
    np.minimum.at(row, here[named], named)
    # Calls nest: the gap begins where the last of all calls before it has ended.
    before = np.flatnonzero(start <= begins[here])
    before = before[(start[before] < begins[here[before]]) | (before < row[here[before]])]
    reach = np.full(len(sections), np.iinfo(np.int64).min)
    np.maximum.at(reach, here[before], calls.end[mine[before]])
    pinned = np.full(len(sections), np.iinfo(np.int64).max)
    pins = mine[calls.code[mine] == PINNING]
    np.minimum.at(pinned, section[pins], calls.end[pins])
    short = (row < len(mine)) & (pinned <= reach) & (begins > reach)
    found = np.flatnonzero(short)
    found = found[begins[found] - reach[found] < INFERRED_WAIT_NS]
    return found, reach[found], begins[found]


def holds(evidence: Evidence, sections: Sections, owners: Owners, waits: Held, pipeline: Pipeline) -> Held:
    """When each section holds the GPU mutex: its hold range; else from the end of its wait to its end where the
    pipeline says so; else from its first to its last in-lock call. A section with none of these holds nothing."""
    ranges = evidence.ranges
    rows = np.flatnonzero(ranges.code == RANGE_ROLES.index("hold"))
    section = owners.of(ranges.thread[rows], ranges.start[rows])
    rows, section = rows[section >= 0], section[section >= 0]
    ranged = np.isin(np.arange(len(sections)), section)
    if pipeline.in_lock.hold_to == "section_end":
        start = np.full(len(sections), np.iinfo(np.int64).min)
        np.maximum.at(start, waits.section, waits.end)
        rest = np.flatnonzero(~ranged & (start > np.iinfo(np.int64).min))
        low, high = start[rest], sections.end[rest]
    else:
        low_all, high_all = _in_lock_calls(evidence, sections, owners, pipeline)
        rest = np.flatnonzero(~ranged & (high_all > low_all))
        low, high = low_all[rest], high_all[rest]
    return Held(
        np.concatenate([section, rest]),
        np.concatenate([ranges.start[rows], low]),
        np.concatenate([np.minimum(ranges.end[rows], sections.end[section]), high]),
    )


def _in_lock_calls(evidence: Evidence, sections: Sections, owners: Owners, pipeline: Pipeline) -> tuple[Ints, Ints]:
    """Per section: start of the caller's first first-in-lock call, end of its last last-in-lock call after it."""
    calls = evidence.calls
    first, last = _named(evidence, pipeline.in_lock.first), _named(evidence, pipeline.in_lock.last)
    section = owners.of_rows(calls)
    mine = (section >= 0) & (calls.thread == sections.caller_of(section))
    low = np.full(len(sections), np.iinfo(np.int64).max)
    high = np.full(len(sections), np.iinfo(np.int64).min)
    np.minimum.at(low, section[mine & first], calls.start[mine & first])
    after = mine & last & (calls.start >= np.append(low, 0)[section])
    np.maximum.at(high, section[after], calls.end[after])
    return low, high
