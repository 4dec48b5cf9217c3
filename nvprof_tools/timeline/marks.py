"""Timeline marks: log lines that the marker shim put into the trace itself, so that both clocks meet exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nvprof_tools.model.pipeline import ROLES, Pipeline
from nvprof_tools.model.trace import LogRun, Trace
from nvprof_tools.timeline.align import MS
from nvprof_tools.timeline.columns import ints, names
from nvprof_tools.timeline.intervals import Ints
from nvtx_markers.conventions import DOMAIN, TIMELINE_MARK_PATTERN

NEVER = np.iinfo(np.int64).min
_MARK = re.compile(TIMELINE_MARK_PATTERN)
_STRETCH = 64
_LINE = re.compile(r"TIMELINE,(\d{1,15}),([^,]*),(.*)", re.S)


@dataclass(frozen=True)
class Marks:
    """Log lines by the trace's clock: ``time_ns`` is when each line's first byte was written; in order of time.

    ``spread_ns`` is how well the two promptest marks of a stretch agree on how the clocks map.
    """

    time_ns: Ints
    process: Ints
    thread: Ints
    spread_ns: int
    lines: list[str]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def text(self) -> str:
        """The lines as a log."""
        return "".join(f"{line}\n" for line in self.lines)


def read(trace: Trace) -> Marks:
    """The timeline marks of a trace, maybe none. One step a mark: there are as many as log lines."""
    table = trace["nvtx_marks"]
    domain, domains = names(table, "domain")
    own = np.flatnonzero(np.append(np.array([word == DOMAIN for word in domains], bool), False)[domain])
    name, words = names(table, "name")
    parsed = [_MARK.match(words[code]) for code in name[own].tolist()]
    keep = [row for row, match in enumerate(parsed) if match is not None]
    time = ints(table, "time_ns")[own][keep]
    late = np.array([min(int(m["late_ns"][:18]), 2**50) for m in parsed if m is not None], np.int64)
    lines = [m["line"] for m in parsed if m is not None]
    wall = np.array([int(m["wall_ns"][:19]) % 2**62 for m in parsed if m is not None], np.int64)
    prompt, spread = _promptest(time, wall)
    at = wall - prompt - late
    order = np.argsort(at, kind="stable")
    process, thread = ints(table, "process")[own][keep][order], ints(table, "thread")[own][keep][order]
    return Marks(at[order], process, thread, spread, [lines[row] for row in order.tolist()])


def _promptest(time: Ints, wall: Ints) -> tuple[Ints, int]:
    """``(wall − trace, spread)``: each mark's clocks are read right before it is made, so the promptest mark of a
    stretch shows how the wall clock maps to the trace's; a stretch is short enough for neither to drift."""
    apart = wall - time
    order = np.argsort(time, kind="stable")
    starts = np.arange(0, len(order), _STRETCH)
    if len(starts) == 0:
        return apart, 0
    best = np.maximum.reduceat(apart[order], starts)
    out = np.empty(len(order), np.int64)
    out[order] = np.repeat(best, np.diff(np.append(starts, len(order))))
    seconds = [np.sort(part)[-2] for part in np.split(apart[order], starts[1:]) if len(part) > 1]
    firsts = [int(part.max()) for part in np.split(apart[order], starts[1:]) if len(part) > 1]
    spread = [first - int(second) for first, second in zip(firsts, seconds, strict=True)]
    return out, int(np.median(spread)) if spread else 0


@dataclass(frozen=True)
class Exact:
    """One log run by its marks.

    ``times`` maps a column of the partition table (``gpu_start_ms``…) to ns on the trace's clock (``NEVER``: no mark);
    ``starter`` is the thread that wrote each bracket's start (−1: no mark). ``low``/``high`` bound the offset that the
    stamps of the matched lines allow; ``spread_ns``: see :class:`Marks`.
    """

    times: dict[str, Ints]
    starter: Ints
    matched: int
    low: int
    high: int
    spread_ns: int
    process: int


def locate(marks: Marks, run: LogRun, pipeline: Pipeline) -> Exact | None:
    """The marks that carry this run's events, matched by stamp, event, job and partition; null when none does."""
    if len(marks) == 0:
        return None
    seen: dict[tuple[int, str, str], list[int]] = {}
    for row, line in enumerate(marks.lines):
        match = _LINE.match(line)
        if match is not None:
            seen.setdefault((int(match[1]), match[2], match[3].partition(",")[0]), []).append(row)
    events = run.events
    roles = pipeline.events.roles
    place = {key: row for row, key in enumerate(zip(*_keys(run), strict=True))}
    times = {f"{role}_ms": np.full(len(run.partitions), NEVER) for role in ROLES}
    starter = np.full(len(run.partitions), -1, np.int64)
    stamps: list[int] = []
    rows: list[int] = []
    columns = (events.column(name).to_pylist() for name in ("time_ms", "event", "job", "partition"))
    for stamp, event, job, partition in zip(*columns, strict=True):
        waiting = seen.get((stamp, event, job))
        if not waiting:
            continue
        picked = _pick(marks, waiting, partition)
        if picked is None:
            continue
        stamps.append(stamp)
        rows.append(picked)
        at = place.get((job, partition))
        if event in roles and at is not None:
            times[f"{roles[event]}_ms"][at] = marks.time_ns[picked]
            if event == pipeline.bracket[0]:
                starter[at] = marks.thread[picked]
    if not rows:
        return None
    offset = marks.time_ns[rows] - np.array(stamps, np.int64) * MS
    # The stamp was taken no later than the line was written, and less than a millisecond after its floor.
    process = int(np.bincount(np.maximum(marks.process[rows], 0)).argmax())
    return Exact(times, starter, len(rows), int(offset.max()) - MS + 1, int(offset.min()), marks.spread_ns, process)


def _keys(run: LogRun) -> tuple[list[str], list[int | None]]:
    return run.partitions.column("job").to_pylist(), run.partitions.column("partition").to_pylist()


def _pick(marks: Marks, waiting: list[int], partition: int | None) -> int | None:
    """Take the waiting mark that names the partition; one that names none serves an event without one."""
    for row in waiting:
        named = re.search(r"partition=(\d+)(?:,|$)", marks.lines[row])
        if (int(named[1]) if named else None) == partition:
            waiting.remove(row)
            return row
    return None
