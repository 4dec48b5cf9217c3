"""CSV: one row a (view, subject, category), for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO, TypeAlias

from nvprof_tools.files.safe_text import csv_cell
from nvprof_tools.model.attribution import Attribution, PartitionView
from nvprof_tools.report.base import Report

HEADER = ("view", "device", "subject", "category", "detail", "ns", "fraction", "calls", "evidence")
Row: TypeAlias = tuple[str | int | float | None, ...]


def rows(a: Attribution) -> Iterator[Row]:
    """Rows under ``HEADER``. An empty cell means not measured or not applicable; it is never written as zero."""
    for r in a.ladder:
        yield ("ladder", r.device, r.rung, "", "", r.busy_ns, _round(r.fraction), None, r.evidence)
        for category, length in r.drop.items():
            yield (
                "ladder_drop",
                r.device,
                r.rung,
                category,
                "",
                length,
                _share(length, a.window.wall_ns),
                None,
                r.evidence,
            )
    for d in a.devices:
        subject = f"device {d.device}"
        for category, length in d.categories.items():
            yield ("device", d.device, subject, category, "", length, _share(length, d.wall_ns), None, "")
        for category, parts in d.details.items():
            for detail, length in parts.items():
                yield (
                    "device_detail",
                    d.device,
                    subject,
                    category,
                    detail,
                    length,
                    _share(length, d.wall_ns),
                    None,
                    "",
                )
        for stage, length in d.stages.items():
            yield ("device_stage", d.device, subject, "kernel", stage, length, _share(length, d.wall_ns), None, "")
    for p in a.partitions:
        subject = partition_name(p)
        if not p.categories:
            yield ("partition", p.device, subject, "", "", None, None, None, "")
        for category, length in p.categories.items():
            yield ("partition", p.device, subject, category, "", length, _share(length, p.wall_ns), None, "")
        for category, length in (p.driver_locks or {}).items():
            yield (
                "partition_driver_lock",
                p.device,
                subject,
                category,
                "",
                length,
                _share(length, p.wall_ns),
                None,
                "",
            )
    for j in a.jobs:
        for name, value in (
            ("wall", j.wall_ns),
            ("synthesis", j.synthesis_ns),
            ("queue", j.queue_ns),
            ("gpu", j.gpu_ns),
            ("slack", j.slack_ns),
        ):
            yield ("job", None, j.job or "", name, "", value, None, j.partitions, "")
        for category, length in j.categories.items():
            yield ("job_category", None, j.job or "", category, "", length, None, None, "")
    for o in a.overheads:
        yield (
            "overhead",
            None,
            "sections",
            o.category,
            "",
            o.total_ns,
            _round(o.section_fraction),
            o.calls,
            o.evidence,
        )
        yield (
            "overhead_device_idle",
            None,
            "sections",
            o.category,
            "",
            o.device_idle_ns,
            _share(o.device_idle_ns, a.window.wall_ns),
            None,
            o.evidence,
        )
        yield (
            "overhead_driver_lock",
            None,
            "sections",
            o.category,
            "",
            o.driver_lock_ns,
            _share(o.driver_lock_ns, o.total_ns),
            None,
            o.evidence,
        )
        for blocker, length in o.blockers.items():
            yield (
                "overhead_blocker",
                None,
                "sections",
                o.category,
                blocker,
                length,
                _share(length, o.total_ns),
                None,
                o.evidence,
            )
    for x in a.latency:
        for quantile, value in (("p50", x.p50_ns), ("p95", x.p95_ns), ("max", x.max_ns)):
            yield ("latency", None, "launch", x.stage, quantile, value, None, x.launches, "")
    for g in a.gaps:
        yield ("gap", g.device, f"{g.start_ns}", g.category, "", g.end_ns - g.start_ns, None, None, "")
    for q in a.quality:
        yield ("quality", None, q.slug, q.severity.value, q.message, None, None, q.count, "")


class CsvTable:
    """``-f csv``."""

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write header and rows, UTF-8, lines ended by ``\\n``."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADER)
        for row in rows(report.attribution):
            writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in row])
        out.write(text.getvalue().encode("utf-8"))


def partition_name(p: PartitionView) -> str:
    """``JOB/PARTITION``; a monolithic job has no partition number."""
    job = p.job if p.job is not None else "?"
    return job if p.partition is None else f"{job}/{p.partition}"


def _share(length: int | None, wall: int | None) -> float | None:
    return None if length is None or not wall else _round(length / wall)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 9)
