"""``log -f json``: the contract. Keys are stable in order; ``log.schema.json`` describes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from nvprof_tools.model.log_summary import SUMMARY_PARTITION_SCHEMA, LogJob, LogSummary, LogTotals

SCHEMA = "nvprof-tools/log/1"


class LogJson:
    """The JSON document: ASCII, one line a job and a partition."""

    def render(self, summary: LogSummary, out: BinaryIO) -> None:
        """Write the document."""
        out.write("".join(_lines(summary)).encode("ascii"))


def document(s: LogSummary) -> dict[str, Any]:
    """The same as plain data."""
    return {
        **_head(s),
        "jobs": [_job(job) for job in s.jobs],
        "partitions": s.partitions.select(SUMMARY_PARTITION_SCHEMA.names).to_pylist(),
        **_tail(s),
    }


def _lines(s: LogSummary) -> Iterator[str]:
    """Long lists one item a line: readable, and quick for a hundred thousand partitions."""
    yield "{\n"
    for key, value in _head(s).items():
        yield f'  "{key}": {_indented(value)},\n'
    yield from _list("jobs", (_job(job) for job in s.jobs))
    yield from _list("partitions", s.partitions.to_pylist())
    tail = _tail(s)
    for place, (key, value) in enumerate(tail.items(), 1):
        yield f'  "{key}": {_indented(value)}{"," if place < len(tail) else ""}\n'
    yield "}\n"


def _list(name: str, items: Iterable[dict[str, Any]]) -> Iterator[str]:
    rows = ",\n    ".join(_dumps(item) for item in items)
    yield f'  "{name}": [\n    {rows}\n  ],\n' if rows else f'  "{name}": [],\n'


def _head(s: LogSummary) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "runs": s.runs,
        "run": s.run,
        "pipeline": s.pipeline,
        "anchor_utc_ns": s.anchor_utc_ns,
        "summary": {**_totals(s.totals), "steady": None if s.steady is None else _totals(s.steady)},
    }


def _tail(s: LogSummary) -> dict[str, Any]:
    return {
        "devices": [
            {
                "device": d.device,
                "workers": list(d.workers),
                "partitions": d.partitions,
                "gpu_sum_ms": d.gpu_sum_ms,
                "gpu_union_ms": d.gpu_union_ms,
                "utilisation_union": _number(d.utilisation_union),
            }
            for d in s.devices
        ],
        "timing": {
            name: {"count": lines, "sum": total, "mean": _number(total / lines)}
            for name, (lines, total) in s.timings.items()
        },
        "unknown_events": dict(s.unknown_events),
        "extra_events": {
            name: {"count": times, "meaning": meaning} for name, (times, meaning) in s.extra_events.items()
        },
        "quality": [
            {"slug": q.slug, "severity": q.severity.value, "count": q.count, "message": q.message, "hint": q.hint}
            for q in s.quality
        ],
    }


def _totals(t: LogTotals) -> dict[str, Any]:
    return {
        "wall_ms": t.wall_ms,
        "first_synth_to_last_gpu_ms": t.first_synth_to_last_gpu_ms,
        "jobs": t.jobs,
        "open_jobs": t.open_jobs,
        "partitions": t.partitions,
        "open_partitions": t.open_partitions,
        "synth_sum_ms": t.synth_sum_ms,
        "gpu_sum_ms": t.gpu_sum_ms,
        "gpu_union_ms": t.gpu_union_ms,
        "utilisation_sum": _number(t.utilisation_sum),
        "utilisation_union": _number(t.utilisation_union),
        "utilisation_busy_idle": _number(t.utilisation_busy_idle),
        "idle_ms": t.idle_ms,
        "idle_causes": dict(t.idle_causes),
        "idle_per_partition_ms": _number(t.idle_per_partition_ms),
        "mean_synth_ms": _number(t.mean_synth_ms),
        "mean_gpu_ms": _number(t.mean_gpu_ms),
        "mean_gap_ms": _number(t.mean_gap_ms),
        "seconds_per_proof": _number(t.seconds_per_proof),
        "proofs_per_minute": _number(t.proofs_per_minute),
        "seconds_between_proofs": _number(t.seconds_between_proofs),
    }


def _job(job: LogJob) -> dict[str, Any]:
    return {
        "job": job.job,
        "partitions": job.partitions,
        "synth_ms": job.synth_ms,
        "queue_ms": job.queue_ms,
        "gpu_ms": job.gpu_ms,
        "wall_ms": job.wall_ms,
        "slack_ms": job.slack_ms,
        "idle_before_ms": job.idle_before_ms,
        "idle_cause": job.idle_cause,
        "idle_inside_ms": job.idle_inside_ms,
        "cold": job.cold,
        "open": job.open,
    }


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False).replace("\n", "\n  ").replace("\x7f", "\\u007f")


def _dumps(value: Any) -> str:
    return json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f")


def _number(value: float | None) -> float | None:
    return None if value is None else round(value, 9)
