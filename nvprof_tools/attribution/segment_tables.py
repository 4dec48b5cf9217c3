"""Segments as Arrow tables: the evidence behind every figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution.categories import BUSY
from nvprof_tools.attribution.charge import Charge
from nvprof_tools.attribution.driver_locks import BLOCKERS, LockedTime
from nvprof_tools.attribution.engine import Segments
from nvprof_tools.model import arrays
from nvprof_tools.model.attribution import DEVICE_SEGMENTS, SECTION_SEGMENTS
from nvprof_tools.native.interval_functions import covering
from nvprof_tools.timeline.intervals import Codes, Index, Ints, distinct, ranges


def device_table(segments: Segments, charges: Sequence[Charge]) -> pa.Table:
    """``DEVICE_SEGMENTS``: an idle segment carries the section in charge."""
    section = np.full(len(segments), -1, np.int32)
    idle = np.array([word not in BUSY for word in segments.categories] or [True])[segments.category]
    bounds = np.searchsorted(segments.lane, np.arange(len(charges) + 1, dtype=np.int32))
    for device, charge in enumerate(charges):
        rows = slice(int(bounds[device]), int(bounds[device + 1]))
        stretch = _in_force(charge, segments.start[rows])
        section[rows] = np.where(idle[rows], np.append(charge.section, -1).astype(np.int32)[stretch], -1)
    return pa.table(
        [
            arrays.from_numpy(segments.lane),
            arrays.from_numpy(segments.start),
            arrays.from_numpy(segments.end),
            arrays.names(segments.category, segments.categories),
            arrays.names(segments.detail, segments.details),
            arrays.from_numpy(np.maximum(section, 0), section >= 0),
        ],
        schema=DEVICE_SEGMENTS,
    )


def _in_force(charge: Charge, at: Ints) -> Index:
    """The stretch that each instant lies in, −1 for none: stretches follow each other, instants rise."""
    found = covering(charge.start, charge.end, at)
    return np.searchsorted(charge.start, at, side="right") - 1 if found is None else found


def section_table(segments: Segments, locked: LockedTime) -> pa.Table:
    """``SECTION_SEGMENTS``: the partition view's segments, cut where a lock in the driver is waited for."""
    cut, blocker = segments, np.full(len(segments), -1, np.int32)
    if len(locked.start):
        cut, blocker = _cut(segments, locked)
    return pa.table(
        [
            arrays.from_numpy(cut.lane),
            arrays.from_numpy(cut.start),
            arrays.from_numpy(cut.end),
            arrays.names(cut.category, cut.categories),
            arrays.names(cut.detail, cut.details),
            arrays.names(blocker, BLOCKERS),
        ],
        schema=SECTION_SEGMENTS,
    )


def _cut(segments: Segments, locked: LockedTime) -> tuple[Segments, Codes]:
    """The segments cut at both ends of every lock, and each one's blocker (−1: no lock)."""
    at = segments.on_axis(slice(None))
    cuts = distinct(locked.at.start, locked.at.end)
    cut = np.searchsorted(at.start, cuts, side="right") - 1
    within = (cut >= 0) & (cuts > at.start[cut]) & (cuts < at.end[cut])
    cuts, cut = cuts[within], cut[within]
    row = np.repeat(np.arange(len(segments)), 1 + np.bincount(cut, minlength=len(segments)))
    edges = np.insert(at.start, cut + 1, cuts)
    ends = np.minimum(np.append(edges[1:], np.iinfo(np.int64).max), at.end[row])
    # Where a lock begins or ends is an edge now, so each covers whole rows.
    waiting, lock = ranges(np.searchsorted(edges, locked.at.start), np.searchsorted(edges, locked.at.end))
    blocker = np.full(len(edges), -1, np.int32)
    blocker[waiting] = locked.blocker[lock]
    shift = (segments.start - at.start)[row]
    times = edges + shift, ends + shift
    return replace(
        segments,
        lane=segments.lane[row],
        start=times[0],
        end=times[1],
        category=segments.category[row],
        detail=segments.detail[row],
    ), blocker
