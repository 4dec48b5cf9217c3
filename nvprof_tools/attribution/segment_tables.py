"""Segments as Arrow tables: the evidence behind every figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution.categories import BUSY
from nvprof_tools.attribution.charge import Charge
from nvprof_tools.attribution.driver_locks import BLOCKERS, LockedTime
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.model import arrays
from nvprof_tools.model.attribution import DEVICE_SEGMENTS, SECTION_SEGMENTS
from nvprof_tools.timeline.intervals import distinct


def device_table(segments: Segments, charges: Sequence[Charge]) -> pa.Table:
    """``DEVICE_SEGMENTS``: an idle segment carries the section in charge."""
    section = np.full(len(segments), -1, np.int64)
    for device, charge in enumerate(charges):
        rows = np.flatnonzero(segments.lane == device)
        at = np.searchsorted(charge.start, segments.start[rows], side="right") - 1
        section[rows] = np.append(charge.section, -1)[np.where(at >= 0, at, -1)]
    busy = np.isin(segments.category, [row for row, word in enumerate(segments.categories) if word in BUSY])
    section[busy] = -1
    return pa.table(
        [
            arrays.from_numpy(segments.lane.astype(np.int32)),
            arrays.from_numpy(segments.start),
            arrays.from_numpy(segments.end),
            arrays.names(segments.category, segments.categories),
            arrays.names(segments.detail, segments.details),
            arrays.from_numpy(np.maximum(section, 0).astype(np.int32), section >= 0),
        ],
        schema=DEVICE_SEGMENTS,
    )


def section_table(segments: Segments, locked: LockedTime) -> pa.Table:
    """``SECTION_SEGMENTS``: the partition view's segments, cut where a lock in the driver is waited for."""
    edges = distinct(segments.at.start, locked.at.start, locked.at.end)
    inside = np.searchsorted(segments.at.start, edges, side="right") - 1
    limit = np.append(segments.at.end, 0)[inside]
    ends = np.minimum(np.append(edges[1:], np.iinfo(np.int64).max), limit)
    keep = (inside >= 0) & (ends > edges)
    edges, ends, inside = edges[keep], ends[keep], inside[keep]
    lock = np.searchsorted(locked.at.start, edges, side="right") - 1
    within = (lock >= 0) & (edges < np.append(locked.at.end, 0)[lock])
    blocker = np.where(within, np.append(locked.blocker, -1)[lock], -1)
    shift = segments.start[inside] - segments.at.start[inside]
    return pa.table(
        [
            arrays.from_numpy(segments.lane[inside].astype(np.int32)),
            arrays.from_numpy(edges + shift),
            arrays.from_numpy(ends + shift),
            arrays.names(segments.category[inside], segments.categories),
            arrays.names(segments.detail[inside], segments.details),
            arrays.names(blocker, BLOCKERS),
        ],
        schema=SECTION_SEGMENTS,
    )
