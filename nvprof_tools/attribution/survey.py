"""What a trace and a log show together under one pipeline: sections with all that belongs to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution import placement, stages
from nvprof_tools.attribution.evidence import Evidence, gather
from nvprof_tools.attribution.placement import Placed
from nvprof_tools.attribution.sections import (
    Held,
    Owners,
    Sections,
    caller_owners,
    find,
    holds,
    lock_waits,
)
from nvprof_tools.attribution.started_threads import with_started_threads
from nvprof_tools.attribution.window import capture
from nvprof_tools.attribution.work import Work
from nvprof_tools.errors import AlignmentError, UsageError
from nvprof_tools.model.attribution import Window
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import LogRun, Trace
from nvprof_tools.timeline import marks
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.ids import numbered
from nvprof_tools.timeline.intervals import Ints
from nvprof_tools.timeline.parallel import at_once
from nvtx_markers.conventions import SECTION_PATTERN, UNKNOWN

_SECTION = re.compile(SECTION_PATTERN)


@dataclass(frozen=True)
class SectionName:
    """What a section range of the marker shim says: whose partition, on which worker; null: not said."""

    job: str
    partition: int | None
    worker: int | None


@dataclass(frozen=True)
class Found:
    """Sections with all that belongs to them, before a window is chosen."""

    evidence: Evidence
    sections: Sections
    owners: Owners
    waits: Held
    inferred: Ints
    held: Held
    placed: Placed | None
    log_row: Ints
    names: Mapping[int, SectionName] = field(default_factory=dict)
    """Sections that say themselves who they are."""

    _stages: dict[str, tuple[Ints, list[str]]] = field(default_factory=dict, repr=False, compare=False)

    def kernel_stages(self, trace: Trace, pipeline: Pipeline) -> tuple[Ints, list[str]]:
        """See :func:`nvprof_tools.attribution.stages.classify_kernels`; found once."""
        if pipeline.name not in self._stages:
            self._stages[pipeline.name] = stages.classify_kernels(trace, pipeline, kernel_sections(trace, self))
        return self._stages[pipeline.name]

    @property
    def foreign(self) -> npt.NDArray[np.bool_]:
        """Sections of other processes than the one whose log is given: they explain the device, not the pipeline."""
        if self.placed is None or self.placed.process < 0:
            return np.zeros(len(self.sections), bool)
        return np.not_equal(self.sections.process, self.placed.process)


def survey(trace: Trace, runs: Sequence[LogRun], pipeline: Pipeline) -> Found:
    """Find sections under one pipeline and name them by the log, if there is one.

    :raises AlignmentError: ``log-trace-mismatch``.
    """
    evidence = gather(trace, pipeline)
    # Episodes are guesses until a log names them: without one they are no sections.
    sections = find(evidence, pipeline, episodes=bool(runs))
    owners, waits, inferred, held = _belongings(evidence, sections, pipeline)
    placed = (
        placement.place(runs, evidence, sections, owners, pipeline, trace.session, marks.read(trace)) if runs else None
    )
    row = np.full(len(sections), -1, np.int64) if placed is None else placed.row
    names = section_names(evidence, sections)
    if placed is not None and names:
        row = by_name(names, placed, row)
    if not sections.by_range and placed is not None:
        sections, row = placement.from_log(placed, sections, evidence, capture(trace))
        owners, waits, inferred, held = _belongings(evidence, sections, pipeline)
    return Found(evidence, sections, owners, waits, inferred, held, placed, row, names)


def section_names(evidence: Evidence, sections: Sections) -> dict[int, SectionName]:
    """Section → what its own range says of it, for the marker shim's section ranges."""
    out = {}
    for section, row in enumerate(sections.range_row.tolist()):  # one step a section, not an event
        match = None if row < 0 else _SECTION.match(evidence.range_names[int(evidence.range_name[row])])
        if match is not None:
            partition, worker = (None if match[g] == UNKNOWN else int(match[g]) for g in ("partition", "worker"))
            out[section] = SectionName(match["job"], partition, worker)
    return out


def by_name(names: Mapping[int, SectionName], placed: Placed, row: Ints) -> Ints:
    """Sections paired with the log's partitions by name where they have one; a name that the log lacks pairs with
    nothing."""
    log = placed.run.partitions
    place = {key: i for i, key in enumerate(zip(log["job"].to_pylist(), log["partition"].to_pylist(), strict=True))}
    out = row.copy()
    for section, name in names.items():
        out[section] = place.get((name.job, name.partition), -1)
    return out


def _belongings(evidence: Evidence, sections: Sections, pipeline: Pipeline) -> tuple[Owners, Held, Ints, Held]:
    owners = caller_owners(sections)
    if len(sections) == 0:
        none = np.empty(0, np.int64)
        return owners, Held(none, none, none), none, Held(none, none, none)
    waits, inferred = lock_waits(evidence, sections, owners, pipeline)
    held = holds(evidence, sections, owners, waits, pipeline)
    return with_started_threads(evidence, sections, owners, held), waits, inferred, held


def best(trace: Trace, runs: Sequence[LogRun], pipelines: Sequence[Pipeline]) -> tuple[Pipeline, Found]:
    """The pipeline under which the log explains the most sections; of equals, the one that knows the most ranges, then
    kernels, then the last.

    :raises AlignmentError: none of them fits the log.
    """
    refused: AlignmentError | None = None
    fitting: list[tuple[tuple[int, int], Pipeline, Found]] = []
    for pipeline, found in zip(pipelines, at_once([partial(_tried, trace, runs, p) for p in pipelines]), strict=True):
        if isinstance(found, AlignmentError):
            refused = refused or found
            continue
        # Pairs under no known offset are nothing that a log explains.
        known = found.placed is not None and found.placed.clock.offset_ns is not None
        matched = found.placed.matched if known and found.placed is not None else 0
        fitting.append(((matched, int((found.evidence.ranges.code >= 0).sum())), pipeline, found))
    if not fitting:
        raise refused or UsageError("no-pipeline", "no pipeline was given", "give --pipeline")
    most = max(score for score, _, _ in fitting)
    equals = [(pipeline, found) for score, pipeline, found in fitting if score == most]
    if len(equals) == 1:
        return equals[0]
    kernels = at_once([partial(_known_kernels, trace, pipeline, found) for pipeline, found in equals])
    return next(one for one, known in zip(reversed(equals), reversed(kernels), strict=True) if known == max(kernels))


def _known_kernels(trace: Trace, pipeline: Pipeline, found: Found) -> int:
    return int((found.kernel_stages(trace, pipeline)[0] >= 0).sum())


def _tried(trace: Trace, runs: Sequence[LogRun], pipeline: Pipeline) -> Found | AlignmentError:
    try:
        return survey(trace, runs, pipeline)
    except AlignmentError as error:
        return error


def kernel_sections(trace: Trace, found: Found) -> Ints:
    """The section each kernel was launched for; −1 for none."""
    return work_sections(found, ints(trace["kernels"], "api_call"))


def work_sections(found: Found, call: Ints) -> Ints:
    """The section each row was launched for, by the launching call (−1: unlaunched) and its thread; −1 for none."""
    return np.append(found.owners.of_rows(found.evidence.calls), -1)[call]


def implicit(found: Found, trace: Trace, work: Work, span: Window, pipeline: Pipeline) -> Found:
    """Without sections or a log, each process's stay on each device is one section, so that idle time still has a
    cause: its threads are those that gave the device work, its caller the one that gave it most."""
    calls = trace["api_calls"]
    rows = np.flatnonzero(work.call >= 0)
    if len(rows) == 0:
        return found
    thread = ints(calls, "thread")[work.call[rows]]
    group, stays = numbered((work.process[rows], len(trace["processes"])), (work.device[rows], len(trace["devices"])))
    key, count = np.array(stays, np.int64).T, len(stays)
    own_pair, pairs = numbered((group.astype(np.int64), count), (thread, len(trace["threads"])))
    pair, times = np.array(pairs, np.int64).T, np.bincount(own_pair)
    caller = np.full(count, -1, np.int64)
    for row in np.argsort(times, kind="stable").tolist():  # one step a (section, thread)
        caller[pair[0, row]] = pair[1, row]
    start, end = np.full(count, span.start_ns, np.int64), np.full(count, span.end_ns, np.int64)
    sections = Sections(start, end, caller, key[0], np.full(count, -1, np.int64), np.zeros(count, bool), False)
    # A thread that feeds several devices belongs to the one it feeds most.
    order = np.argsort(-times, kind="stable")
    _, once = np.unique(pair[1, order], return_index=True)
    own = order[once]
    section = pair[0, own]
    owners = Owners(pair[1, own], start[section], end[section], section, pair[1, own] == caller[section])
    none = Held(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    waits, _ = lock_waits(found.evidence, sections, owners, pipeline)
    return replace(
        found,
        sections=sections,
        owners=owners,
        waits=replace(none, **waits.__dict__),
        held=none,
        inferred=np.empty(0, np.int64),
        log_row=np.full(count, -1, np.int64),
    )
