"""The fleet at a glance: runs a node and a day, and the ones that stand apart from their like.

A run stands apart when its figure lies more than ``FAR`` median absolute deviations (scaled as a normal's) from the
median of its pipeline's runs, there are at least ``LEAST`` of them, and it is off by more than ``SMALL`` of the median:
of hundreds of nearly equal runs a few are always far by the first measure alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nvprof_tools.fleet.ledger import RunResult

FAR, LEAST, SMALL = 5.0, 8, 0.02
_NORMAL = 1.4826
FIGURES = ("kernel_busy", "ns_a_partition", "wall_ns")


@dataclass(frozen=True)
class Group:
    """Runs of one node or one day. Medians are over the runs that have the figure; null: none has."""

    kind: str
    name: str
    runs: int
    failed: int
    kernel_busy: float | None
    ns_a_partition: float | None
    data_loss: int


@dataclass(frozen=True)
class Outlier:
    """A run's figure far from its like: by how many deviations, and what is usual."""

    run: str
    figure: str
    value: float
    median: float
    deviations: float


@dataclass(frozen=True)
class Rollup:
    """Groups by node and by day, outliers by how far they are, failures by name."""

    runs: int
    groups: tuple[Group, ...]
    outliers: tuple[Outlier, ...]
    failures: tuple[RunResult, ...]


def roll_up(outcomes: Sequence[RunResult]) -> Rollup:
    """Everything of a batch."""
    groups = [
        *_groups("node", outcomes, lambda one: one.node),
        *_groups("day", outcomes, lambda one: str((one.summary or {}).get("day") or "")),
    ]
    failures = sorted((one for one in outcomes if not one.done), key=lambda one: one.name)
    return Rollup(len(outcomes), tuple(groups), tuple(outliers(outcomes)), tuple(failures))


def _groups(kind: str, outcomes: Sequence[RunResult], of: Any) -> list[Group]:
    members: dict[str, list[RunResult]] = {}
    for one in outcomes:
        members.setdefault(of(one), []).append(one)
    return [
        Group(
            kind,
            name,
            len(own),
            sum(not one.done for one in own),
            _median(_values(own, "kernel_busy")),
            _median(_values(own, "ns_a_partition")),
            sum(int(bool((one.summary or {}).get("data_loss"))) for one in own),
        )
        for name, own in sorted(members.items())
        if name or len(members) > 1
    ]


def _values(outcomes: Iterable[RunResult], figure: str) -> list[float]:
    return [float(v) for one in outcomes if (v := (one.summary or {}).get(figure)) is not None]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def outliers(outcomes: Sequence[RunResult]) -> list[Outlier]:
    """Runs far from the median of their pipeline's runs, farthest first."""
    found = []
    by_pipeline: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for one in outcomes:
        if one.summary is not None:
            by_pipeline.setdefault(str(one.summary.get("pipeline")), []).append((one.name, one.summary))
    for members in by_pipeline.values():
        for figure in FIGURES:
            known = [(name, float(row[figure])) for name, row in members if row.get(figure) is not None]
            if len(known) < LEAST:
                continue
            middle = statistics.median(value for _, value in known)
            spread = _NORMAL * statistics.median(abs(value - middle) for _, value in known)
            for name, value in known:
                off = abs(value - middle)
                if off > SMALL * abs(middle) and off > FAR * spread:
                    found.append(Outlier(name, figure, value, middle, off / spread if spread else float("inf")))
    return sorted(found, key=lambda one: (-one.deviations, one.run, one.figure))


SUMMARIES = pa.schema(
    [
        pa.field("run", pa.string(), False),
        pa.field("node", pa.string(), False),
        pa.field("day", pa.string(), True),
        pa.field("pipeline", pa.string(), True),
        pa.field("wall_ns", pa.int64(), True),
        pa.field("devices", pa.int64(), True),
        pa.field("partitions", pa.int64(), True),
        pa.field("jobs", pa.int64(), True),
        pa.field("kernel_busy", pa.float64(), True),
        pa.field("ns_a_partition", pa.int64(), True),
        pa.field("dearest", pa.string(), True),
        pa.field("dearest_fraction", pa.float64(), True),
        pa.field("data_loss", pa.int64(), True),
        pa.field("slug", pa.string(), True),
        pa.field("message", pa.string(), True),
    ]
)


def table(outcomes: Sequence[RunResult]) -> pa.Table:
    """One row a run, failed ones with their slug and message."""
    rows = [
        {"run": one.name, "node": one.node, "slug": one.slug, "message": one.message, **(one.summary or {})}
        for one in outcomes
    ]
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in SUMMARIES]
    return pa.Table.from_arrays(columns, schema=SUMMARIES)
