"""The dataset's tables: what of one attribution goes into it, and their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from nvprof_tools.model.attribution import DEVICE_SEGMENTS, SECTION_SEGMENTS, Attribution

_NS, _TEXT = pa.int64(), pa.string()

LADDER = pa.schema(
    [
        pa.field("device", pa.int32(), True),
        pa.field("rung", _TEXT, False),
        pa.field("busy_ns", _NS, True),
        pa.field("fraction", pa.float64(), True),
        pa.field("evidence", _TEXT, False),
    ]
)
OVERHEADS = pa.schema(
    [
        pa.field("category", _TEXT, False),
        pa.field("calls", pa.int64(), True),
        pa.field("total_ns", _NS, False),
        pa.field("p50_ns", _NS, True),
        pa.field("p95_ns", _NS, True),
        pa.field("max_ns", _NS, True),
        pa.field("section_fraction", pa.float64(), True),
        pa.field("device_idle_ns", _NS, False),
        pa.field("driver_lock_ns", _NS, True),
        pa.field("evidence", _TEXT, False),
    ]
)
SCHEMAS: Mapping[str, pa.Schema] = {
    "ladder": LADDER,
    "overheads": OVERHEADS,
    "device_segments": DEVICE_SEGMENTS,
    "section_segments": SECTION_SEGMENTS,
}
"""Tables of the dataset, each in a folder of its name and partitioned by run."""


def of_attribution(found: Attribution) -> dict[str, pa.Table]:
    """Table name → rows."""
    return {
        "ladder": _rows(found.ladder, LADDER),
        "overheads": _rows(found.overheads, OVERHEADS),
        "device_segments": found.device_segments,
        "section_segments": found.section_segments,
    }


def _rows(items: Sequence[Any], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([getattr(item, f.name) for item in items], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class Summary:
    """One run in one row. Null: not measured.

    :param day: UTC day of the capture's start, ``YYYY-MM-DD``.
    :param kernel_busy: mean over the devices of the share of the window in which kernels ran.
    :param ns_a_partition: mean length of the partitions the capture saw whole.
    :param dearest: the category that took most section time, and its share of it.
    """

    day: str | None
    pipeline: str
    wall_ns: int
    devices: int
    partitions: int
    jobs: int
    kernel_busy: float | None
    ns_a_partition: int | None
    dearest: str | None
    dearest_fraction: float | None
    data_loss: int


def summary(found: Attribution, epoch_ns: int | None) -> Summary:
    """The run's row of the roll-up."""
    busy = [r.fraction for r in found.ladder if r.rung == "kernel_busy" and r.fraction is not None]
    walls = [p.wall_ns for p in found.partitions if p.wall_ns is not None and not p.open]
    dear = max(found.overheads, key=lambda o: (o.total_ns, o.category), default=None)
    return Summary(
        day=_day(epoch_ns),
        pipeline=found.pipeline,
        wall_ns=found.window.wall_ns,
        devices=len(found.devices),
        partitions=len(found.partitions),
        jobs=len(found.jobs),
        kernel_busy=sum(busy) / len(busy) if busy else None,
        ns_a_partition=sum(walls) // len(walls) if walls else None,
        dearest=None if dear is None or dear.total_ns == 0 else dear.category,
        dearest_fraction=None if dear is None or dear.total_ns == 0 else dear.section_fraction,
        data_loss=sum(1 for item in found.quality if item.severity == "data-loss"),
    )


def _day(epoch_ns: int | None) -> str | None:
    """Null too for a time that no calendar has: captures hold anything."""
    try:
        return None if epoch_ns is None else datetime.fromtimestamp(epoch_ns // 10**9, UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return None
