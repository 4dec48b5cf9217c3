"""The attribution as JSON: a contract. Keys keep their order; new keys come last in their object.

Strings are written as ASCII with escapes, so that nothing a trace holds can act on a terminal or a page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import BinaryIO, TypeAlias

from nvprof_tools.model.attribution import Attribution, MemoryUse
from nvprof_tools.model.trace import SourceInfo
from nvprof_tools.report.base import Report

SCHEMA = "nvprof-tools/attribution/1"
SERIES_POINTS = 500

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


def document(a: Attribution) -> dict[str, Json]:
    """The whole document as plain data; times are integers in ns, null means not measured."""
    return {
        "schema": SCHEMA,
        "inputs": _inputs(a),
        "pipeline": a.pipeline,
        "window": {
            "start_ns": a.window.start_ns,
            "end_ns": a.window.end_ns,
            "wall_ns": a.window.wall_ns,
            "from": a.window.source,
        },
        "clock": {
            "method": a.clock.method,
            "offset_ns": a.clock.offset_ns,
            "uncertainty_ns": a.clock.uncertainty_ns,
            "drift_ppm": _number(a.clock.drift_ppm),
            "low_ns": a.clock.low_ns,
            "high_ns": a.clock.high_ns,
            "anchor_ns": a.clock.anchor_ns,
            "anchor_rejected": a.clock.anchor_rejected,
        },
        "ladder": [
            {
                "device": r.device,
                "rung": r.rung,
                "busy_ns": r.busy_ns,
                "fraction": _number(r.fraction),
                "evidence": r.evidence,
                "drop": dict(r.drop),
            }
            for r in a.ladder
        ],
        "devices": [
            {
                "device": d.device,
                "name": d.name,
                "wall_ns": d.wall_ns,
                "categories": dict(d.categories),
                "stages": dict(d.stages),
                "details": _nested(d.details),
                "metrics": {k: {m: _number(v) for m, v in means.items()} for k, means in d.metrics.items()},
            }
            for d in a.devices
        ],
        "partitions": [
            {
                "job": p.job,
                "partition": p.partition,
                "worker": p.worker,
                "device": p.device,
                "start_ns": p.start_ns,
                "end_ns": p.end_ns,
                "wall_ns": p.wall_ns,
                "bracket_start_ns": p.bracket_start_ns,
                "bracket_end_ns": p.bracket_end_ns,
                "categories": dict(p.categories),
                "open": p.open,
                "cold": p.cold,
                "details": _nested(p.details),
                "driver_locks": None if p.driver_locks is None else dict(p.driver_locks),
                "blockers": None if p.blockers is None else dict(p.blockers),
            }
            for p in a.partitions
        ],
        "jobs": [
            {
                "job": j.job,
                "partitions": j.partitions,
                "wall_ns": j.wall_ns,
                "synthesis_ns": j.synthesis_ns,
                "queue_ns": j.queue_ns,
                "gpu_ns": j.gpu_ns,
                "cold": j.cold,
                "slack_ns": j.slack_ns,
                "categories": dict(j.categories),
            }
            for j in a.jobs
        ],
        "overheads": [
            {
                "category": o.category,
                "calls": o.calls,
                "total_ns": o.total_ns,
                "mean_ns": _number(o.mean_ns),
                "p50_ns": o.p50_ns,
                "p95_ns": o.p95_ns,
                "max_ns": o.max_ns,
                "section_fraction": _number(o.section_fraction),
                "device_idle_ns": o.device_idle_ns,
                "driver_lock_ns": o.driver_lock_ns,
                "blockers": dict(o.blockers),
                "evidence": o.evidence,
            }
            for o in a.overheads
        ],
        "latency": [
            {
                "stage": x.stage,
                "launches": x.launches,
                "p50_ns": x.p50_ns,
                "p95_ns": x.p95_ns,
                "max_ns": x.max_ns,
                "queue_p50_ns": x.queue_p50_ns,
                "queue_p95_ns": x.queue_p95_ns,
                "queue_max_ns": x.queue_max_ns,
            }
            for x in a.latency
        ],
        "memory": [
            {
                "device": m.device,
                "peak_bytes": m.peak_bytes,
                "at_ns": m.at_ns,
                "evidence": m.evidence,
                "series": thinned(m),
            }
            for m in a.memory
        ],
        "gaps": [
            {
                "device": g.device,
                "start_ns": g.start_ns,
                "end_ns": g.end_ns,
                "category": g.category,
                "before": g.before,
                "after": g.after,
                "categories": dict(g.categories),
            }
            for g in a.gaps
        ],
        "counters": [
            {
                "kernel": k.kernel,
                "stage": k.stage,
                "launches": k.launches,
                "total_ns": k.total_ns,
                "sm_throughput_pct": _number(k.sm_throughput_pct),
                "dram_throughput_pct": _number(k.dram_throughput_pct),
                "occupancy_pct": _number(k.occupancy_pct),
                "bound": k.bound,
                "matched_launches": k.matched_launches,
                "matched_ns": k.matched_ns,
                "theoretical_occupancy_pct": _number(k.theoretical_occupancy_pct),
                "issue_pct": _number(k.issue_pct),
                "stalls": {s: _number(v) for s, v in k.stalls.items()},
                "match": k.match,
            }
            for k in a.counters
        ],
        "quality": [
            {"slug": q.slug, "severity": q.severity.value, "count": q.count, "message": q.message, "hint": q.hint}
            for q in a.quality
        ],
    }


def dumps(data: Json) -> str:
    """ASCII JSON, two spaces deep, no NaN, one newline at the end."""
    return json.dumps(data, indent=2, allow_nan=False).replace("\x7f", "\\u007f") + "\n"


class JsonDocument:
    """``-f json``."""

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write the document."""
        out.write(dumps(document(report.attribution)).encode("ascii"))


def thinned(m: MemoryUse) -> list[Json]:
    """Memory in use over time as ``[ns, bytes]`` pairs: of each run of neighbours the highest, 500 pairs at most."""
    count = len(m.times_ns)
    if not count:
        return []
    step = -(-count // SERIES_POINTS)
    runs = (range(i, min(i + step, count)) for i in range(0, count, step))
    peaks = (max(run, key=lambda k: m.bytes_in_use[k]) for run in runs)
    return [[m.times_ns[k], m.bytes_in_use[k]] for k in peaks]


def _inputs(a: Attribution) -> dict[str, Json]:
    log = _source(a.inputs.log)
    if isinstance(log, dict):
        log["run"] = a.inputs.log_run
    return {"trace": _source(a.inputs.trace), "log": log, "counters": _source(a.inputs.counters)}


def _source(info: SourceInfo | None) -> dict[str, Json] | None:
    if info is None:
        return None
    return {"kind": info.kind, "version": info.version, "sha256": info.sha256, "schema_version": info.schema_version}


def _nested(details: Mapping[str, Mapping[str, int]]) -> dict[str, Json]:
    return {category: dict(parts) for category, parts in details.items()}


def _number(value: float | None) -> float | None:
    """Nine digits after the point are more than any clock gives, and hide no sum's last bit; NaN is not measured."""
    return None if value is None or not math.isfinite(value) else round(value, 9)
