"""A capture on one clock, and a pipeline's log, as types that every later step shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from nvprof_tools.model.quality import QualityItem


@dataclass(frozen=True)
class SourceInfo:
    """Where a table or log came from: ``kind`` as ``nsys-sqlite``; never a path, a host or a user."""

    kind: str
    version: str | None
    sha256: str
    schema_version: str | None = None


@dataclass(frozen=True)
class Session:
    """Facts about the capture.

    ``utc_epoch_ns`` is the wall clock (ns since 1970, UTC) at ``t = 0``, null when unknown; ``end_ns`` is where the
    capture ends on the trace's clock, null when unknown. ``facts`` holds allow-listed metadata only (driver, CUDA and
    profiler versions, capture options that change meaning).
    """

    utc_epoch_ns: int | None
    end_ns: int | None
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """Everything a capture says, on one clock.

    ``tables`` has every name of ``model.tables.TABLES``; ``measured`` names those the capture really recorded, so a
    table of no rows that is not in ``measured`` means "not measured", never zero. ``embedded_log`` is the part of the
    program's own output, where the profiler stored it, that a pipeline log reader may use: text, untrusted.
    """

    source: SourceInfo
    session: Session
    tables: Mapping[str, pa.Table]
    measured: frozenset[str]
    quality: tuple[QualityItem, ...] = ()
    embedded_log: str | None = None

    def __getitem__(self, name: str) -> pa.Table:
        return self.tables[name]


EVENT_SCHEMA = pa.schema(
    [
        pa.field("line", pa.int64(), False),
        pa.field("time_ms", pa.int64(), False),
        pa.field("event", pa.dictionary(pa.int32(), pa.string()), False),
        pa.field("job", pa.dictionary(pa.int32(), pa.string()), False),
        pa.field("partition", pa.int32(), True),
        pa.field("worker", pa.int32(), True),
        pa.field("detail", pa.string(), True),
    ]
)
"""TIMELINE events in file order; ``time_ms`` counts whole milliseconds (floor) since the engine's start."""

PARTITION_SCHEMA = pa.schema(
    [
        pa.field("job", pa.string(), False),
        pa.field("partition", pa.int32(), True),
        pa.field("worker", pa.int32(), True),
        pa.field("synth_start_ms", pa.int64(), True),
        pa.field("synth_end_ms", pa.int64(), True),
        pa.field("sent_ms", pa.int64(), True),
        pa.field("picked_ms", pa.int64(), True),
        pa.field("gpu_start_ms", pa.int64(), True),
        pa.field("gpu_end_ms", pa.int64(), True),
        pa.field("synth_ms", pa.int64(), True),
        pa.field("gpu_ms", pa.int64(), True),
    ]
)
"""One row a (job, partition) in order of first appearance; a missing event is null. ``synth_ms``/``gpu_ms`` are the
log's own figures. ``partition`` is null for a monolithic job."""


COMPLETION_SCHEMA = pa.schema(
    [
        pa.field("line", pa.int64(), False),
        pa.field("utc_ns", pa.int64(), False),
        pa.field("job", pa.string(), False),
        pa.field("partition", pa.int32(), True),
        pa.field("gpu_ms", pa.int64(), True),
    ]
)
"""Lines that say on the wall clock, to the microsecond, that a partition's GPU call is over."""


@dataclass(frozen=True)
class LogRun:
    """One run of the engine: ``index`` counts from 1 in file order; ``anchor_utc_ns`` is the wall clock (ns since
    1970, UTC) of the engine's start as its own log states it, null when it does not."""

    index: int
    anchor_utc_ns: int | None
    events: pa.Table
    partitions: pa.Table
    timings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unknown_events: Mapping[str, int] = field(default_factory=dict)
    completions: pa.Table = field(default_factory=COMPLETION_SCHEMA.empty_table)
    """``timings``: name → (count, sum in ms), from CUZK_TIMING-like lines."""


@dataclass(frozen=True)
class AppLog:
    """A pipeline's log: its runs and what was lost in reading it."""

    source: SourceInfo
    runs: tuple[LogRun, ...]
    quality: tuple[QualityItem, ...] = ()
