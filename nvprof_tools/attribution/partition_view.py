"""The partition view: each section's wall, split by its own device work first, then by what its threads do."""

from __future__ import annotations

import numpy as np

from nvprof_tools.attribution.categories import CALLS
from nvprof_tools.attribution.engine import Layer, Segments, sweep
from nvprof_tools.attribution.evidence import RANGE_ROLES, Evidence, Rows
from nvprof_tools.attribution.sections import Held, Owners, Sections
from nvprof_tools.attribution.work import Work, busy_layers
from nvprof_tools.timeline.intervals import Index, Ints
from nvprof_tools.timeline.lanes import Lanes

_QUIET_ROLES = ("section", "hold", "mutex_wait", "barrier_wait", "driver_lock")
"""Ranges that say where a thread is, not what it does: never a sub-key of ``cpu``."""


def view(
    evidence: Evidence, sections: Sections, owners: Owners, waits: Held, work: Work, lost: tuple[Ints, Ints, Ints]
) -> Segments:
    """Segments of every section, one lane each. ``lost`` are (section, start, end) that the capture cannot explain."""
    lanes = Lanes.of(sections.start, np.maximum(sections.end, sections.start))
    layers = [
        *busy_layers(lanes, work, work.section),
        Layer("mutex_wait", lanes.place(waits.section, waits.start, waits.end)),
    ]
    ranges, owner = evidence.ranges, owners.of_rows(evidence.ranges)
    barrier = np.flatnonzero((ranges.code == RANGE_ROLES.index("barrier_wait")) & (owner >= 0))
    layers.append(Layer("barrier_wait", lanes.place(owner[barrier], ranges.start[barrier], ranges.end[barrier])))
    calls, call_owner = evidence.calls, owners.of_rows(evidence.calls)
    for code, category in enumerate(CALLS):
        rows = np.flatnonzero((calls.code == code) & (call_owner >= 0))
        layers.append(Layer(category, lanes.place(call_owner[rows], calls.start[rows], calls.end[rows])))
    _, lane, start, end = owners.meeting(evidence.overhead)
    layers.append(Layer("profiler", lanes.place(lane, start, end)))
    layers.append(Layer("unattributed", lanes.place(*lost)))
    other = np.flatnonzero((calls.code < 0) & (call_owner >= 0))
    layers.append(_labelled(lanes, calls, other, call_owner, evidence.call_name, evidence.call_names))
    layers.extend(_cpu_ranges(lanes, evidence, owner, sections))
    os_owner = owners.of_rows(evidence.os_waits)
    rows = np.flatnonzero(os_owner >= 0)
    layers.append(_labelled(lanes, evidence.os_waits, rows, os_owner, evidence.os_waits.code, evidence.os_names))
    return sweep(lanes, layers, "cpu")


def _labelled(lanes: Lanes, rows: Rows, chosen: Index, owner: Ints, label: Ints, words: list[str]) -> Layer:
    """The innermost of the ``chosen`` rows at each instant, with its label."""
    spans, shown = lanes.innermost(owner[chosen], rows.start[chosen], rows.end[chosen], label[chosen])
    return Layer("cpu", spans, shown, tuple(words))


def _cpu_ranges(lanes: Lanes, evidence: Evidence, owner: Ints, sections: Sections) -> list[Layer]:
    """Two layers: the innermost range of the threads that launch, then of the callers."""
    ranges = evidence.ranges
    quiet = np.isin(ranges.code, [RANGE_ROLES.index(role) for role in _QUIET_ROLES])
    mine = (owner >= 0) & ~quiet
    on_caller = np.zeros(len(ranges), bool)
    on_caller[mine] = ranges.thread[mine] == sections.caller[owner[mine]]
    layers = []
    for rows in (np.flatnonzero(mine & ~on_caller), np.flatnonzero(mine & on_caller)):
        layers.append(_labelled(lanes, ranges, rows, owner, evidence.range_name, evidence.range_names))
    return layers
