"""The partition view as rows: one a section, and one a partition of the log that the capture never saw."""

from __future__ import annotations

from typing import Any

import numpy as np

from nvprof_tools.attribution.categories import CALLS
from nvprof_tools.attribution.driver_locks import BLOCKERS, LockedTime
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.attribution.segment_sums import by_word, details, totals
from nvprof_tools.attribution.survey import Found, SectionName
from nvprof_tools.model.attribution import PartitionView, Window
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.timeline.intervals import Ints


class _Log:
    """The log's partitions as the rows name them; without a log every answer is "unknown"."""

    def __init__(self, placed: Placed | None, pipeline: Pipeline) -> None:
        self.entries = [] if placed is None else placed.run.partitions.to_pylist()
        self.first_job = self.entries[0]["job"] if self.entries else None
        columns = () if placed is None else pipeline.bracket_columns
        self._bounds = [[None if ns == NEVER else ns for ns in placed.time(c).tolist()] for c in columns if placed]

    def entry(self, row: int) -> dict[str, Any]:
        return self.entries[row] if row >= 0 and self.entries else {}

    def bracket(self, row: int) -> tuple[int | None, int | None]:
        if row < 0 or not self._bounds:
            return None, None
        low, high = self._bounds
        return low[row], high[row]


def rows(
    found: Found, parts: Segments, locked: LockedTime, of_section: Ints, span: Window, pipeline: Pipeline
) -> list[PartitionView]:
    """Every section of the log's process (without a log: of every process) that touches the window, in order of start;
    then the log's partitions outside the capture."""
    log = _Log(found.placed, pipeline)
    by_section, sub_keys = totals(parts), details(parts)
    locks, blockers = _lock_sums(locked, len(found.sections)) if found.evidence.has_os else ([], [])
    sections = found.sections
    touching = (sections.end > span.start_ns) & (sections.start < span.end_ns) & ~found.foreign
    out = []
    log_row, device, opened = found.log_row.tolist(), of_section.tolist(), sections.open.tolist()
    start, end = sections.start.tolist(), sections.end.tolist()
    for i in np.flatnonzero(touching).tolist():
        row = log_row[i]
        out.append(
            PartitionView(
                section=i,
                **_identity(log, row, found.names.get(i)),
                device=device[i] if device[i] >= 0 else None,
                start_ns=start[i],
                end_ns=end[i],
                categories=by_section[i],
                details=sub_keys[i],
                driver_locks=locks[i] if found.evidence.has_os else None,
                blockers=blockers[i] if found.evidence.has_os else None,
                open=opened[i],
            )
        )
    seen = set(log_row)
    for row in range(len(log.entries)):
        if row not in seen and log.bracket(row)[0] is not None:
            out.append(
                PartitionView(
                    section=None,
                    **_identity(log, row),
                    device=None,
                    start_ns=None,
                    end_ns=None,
                    categories={},
                    details={},
                    driver_locks=None,
                    blockers=None,
                    open=log.bracket(row)[1] is None,
                )
            )
    return out


def _identity(log: _Log, row: int, name: SectionName | None = None) -> dict[str, Any]:
    entry = log.entry(row)
    if not entry and name is not None:
        entry = {"job": name.job, "partition": name.partition, "worker": name.worker}
    low, high = log.bracket(row)
    return {
        "job": entry.get("job"),
        "partition": entry.get("partition"),
        "worker": entry.get("worker"),
        "bracket_start_ns": low,
        "bracket_end_ns": high,
        "cold": bool(entry) and entry.get("job") == log.first_job,
    }


def _lock_sums(locked: LockedTime, count: int) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    """Per section: category → ns on driver locks, and blocker → ns, without zeros."""
    length = locked.end - locked.start

    def summed(code: Ints, words: tuple[str, ...]) -> list[dict[str, int]]:
        sums = np.zeros(count * len(words), np.int64)
        np.add.at(sums, locked.section * len(words) + code, length)
        return by_word(sums.reshape(count, len(words)), words)

    return summed(locked.category, CALLS), summed(locked.blocker, BLOCKERS)
