"""What a pipeline's log tells by itself: plain data, whole milliseconds on the log's clock, null = not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from nvprof_tools.model.quality import QualityItem
from nvprof_tools.model.trace import PARTITION_SCHEMA

IDLE_CAUSES = ("section", "dispatch", "starved", "drained")
"""Why no bracket is open, in order of precedence: a worker has picked a partition up and not started it; one is sent
and not picked up; synthesis runs; none of these."""

SUMMARY_PARTITION_SCHEMA = pa.schema(
    [
        *PARTITION_SCHEMA,
        pa.field("queue_ms", pa.int64(), True),
        pa.field("slack_ms", pa.int64(), True),
        pa.field("idle_before_ms", pa.int64(), True),
        pa.field("idle_cause", pa.string(), True),
    ]
)
"""``PARTITION_SCHEMA`` in order of GPU start, and: ``queue_ms`` sent → picked up; ``slack_ms`` how long it had been
ready when its worker became free (negative: the worker waited); ``idle_before_ms`` how long no bracket was open before
its own (null: no predecessor) and why most of that."""


@dataclass(frozen=True)
class LogTotals:
    """Figures of a set of jobs. A job is finished when all its partitions have a GPU end; only finished jobs and
    closed brackets count in ``jobs`` and ``partitions``.

    ``wall_ms``: first GPU start → last GPU end. ``gpu_sum_ms``: the log's own gpu_ms summed (the bracket's length where
    it has none). ``gpu_union_ms``: time in which a bracket is open. ``idle_ms``: the rest of the wall; ``idle_causes``
    splits it exactly. ``synth_*`` and ``gaps`` are counts and sums for means: a gap is what lies between a bracket and
    the ones before it, zero where they overlap. ``finish_span_ms``: from the end of the first finished job to that of
    the last, null with fewer than two.
    """

    wall_ms: int | None
    first_synth_to_last_gpu_ms: int | None
    jobs: int
    open_jobs: int
    partitions: int
    open_partitions: int
    synth_count: int
    synth_sum_ms: int | None
    gpu_sum_ms: int | None
    gpu_union_ms: int | None
    idle_ms: int | None
    idle_causes: Mapping[str, int]
    gaps: int
    finish_span_ms: int | None

    @property
    def utilisation_sum(self) -> float | None:
        """Σ gpu_ms / wall; may pass 1 where brackets overlap."""
        return _ratio(self.gpu_sum_ms, self.wall_ms)

    @property
    def utilisation_union(self) -> float | None:
        """Time in which a bracket is open / wall."""
        return _ratio(self.gpu_union_ms, self.wall_ms)

    @property
    def utilisation_busy_idle(self) -> float | None:
        """Σ gpu_ms / (Σ gpu_ms + idle)."""
        if self.gpu_sum_ms is None or self.idle_ms is None:
            return None
        return _ratio(self.gpu_sum_ms, self.gpu_sum_ms + self.idle_ms)

    @property
    def mean_synth_ms(self) -> float | None:
        """Mean synthesis a partition."""
        return _ratio(self.synth_sum_ms, self.synth_count)

    @property
    def mean_gpu_ms(self) -> float | None:
        """Mean gpu_ms a partition."""
        return _ratio(self.gpu_sum_ms, self.partitions)

    @property
    def mean_gap_ms(self) -> float | None:
        """Mean idle time between a bracket and the ones before it."""
        return _ratio(self.idle_ms, self.gaps)

    @property
    def idle_per_partition_ms(self) -> float | None:
        """Idle time over partitions: how much longer than gpu_ms a partition takes when they run one by one."""
        return _ratio(self.idle_ms, self.partitions)

    @property
    def seconds_per_proof(self) -> float | None:
        """(last GPU end - first synthesis start) / finished jobs."""
        ratio = _ratio(self.first_synth_to_last_gpu_ms, self.jobs)
        return None if ratio is None else ratio / 1000

    @property
    def seconds_between_proofs(self) -> float | None:
        """Mean time from one finished proof to the next: the pace once the pipeline is full."""
        if self.finish_span_ms is None:
            return None
        return self.finish_span_ms / (self.jobs - 1) / 1000

    @property
    def proofs_per_minute(self) -> float | None:
        """60 / seconds a proof."""
        seconds = self.seconds_per_proof
        return 60 / seconds if seconds else None


@dataclass(frozen=True)
class LogJob:
    """One job. Sums over its partitions: ``synth_ms``, ``queue_ms``, ``gpu_ms``, ``slack_ms`` (positive parts only).

    ``wall_ms``: first synthesis start → last GPU end. ``idle_before_ms``: how long no bracket was open before its first
    one, null for the first job; ``idle_inside_ms``: the same before its other ones. ``idle_cause``: why most of
    ``idle_before_ms``. ``cold``: the first job. ``open``: some partition has no GPU end.
    """

    job: str
    partitions: int
    synth_ms: int | None
    queue_ms: int | None
    gpu_ms: int | None
    wall_ms: int | None
    slack_ms: int | None
    idle_before_ms: int | None
    idle_inside_ms: int | None
    idle_cause: str | None
    cold: bool
    open: bool


@dataclass(frozen=True)
class LogDevice:
    """The workers that the pipeline file puts on one GPU, over the run's wall."""

    device: int
    workers: tuple[int, ...]
    partitions: int
    gpu_sum_ms: int
    gpu_union_ms: int
    utilisation_union: float | None


@dataclass(frozen=True)
class LogSummary:
    """One run of a log. ``runs``: how many the log has. ``steady``: without the cold job, null where there is no
    other. ``devices``: empty where all workers are of one GPU. ``extra_events``: name → (count, meaning)."""

    runs: int
    run: int
    pipeline: str
    anchor_utc_ns: int | None
    totals: LogTotals
    steady: LogTotals | None
    jobs: tuple[LogJob, ...]
    partitions: pa.Table
    devices: tuple[LogDevice, ...]
    timings: Mapping[str, tuple[int, int]]
    unknown_events: Mapping[str, int]
    extra_events: Mapping[str, tuple[int, str]]
    quality: tuple[QualityItem, ...]


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole
