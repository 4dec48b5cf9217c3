"""``compare -f json``: a contract (``comparison.schema.json``). Times in whole ns; null: not measured or unbounded."""

from __future__ import annotations

import math
from typing import BinaryIO

from nvprof_tools.model.comparison import Change, Comparison, Pair, RunFacts
from nvprof_tools.report.json_doc import Json, dumps

SCHEMA = "nvprof-tools/comparison/1"


def render(c: Comparison, out: BinaryIO) -> None:
    """Write the document, ASCII."""
    out.write(dumps(document(c)).encode("ascii"))


def document(c: Comparison) -> dict[str, Json]:
    """The whole document as plain data."""
    return {
        "schema": SCHEMA,
        "verdict": c.verdict,
        "size": _number(c.size),
        "grounds": c.grounds,
        "reason": c.reason,
        "unit": c.unit,
        "headline": _change(c.headline),
        "steady": {"a_ns": _whole(c.steady_a_ns), "b_ns": _whole(c.steady_b_ns)},
        "moved": [x.measure for x in c.moved],
        "changes": [_change(x) for x in c.changes],
        "ladder": [_pair(p, "rung") for p in c.ladder],
        "device": [{"category": p.name, "a_ns": _whole(p.a), "b_ns": _whole(p.b)} for p in c.device],
        "sides": {name: [_run(r) for r in side] for name, side in zip(("a", "b"), c.sides, strict=True)},
        "differences": [
            {"aspect": d.aspect, "weight": d.weight, "a": d.a, "b": d.b, "message": d.message} for d in c.differences
        ],
        "statistics": {
            "runs_as_units": c.runs_as_units,
            "assumed_spread": c.assumed_spread,
            "resolve": c.resolve,
            "detectable": _number(c.headline.detectable_fraction),
            "runs_needed": c.runs_needed,
        },
        "quality": [
            {"slug": q.slug, "severity": q.severity.value, "count": q.count, "message": q.message, "hint": q.hint}
            for q in c.quality
        ],
    }


def _change(x: Change) -> dict[str, Json]:
    return {
        "measure": x.measure,
        "level": x.level,
        "a_ns": _whole(x.a_ns),
        "b_ns": _whole(x.b_ns),
        "change_ns": _whole(x.change_ns),
        "low_ns": _whole(x.low_ns),
        "high_ns": _whole(x.high_ns),
        "reference_ns": _whole(x.reference_ns),
        "fraction": _number(x.fraction),
        "own_fraction": _number(x.own_fraction),
        "p_value": _number(x.p_value),
        "p_permutation": _number(x.p_permutation),
        "p_adjusted": _number(x.p_adjusted),
        "detectable_ns": _whole(x.detectable_ns),
        "share_a": _number(x.share_a),
        "share_b": _number(x.share_b),
        "cold_a_ns": _whole(x.cold_a_ns),
        "cold_b_ns": _whole(x.cold_b_ns),
        "tested": x.tested,
        "verdict": x.verdict,
    }


def _pair(p: Pair, key: str) -> dict[str, Json]:
    return {key: p.name, "a": _number(p.a), "b": _number(p.b)}


def _run(r: RunFacts) -> dict[str, Json]:
    return {
        "label": r.label,
        "kind": r.kind,
        "pipeline": r.pipeline,
        "proofs": _number(r.proofs),
        "partitions": r.partitions,
        "cold": r.cold,
        "partitions_per_proof": r.partitions_per_proof,
        "workers": r.workers,
        "devices": list(r.devices),
        "kernels_per_partition": _number(r.kernels_per_partition),
        "upload_bytes_per_partition": _number(r.upload_bytes_per_partition),
        "setup": dict(sorted(r.setup.items())),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None or not math.isfinite(value) else round(value)


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 9)
