"""What goes on beside sections, for timelines: synthesis, and partitions that wait in the queue."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution.evidence import RANGE_ROLES
from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.attribution.survey import Found
from nvprof_tools.model import arrays
from nvprof_tools.model.attribution import ACTIVITIES
from nvprof_tools.timeline.columns import ints
from nvprof_tools.timeline.intervals import Ints


def table(found: Found) -> pa.Table:
    """``ACTIVITIES``: synthesis by the ranges, else by the log; queueing by the log. Sorted by start."""
    parts = _ranges(found)
    jobs: list[str] = []
    if found.placed is not None:
        jobs = list(dict.fromkeys(found.placed.run.partitions.column("job").to_pylist()))
        parts += _logged(found.placed, jobs, not parts)
    if not parts:
        # Not empty_table(): that imports pandas.
        return pa.Table.from_arrays([pa.nulls(0, f.type) for f in ACTIVITIES], schema=ACTIVITIES)
    kind, job, partition, worker, start, end, evidence = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((end, kind, start))
    return pa.table(
        [
            arrays.names(kind[order], ("synthesis", "queued")),
            arrays.names(job[order], jobs),
            arrays.from_numpy(np.maximum(partition, 0)[order].astype(np.int32), partition[order] >= 0),
            arrays.from_numpy(np.maximum(worker, 0)[order].astype(np.int32), worker[order] >= 0),
            arrays.from_numpy(start[order]),
            arrays.from_numpy(end[order]),
            arrays.names(evidence[order], ("NVTX", "TIMELINE")),
        ],
        schema=ACTIVITIES,
    )


def _ranges(found: Found) -> list[tuple[Ints, ...]]:
    ranges = found.evidence.ranges
    rows = np.flatnonzero(ranges.code == RANGE_ROLES.index("synthesis"))
    if len(rows) == 0:
        return []
    zero, nobody = np.zeros(len(rows), np.int64), np.full(len(rows), -1, np.int64)
    return [(zero, nobody, nobody, nobody, ranges.start[rows], ranges.end[rows], zero)]


def _logged(placed: Placed, jobs: list[str], synthesis: bool) -> list[tuple[Ints, ...]]:
    log = placed.run.partitions
    number = {name: row for row, name in enumerate(jobs)}
    job = np.array([number[name] for name in log.column("job").to_pylist()], np.int64)
    partition, worker = ints(log, "partition"), ints(log, "worker")
    parts: list[tuple[Ints, ...]] = []
    for kind, first, last in ((0, "synth_start_ms", "synth_end_ms"), (1, "sent_ms", "picked_ms")):
        if kind == 0 and not synthesis:
            continue
        start, end = placed.time(first), placed.time(last)
        keep = np.flatnonzero((start != NEVER) & (end != NEVER))
        same = np.ones(len(keep), np.int64)
        parts.append((kind * same, job[keep], partition[keep], worker[keep], start[keep], end[keep], same))
    return parts
