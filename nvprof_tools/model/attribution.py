"""What attribution finds: plain data that renderers print and goldens keep. All times are integer ns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from nvprof_tools.model.quality import QualityItem
from nvprof_tools.model.tables import NAME
from nvprof_tools.model.trace import SourceInfo

WindowSource = Literal["log", "trace", "option"]
ClockMethod = Literal["marks", "anchor", "constraints", "none"]
Bound = Literal["compute", "memory", "latency"]


@dataclass(frozen=True)
class Window:
    """The wall every share is taken of, half-open, on the trace's clock."""

    start_ns: int
    end_ns: int
    source: WindowSource

    @property
    def wall_ns(self) -> int:
        """Length of the window, ns."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Clock:
    """How the log's clock maps to the trace's: ``trace_ns = log_ns + offset_ns`` (± ``uncertainty_ns``).

    ``low_ns``/``high_ns`` bound the offset by what must hold; ``anchor_ns`` is the offset that the log's own wall-clock
    line states, null without one; ``anchor_rejected`` says that it contradicts the bounds.
    """

    method: ClockMethod
    offset_ns: int | None = None
    uncertainty_ns: int | None = None
    drift_ppm: float | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    anchor_ns: int | None = None
    anchor_rejected: bool = False


@dataclass(frozen=True)
class Rung:
    """One rung of the utilisation ladder: ``busy_ns``/``fraction`` are null when not measured.

    ``drop`` maps categories to the ns that lie between the rung above (of those measured) and this one, where the two
    are nested sets of time; empty otherwise. ``device`` is null for a rung of the whole run.
    """

    device: int | None
    rung: str
    busy_ns: int | None
    fraction: float | None
    evidence: str
    drop: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceView:
    """One GPU over the window. ``categories`` add up to ``wall_ns`` exactly; ``details`` splits some of them by
    sub-key (``{"cpu": {"prep_join": …}}``), each adding up to its category. ``stages`` is busy kernel time by stage.
    ``metrics`` maps category or ``kernel:STAGE`` to mean samples by metric rung (percent), where measured."""

    device: int
    name: str | None
    wall_ns: int
    categories: Mapping[str, int]
    details: Mapping[str, Mapping[str, int]]
    stages: Mapping[str, int]
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PartitionView:
    """One partition's stay on a worker. ``section`` numbers it in the segment tables. ``categories`` add up to
    ``wall_ns`` exactly; ``driver_locks`` maps an API category to the part of it spent on a lock in the driver, and
    ``blockers`` maps the call category of whoever held it up (``none``: nobody seen) to ns. A partition wholly
    outside the capture has null times and empty categories."""

    section: int | None
    job: str | None
    partition: int | None
    worker: int | None
    device: int | None
    start_ns: int | None
    end_ns: int | None
    bracket_start_ns: int | None
    bracket_end_ns: int | None
    categories: Mapping[str, int]
    details: Mapping[str, Mapping[str, int]]
    driver_locks: Mapping[str, int] | None
    blockers: Mapping[str, int] | None
    open: bool
    cold: bool = False

    @property
    def wall_ns(self) -> int | None:
        """Length of the section, ns; null outside the capture."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns


@dataclass(frozen=True)
class JobView:
    """One proof: sums over its partitions, and what the log says of the rest. Null: not measured.

    ``slack_ns``: how long its partitions were ready before a GPU took them and the GPU was free, summed; negative
    parts are not counted.
    """

    job: str | None
    partitions: int
    wall_ns: int | None
    synthesis_ns: int | None
    queue_ns: int | None
    gpu_ns: int | None
    slack_ns: int | None
    categories: Mapping[str, int]
    cold: bool


@dataclass(frozen=True)
class Overhead:
    """One category over all sections of the window: distribution a *section-call*, share, idle caused, locks.

    ``calls`` counts API calls (or waits, or ranges) of the category; ``total_ns`` is section time in it.
    ``device_idle_ns`` is device-view time in it. ``driver_lock_ns`` is null without OS tracing.
    """

    category: str
    calls: int | None
    total_ns: int
    mean_ns: float | None
    p50_ns: int | None
    p95_ns: int | None
    max_ns: int | None
    section_fraction: float | None
    device_idle_ns: int
    driver_lock_ns: int | None
    blockers: Mapping[str, int]
    evidence: str


@dataclass(frozen=True)
class Latency:
    """Launch latency of one stage, ns: API start to kernel start, and API end to kernel start where positive."""

    stage: str
    launches: int
    p50_ns: int
    p95_ns: int
    max_ns: int
    queue_p50_ns: int | None
    queue_p95_ns: int | None
    queue_max_ns: int | None


@dataclass(frozen=True)
class MemoryUse:
    """Device memory over time: the running sum of allocations seen; null peak: not measured."""

    device: int
    peak_bytes: int | None
    at_ns: int | None
    evidence: str
    times_ns: tuple[int, ...] = ()
    bytes_in_use: tuple[int, ...] = ()


@dataclass(frozen=True)
class Gap:
    """One idle stretch of a device: its dominant category, all its categories, and what ran before and after."""

    device: int
    start_ns: int
    end_ns: int
    category: str
    categories: Mapping[str, int]
    before: str | None
    after: str | None


@dataclass(frozen=True)
class KernelCounters:
    """Counters joined to launches of one kernel or stage (``kernel`` null). Percent of peak; null: not measured."""

    kernel: str | None
    stage: str
    launches: int
    total_ns: int
    matched_launches: int
    matched_ns: int
    sm_throughput_pct: float | None
    dram_throughput_pct: float | None
    occupancy_pct: float | None
    theoretical_occupancy_pct: float | None
    issue_pct: float | None
    stalls: Mapping[str, float]
    bound: Bound | None
    match: str


DEVICE_SEGMENTS = pa.schema(
    [
        pa.field("device", pa.int32(), False),
        pa.field("start_ns", pa.int64(), False),
        pa.field("end_ns", pa.int64(), False),
        pa.field("category", NAME, False),
        pa.field("detail", NAME, True),
        pa.field("section", pa.int32(), True),
    ]
)
"""Disjoint, sorted, gapless over each device's window. ``section`` is the one in charge or the owner; may be null."""

SECTION_SEGMENTS = pa.schema(
    [
        pa.field("section", pa.int32(), False),
        pa.field("start_ns", pa.int64(), False),
        pa.field("end_ns", pa.int64(), False),
        pa.field("category", NAME, False),
        pa.field("detail", NAME, True),
        pa.field("blocker", NAME, True),
    ]
)
"""Disjoint, sorted, gapless over each section. ``blocker`` is set where the segment waits on a lock in the driver."""

ACTIVITIES = pa.schema(
    [
        pa.field("kind", NAME, False),
        pa.field("job", NAME, True),
        pa.field("partition", pa.int32(), True),
        pa.field("worker", pa.int32(), True),
        pa.field("start_ns", pa.int64(), False),
        pa.field("end_ns", pa.int64(), False),
        pa.field("evidence", NAME, False),
    ]
)
"""What the log or the ranges tell beside sections, on the trace's clock: ``kind`` is ``synthesis`` or ``queued`` (sent,
not picked up). Intervals may overlap. For timelines; no figure is made of it here."""


@dataclass(frozen=True)
class Inputs:
    """What was read."""

    trace: SourceInfo | None
    log: SourceInfo | None
    counters: SourceInfo | None
    log_run: int | None = None


@dataclass(frozen=True)
class Attribution:
    """The whole answer. Segment tables carry the evidence; everything else is made of them."""

    inputs: Inputs
    pipeline: str
    window: Window
    clock: Clock
    ladder: tuple[Rung, ...]
    devices: tuple[DeviceView, ...]
    partitions: tuple[PartitionView, ...]
    jobs: tuple[JobView, ...]
    overheads: tuple[Overhead, ...]
    latency: tuple[Latency, ...]
    memory: tuple[MemoryUse, ...]
    gaps: tuple[Gap, ...]
    counters: tuple[KernelCounters, ...]
    device_segments: pa.Table
    section_segments: pa.Table
    quality: tuple[QualityItem, ...]
    activities: pa.Table = field(default_factory=ACTIVITIES.empty_table)
