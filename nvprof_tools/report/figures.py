"""Figures that several renderers show, drawn once from the attribution: sorted, summed, never rounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nvprof_tools.model.attribution import Attribution, DeviceView, Overhead, PartitionView, Rung
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.report.words import BUSY, PINNING


@dataclass(frozen=True)
class Cause:
    """What one kind of call costs: its own time in sections, and what others wait for it on a lock in the driver."""

    name: str
    own_ns: int
    inflicted_ns: int


def largest_first(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Parts that are not zero, the largest first, ties by name."""
    return sorted(((k, v) for k, v in parts.items() if v), key=lambda kv: (-kv[1], kv[0]))


def measured(rung: Rung) -> bool:
    """Whether the rung has a figure at all."""
    return rung.fraction is not None or rung.busy_ns is not None


def sampled(rung: Rung) -> bool:
    """Whether the rung is a mean of samples, not a union of intervals."""
    return rung.busy_ns is None or rung.evidence.startswith(("GPU_METRICS", "NVML"))


def by_device(rungs: Iterable[Rung]) -> dict[int | None, list[Rung]]:
    """The ladder of each device, in the order given."""
    out: dict[int | None, list[Rung]] = {}
    for rung in rungs:
        out.setdefault(rung.device, []).append(rung)
    return out


def rung_fraction(a: Attribution, name: str) -> float | None:
    """The rung's mean over the devices it was measured on; all have the same wall. Null: nowhere measured."""
    known = [r.fraction for r in a.ladder if r.rung == name and r.fraction is not None]
    return sum(known) / len(known) if known else None


def whole_ladder(a: Attribution) -> list[Rung]:
    """One ladder for the run: that of its only device, else the mean of the rungs and the sum of the drops over all
    devices on which the rung was measured."""
    ladders = by_device(a.ladder)
    if len(ladders) == 1:
        return next(iter(ladders.values()))
    out: dict[str, Rung] = {}
    for rung in a.ladder:
        if rung.rung in out or not measured(rung):
            continue
        same = [r for r in a.ladder if r.rung == rung.rung and measured(r)]
        busy = [r.busy_ns for r in same if r.busy_ns is not None]
        drop: dict[str, int] = {}
        for one in same:
            for category, length in one.drop.items():
                drop[category] = drop.get(category, 0) + length
        total = sum(busy) if len(busy) == len(same) else None
        out[rung.rung] = Rung(None, rung.rung, total, rung_fraction(a, rung.rung), rung.evidence, drop)
    return list(out.values())


def sections_ns(a: Attribution) -> int:
    """Length of all sections together, ns."""
    return sum(p.wall_ns for p in a.partitions if p.wall_ns is not None)


def inside(a: Attribution) -> list[PartitionView]:
    """Partitions that lie in the capture, at least in part."""
    return [p for p in a.partitions if p.wall_ns is not None]


def idle_parts(views: Iterable[DeviceView]) -> dict[str, int]:
    """Idle time of the devices by category, ns."""
    out: dict[str, int] = {}
    for view in views:
        for category, length in view.categories.items():
            if category not in BUSY:
                out[category] = out.get(category, 0) + length
    return out


def device_total(a: Attribution, category: str) -> int:
    """The category's time over all devices, ns."""
    return sum(d.categories.get(category, 0) for d in a.devices)


def stage_totals(a: Attribution) -> dict[str, int]:
    """Busy kernel time by stage over all devices, ns."""
    out: dict[str, int] = {}
    for view in a.devices:
        for stage, length in view.stages.items():
            out[stage] = out.get(stage, 0) + length
    return out


def blocked_ns(a: Attribution) -> dict[str, int]:
    """Blocker → ns that sections wait on a lock in the driver while it runs."""
    out: dict[str, int] = {}
    for overhead in a.overheads:
        for blocker, length in overhead.blockers.items():
            out[blocker] = out.get(blocker, 0) + length
    return out


def driver_locks_ns(a: Attribution) -> int | None:
    """All waits on locks in the driver, ns; null where OS calls were not traced."""
    known = [o.driver_lock_ns for o in a.overheads if o.driver_lock_ns is not None]
    return sum(known) if known else None


def pinning(a: Attribution) -> Cause | None:
    """Pinning and unpinning as one cause; null where neither was seen."""
    own = sum(o.total_ns for o in a.overheads if o.category in PINNING)
    blocked = blocked_ns(a)
    inflicted = sum(blocked.get(c, 0) for c in PINNING)
    return Cause("pinning", own, inflicted) if own or inflicted else None


def overhead_rows(a: Attribution) -> list[Overhead]:
    """Overheads, the longest first."""
    return sorted(a.overheads, key=lambda o: (-o.total_ns, o.category))


def lost(a: Attribution) -> list[QualityItem]:
    """The items that stand at the head of a report: errors and data loss."""
    return [q for q in a.quality if q.severity in {Severity.ERROR, Severity.DATA_LOSS}]
