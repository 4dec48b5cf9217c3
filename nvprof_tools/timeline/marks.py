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
_LINE = re.compile(r"TIMELINE,(\d{1,15}),([^,]*),(.*)", re.S)


@dataclass(frozen=True)
class Marks:
    """Log lines by the trace's clock: ``time_ns`` is when each line's first byte was written; in order of time."""

    time_ns: Ints
    process: Ints
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
    at = time - late
    order = np.argsort(at, kind="stable")
    return Marks(at[order], ints(table, "process")[own][keep][order], [lines[row] for row in order.tolist()])


@dataclass(frozen=True)
class Exact:
    """One log run by its marks: ``times`` maps a column of the partition table (``gpu_start_ms``…) to ns on the trace's
    clock (``NEVER``: no mark). ``low``/``high`` bound the offset that the stamps of the matched lines allow."""

    times: dict[str, Ints]
    matched: int
    low: int
    high: int
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
    if not rows:
        return None
    offset = marks.time_ns[rows] - np.array(stamps, np.int64) * MS
    # The stamp was taken no later than the line was written, and less than a millisecond after its floor.
    process = int(np.bincount(np.maximum(marks.process[rows], 0)).argmax())
    return Exact(times, len(rows), int(offset.max()) - MS + 1, int(offset.min()), process)


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
