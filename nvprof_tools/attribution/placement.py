"""Sections named by the log: the run and offset that fit, each section's partition, and what the capture missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nvprof_tools.attribution.evidence import Evidence
from nvprof_tools.attribution.sections import LAUNCH, SYNCS, Owners, Sections
from nvprof_tools.errors import AlignmentError
from nvprof_tools.model.attribution import Clock
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import LogRun, Session
from nvprof_tools.timeline import marks
from nvprof_tools.timeline.align import MS, Brackets, Fit, Work, fit, fit_near, stretched
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Ints, covers, union
from nvprof_tools.timeline.lanes import overlapping
from nvprof_tools.timeline.marks import Marks

NEVER = np.iinfo(np.int64).min
"""Stands for an event that the log does not have."""

LEAST_MATCHED = 0.75
"""Below this share of sections and brackets that lie in each other's time and are paired, a trace and a log are said
not to belong together."""

LEAST_INSIDE = 0.9
"""A thread is a worker's when this share of its calls lies in the worker's stays."""

ANCHOR_NS = 5_000
"""A log's wall-clock line is written to the microsecond, and a trace's own start is known no better."""
ANOTHER_TIME_NS = 1_000 * MS
"""A log's wall clock this far off is another run's: one machine's clocks do not lie so far apart, runs do."""
TIGHT_NS = 3 * MS
UNBOUNDED_NS = -(2**59)
"""Bounds of an offset below this come from brackets without an end."""
"""Sections of other work fit a foreign log only loosely: its brackets are longer than they are, by chance."""

UNSTARTED = 2**40
"""Bracket start, ms, of a partition that never started."""


@dataclass(frozen=True)
class Placed:
    """A log run on the trace's clock. ``row[i]`` is section ``i``'s row of ``run.partitions`` (−1: none)."""

    run: LogRun
    clock: Clock
    process: int
    row: Ints
    matched: int
    possible: int
    exact: Mapping[str, Ints] = field(default_factory=dict)
    drift_ppb: int = 0
    starter: Ints | None = None
    """The thread that wrote each partition's bracket start, where marks tell; −1: not told."""

    def time(self, column: str) -> Ints:
        """An event's time of every partition on the trace's clock: its mark's, else the middle of its millisecond, else
        ``NEVER``."""
        stamp = ints(self.run.partitions, column, NEVER)
        if self.clock.offset_ns is None:
            return np.full(len(stamp), NEVER)
        known = np.where(stamp == NEVER, 0, stamp)
        time = stretched(known, self.drift_ppb) + MS // 2 + self.clock.offset_ns
        time = np.where(stamp == NEVER, NEVER, time)
        marked = self.exact.get(column)
        return time if marked is None else np.where(marked == NEVER, time, marked)


def place(
    runs: Sequence[LogRun],
    evidence: Evidence,
    sections: Sections,
    owners: Owners,
    pipeline: Pipeline,
    session: Session,
    marked: Marks,
) -> Placed | None:
    """The run and process that fit best, of those given; null when there is neither a mark nor a fit nor an anchor."""
    by_marks = _by_marks(runs, evidence, sections, owners, pipeline, marked)
    if by_marks is not None:
        return by_marks
    every = constraint_work(evidence, sections, owners, pipeline)
    best: Placed | None = None
    for run in runs:
        anchor = None
        if run.anchor_utc_ns is not None and session.utc_epoch_ns is not None:
            anchor = run.anchor_utc_ns - session.utc_epoch_ns
        brackets = _brackets(run, pipeline)
        for process in np.unique(sections.process).tolist():
            mine = np.flatnonzero((sections.process == process) & (every.last > every.first))
            work = Work(every.first[mine], every.last[mine], every.thread[mine])
            for search in (fit, _at_anchor):
                found = search(work, brackets, anchor)
                if found is None:
                    continue
                row = np.full(len(sections), -1, np.int64)
                row[mine] = found.pair
                possible = found.matched + _strays(work, brackets, found)
                clock = _clock(found, anchor)
                placed = Placed(run, clock, process, row, found.matched, possible, drift_ppb=found.drift_ppb)
                if best is None or _rank(placed) > _rank(best):
                    best = placed
                if _rank(placed)[0]:
                    break
    if best is not None and _believable(best):
        return _with_leftovers(best, sections, pipeline) if sections.by_range else best
    anchored = _by_anchor(runs, len(sections) if bool((every.last > every.first).any()) else 0, session, best)
    return anchored if anchored is None or not sections.by_range else _with_leftovers(anchored, sections, pipeline)


def _at_anchor(work: Work, brackets: Brackets, anchor: int | None) -> Fit | None:
    """The pairing where the log's own wall clock says. In a log that stops early most brackets never end, and fit
    everywhere; those that do end tell."""
    return None if anchor is None else fit_near(work, brackets, anchor, ANCHOR_NS)


def _by_marks(
    runs: Sequence[LogRun],
    evidence: Evidence,
    sections: Sections,
    owners: Owners,
    pipeline: Pipeline,
    marked: Marks,
) -> Placed | None:
    """The run that most timeline marks carry: its events have the marks' own times."""
    found = [(run, exact) for run in runs if (exact := marks.locate(marked, run, pipeline)) is not None]
    if not found:
        return None
    run, exact = max(found, key=lambda pair: pair[1].matched)
    # Events have their marks' own times; the offset, which only lines without a mark need, is known as well as the
    # stamps allow.
    low, high = min(exact.low, exact.high), max(exact.low, exact.high)
    offset = (low + high) // 2
    clock = Clock("marks", offset, exact.spread_ns, None, low, high)
    every = constraint_work(evidence, sections, owners, pipeline)
    mine = np.flatnonzero((sections.process == exact.process) & (every.last > every.first))
    row = np.full(len(sections), -1, np.int64)
    fitted = fit_near(
        Work(every.first[mine], every.last[mine], every.thread[mine]), _brackets(run, pipeline), offset, 2 * MS
    )
    if fitted is not None:
        row[mine] = fitted.pair
    matched = int((row >= 0).sum())
    placed = Placed(run, clock, exact.process, row, matched, matched, exact.times, starter=exact.starter)
    return _with_leftovers(placed, sections, pipeline) if sections.by_range else placed


def _believable(placed: Placed) -> bool:
    """Most sections and brackets must be paired. A log whose own wall clock says that it is of another time needs a
    fit too tight and too complete to be chance: repeats of one configuration resemble each other."""
    clock = placed.clock
    if _of_another_time(clock) and clock.uncertainty_ns is not None:
        return placed.matched == placed.possible and clock.uncertainty_ns <= TIGHT_NS
    return placed.matched >= LEAST_MATCHED * placed.possible


def _rank(placed: Placed) -> tuple[bool, int]:
    return placed.clock.offset_ns is not None and _believable(placed), placed.matched


def _of_another_time(clock: Clock) -> bool:
    """Whether the wall clock of the log is too far from the trace's to be the same run's. Thousands of pairs bound the
    offset to microseconds: an anchor outside by little agrees."""
    if not clock.anchor_rejected or clock.anchor_ns is None or clock.offset_ns is None:
        return False
    return abs(clock.anchor_ns - clock.offset_ns) > ANOTHER_TIME_NS


def _strays(work: Work, brackets: Brackets, found: Fit) -> int:
    """Sections without a bracket inside the log's time, and brackets without a section inside the sections' time."""
    paired = found.pair >= 0
    taken = np.zeros(len(brackets), bool)
    taken[found.pair[paired]] = True
    closed = (brackets.end >= 0) & (brackets.start < UNSTARTED)
    fitted = replace(brackets, drift_ppb=found.drift_ppb)
    start, end = fitted.begins + found.middle, fitted.limits + found.middle
    if not closed.any():
        return 0
    inside = (work.first >= start[closed].min()) & (work.last <= end[closed].max()) & ~paired
    within = (start >= work.first.min()) & (end <= work.last.max()) & closed & ~taken
    return int(inside.sum()) + int(within.sum())


def _with_leftovers(placed: Placed, sections: Sections, pipeline: Pipeline) -> Placed:
    """A section with nothing that must lie inside a bracket still belongs to the one free bracket it overlaps most."""
    row = placed.row if len(placed.row) else np.full(len(sections), -1, np.int64)
    start, end = (placed.time(column) for column in pipeline.bracket_columns)
    free = np.flatnonzero((start != NEVER) & (end != NEVER) & ~np.isin(np.arange(len(start)), row))
    mine = (sections.process == placed.process) if placed.process >= 0 else np.ones(len(sections), bool)
    for section in np.flatnonzero(mine & (row < 0)).tolist():  # one step a section that nothing placed
        shared = np.minimum(end[free], sections.end[section]) - np.maximum(start[free], sections.start[section])
        if len(free) and int(shared.max()) > 0:
            pick = int(shared.argmax())
            row = row.copy()
            row[section] = free[pick]
            free = np.delete(free, pick)
    return replace(placed, row=row)


def _by_anchor(runs: Sequence[LogRun], sections: int, session: Session, best: Placed | None) -> Placed | None:
    """Without sections to pair, the anchor alone; with sections that fit nowhere, the two do not belong together."""
    if best is not None or sections:
        raise AlignmentError(
            "log-trace-mismatch",
            "the trace and the log do not belong together: under no offset do the trace's sections lie in the log's "
            f"brackets (at best {0 if best is None else best.matched} of "
            f"{sections if best is None else best.possible})",
            "give the log of the run that was captured, or another --pipeline if its brackets mean something else",
        )
    for run in runs:
        if run.anchor_utc_ns is not None and session.utc_epoch_ns is not None:
            offset = run.anchor_utc_ns - session.utc_epoch_ns
            clock = Clock("anchor", offset, None, anchor_ns=offset)
            return Placed(run, clock, -1, np.empty(0, np.int64), 0, 0)
    return None


def _clock(found: Fit, anchor: int | None) -> Clock:
    inside = anchor is not None and found.low - ANCHOR_NS <= anchor <= found.high + ANCHOR_NS
    if found.low < UNBOUNDED_NS:  # no bracket that ends: nothing says how far off the clocks are
        return Clock("anchor", anchor, anchor_ns=anchor) if inside else Clock("none")
    offset = min(max(anchor, found.low), found.high) if inside and anchor is not None else found.middle
    return Clock(
        "anchor" if inside else "constraints",
        offset,
        max(found.high - offset, offset - found.low, found.spread or 0),
        # A run too short to show a drift has none that was measured.
        None if found.spread is None else found.drift_ppb / 1000,
        found.low,
        found.high,
        anchor,
        anchor is not None and not inside,
    )


def _brackets(run: LogRun, pipeline: Pipeline) -> Brackets:
    start, end = pipeline.bracket_columns
    begins = ints(run.partitions, start, NEVER)
    # A partition that never started cannot hold any work: it stays in its row, as far from all work as can be.
    begins = np.where(begins == NEVER, UNSTARTED, begins)
    return Brackets(begins, ints(run.partitions, end, -1), ints(run.partitions, "worker", -1))


def constraint_work(evidence: Evidence, sections: Sections, owners: Owners, pipeline: Pipeline) -> Work:
    """What of each section must lie inside its bracket: all of it, or its launches and the first wait after them."""
    if pipeline.clock.section_in_bracket or pipeline.clock.calls_in_bracket:
        last = sections.end
        if sections.open.any():
            last = np.where(sections.open, _last_call(evidence, sections, owners), last)
        return Work(sections.start, np.maximum(last, sections.start + 1), sections.caller)
    calls = evidence.calls
    section = owners.of_rows(calls)
    first = np.full(len(sections), np.iinfo(np.int64).max)
    last = np.full(len(sections), NEVER)
    launch = np.flatnonzero((calls.code == LAUNCH) & (section >= 0))
    np.minimum.at(first, section[launch], calls.start[launch])
    np.maximum.at(last, section[launch], calls.end[launch])
    if pipeline.clock.syncs_in_bracket:
        launched = last.copy()
        wait = np.flatnonzero(np.isin(calls.code, SYNCS) & (section >= 0))
        wait = wait[calls.start[wait] >= launched[section[wait]]]
        soonest = np.full(len(sections), np.iinfo(np.int64).max)
        np.minimum.at(soonest, section[wait], calls.end[wait])
        last = np.where((soonest < np.iinfo(np.int64).max) & (launched > NEVER), soonest, last)
    some = last > NEVER
    return Work(np.where(some, first, 0), np.where(some, last, 0), sections.caller)


def _last_call(evidence: Evidence, sections: Sections, owners: Owners) -> Ints:
    """End of the last recorded CUDA call of each section's threads; its start when there is none."""
    last = sections.start.copy()
    section = owners.of_rows(evidence.calls)
    own = section >= 0
    np.maximum.at(last, section[own], evidence.calls.end[own])
    return np.minimum(last, sections.end)


def from_log(placed: Placed, sections: Sections, evidence: Evidence, capture: tuple[int, int]) -> tuple[Sections, Ints]:
    """``(sections, rows)``: with no section ranges, one section a partition the capture saw: from pick-up to the
    bracket's end, moved outward where its own calls lie outside. ``rows`` are the partitions' rows."""
    times = {name: placed.time(f"{name}_ms") for name in ("picked", "gpu_start", "gpu_end")}
    start = np.where(times["picked"] != NEVER, times["picked"], times["gpu_start"])
    ended = times["gpu_end"] != NEVER
    end = np.where(ended, times["gpu_end"], capture[1])
    seen = (times["gpu_start"] != NEVER) & (start < capture[1]) & (end > capture[0])
    own = np.full(len(start), -1, np.int64)
    own[placed.row[placed.row >= 0]] = np.flatnonzero(placed.row >= 0)
    found = own >= 0
    if found.any():
        start = np.where(found, np.minimum(start, sections.start[own]), start)
        end = np.where(found, np.maximum(end, sections.end[own]), end)
    rows = np.flatnonzero(seen)
    rows = rows[np.lexsort((rows, start[rows]))]
    caller = sections.caller_of(own)
    caller = _callers(placed, evidence, caller, start, end)
    of_thread = _process_of(evidence)
    return (
        Sections(
            np.maximum(start, capture[0])[rows],
            np.minimum(end, capture[1])[rows],
            caller[rows],
            np.where(caller >= 0, np.append(of_thread, -1)[caller], placed.process)[rows],
            np.full(len(rows), -1, np.int64),
            (~ended | (end > capture[1]))[rows],
            False,
        ),
        rows.astype(np.int64),
    )


def _process_of(evidence: Evidence) -> Ints:
    """The process of each thread that makes CUDA calls, by the thread's number; −1 for others."""
    calls = evidence.calls
    process = np.full(int(calls.thread.max(initial=-1)) + 1, -1, np.int64)
    process[calls.thread] = calls.process
    return process


def _callers(placed: Placed, evidence: Evidence, known: Ints, start: Ints, end: Ints) -> Ints:
    """The caller of each partition: the thread that wrote its bracket's start, if it makes CUDA calls in the section;
    else the known one; else the thread whose calls lie in the brackets of the partition's worker and no others."""
    calls = evidence.calls
    if placed.starter is not None:
        told = np.flatnonzero(placed.starter >= 0)
        inside = np.zeros(len(start), bool)
        rows, _ = overlapping(calls.thread, calls.start, calls.end, placed.starter[told], start[told], end[told])
        inside[told[np.unique(rows)]] = True
        known = np.where(inside, placed.starter, known)
    worker = ints(placed.run.partitions, "worker")
    for own in np.unique(worker[(known < 0) & (worker >= 0)]).tolist():
        rows = np.flatnonzero((worker == own) & (start != NEVER))
        stay = union(start[rows], end[rows])
        threads, number = np.unique(calls.thread, return_inverse=True)
        made = np.bincount(number, minlength=len(threads))
        within = np.bincount(number, covers(stay, calls.start), minlength=len(threads))
        within[(within < LEAST_INSIDE * made) | np.isin(threads, known)] = 0
        if len(threads) and within.max() > 0:
            blank = rows[known[rows] < 0]
            known[blank] = threads[int(within.argmax())]
    return known


def lost_time(evidence: Evidence, sections: Sections, owners: Owners, lossy: bool) -> tuple[Ints, Ints, Ints]:
    """``(section, start, end)``: what the capture cannot explain of sections it cut off: the time after the last
    recorded call of their threads, where records were lost or the log shows that the work went on (``lossy``)."""
    rows = np.flatnonzero(sections.open) if lossy else np.empty(0, np.int64)
    last = _last_call(evidence, sections, owners)
    return rows.astype(np.int64), last[rows], sections.end[rows]


def clock_quality(placed: Placed) -> list[QualityItem]:
    """What to say about the clock."""
    clock = placed.clock
    items = []
    if clock.anchor_rejected and clock.anchor_ns is not None and clock.offset_ns is not None:
        apart = abs(clock.anchor_ns - clock.offset_ns)
        items.append(
            QualityItem(
                "clock-anchor-rejected",
                Severity.NOTICE,
                1,
                f"the log's wall-clock line is {apart / 1e6:,.3f} ms away from what the trace allows; it is not used",
                "check that the log's first line belongs to this run and that its host's clock was right",
            )
        )
    missing = placed.possible - placed.matched
    if missing > 0:
        items.append(
            QualityItem(
                "sections-unmatched",
                Severity.NOTICE,
                missing,
                f"{missing} sections or brackets lie in each other's time and fit no counterpart",
                "a failed or retried partition, or records lost; such a section has no job and partition",
            )
        )
    return items
