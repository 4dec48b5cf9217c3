"""What the HTML page shows outside the timeline, as plain data for the template; the template escapes every string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nvprof_tools.model.attribution import Attribution, DeviceView, PartitionView, Rung
from nvprof_tools.model.quality import Severity
from nvprof_tools.report import figures
from nvprof_tools.report.paragraph import sentences
from nvprof_tools.report.timeline import work_name
from nvprof_tools.report.words import BUSY, CATEGORY_MEANING, RUNG_MEANING, SEVERITY_WORDS, percent

PARTITIONS_SHOWN = 60
GAPS_SHOWN = 50
ROWS_SHOWN = 200

Row = dict[str, Any]


def view(a: Attribution) -> dict[str, Any]:
    """Everything the template names."""
    first, *rest = sentences(a)
    severe = figures.lost(a)
    order = {Severity.ERROR: 0, Severity.DATA_LOSS: 0, Severity.NOTICE: 1, Severity.INFO: 2}
    return {
        "finding": first,
        "paragraph": " ".join(rest),
        "a": a,
        "quality": [
            {"word": SEVERITY_WORDS[q.severity.value], "grade": order[q.severity], "item": q}
            for q in a.quality
            if q.severity is not Severity.INFO
        ],
        "infos": [q for q in a.quality if q.severity is Severity.INFO],
        "has_loss": bool(severe),
        "ladders": [
            {
                "device": device,
                "rows": [_rung(r, a.window.wall_ns) for r in rungs if r.fraction is not None],
                "missing": [r.rung for r in rungs if r.fraction is None],
            }
            for device, rungs in figures.by_device(a.ladder).items()
        ],
        "overheads": [
            {
                "o": o,
                "idle": None if o.category in BUSY else o.device_idle_ns,
                "blockers": figures.largest_first(o.blockers),
            }
            for o in figures.overhead_rows(a)
        ],
        "sections": len(figures.inside(a)),
        "sections_ns": figures.sections_ns(a),
        "devices": [_device(d) for d in a.devices],
        "partitions": [_partition(p, a) for p in a.partitions[:PARTITIONS_SHOWN]],
        "partitions_left": max(len(a.partitions) - PARTITIONS_SHOWN, 0),
        "gaps": [
            {"g": g, "length": g.end_ns - g.start_ns, "at": g.start_ns - a.window.start_ns}
            for g in sorted(a.gaps, key=lambda g: (g.start_ns - g.end_ns, g.device, g.start_ns))[:GAPS_SHOWN]
        ],
        "counters": sorted(a.counters, key=lambda k: (-k.total_ns, k.kernel or "", k.stage))[:ROWS_SHOWN],
        "jobs": a.jobs[:ROWS_SHOWN],
        "latency": a.latency[:ROWS_SHOWN],
        "memory": [m for m in a.memory if m.peak_bytes is not None],
        "meanings": CATEGORY_MEANING,
    }


def _segments(parts: list[tuple[str, int]], wall: int, at: float = 0.0) -> list[Row]:
    """Stacked pieces of a bar 1000 wide."""
    out = []
    for name, length in parts:
        width = 1000 * length / wall if wall else 0.0
        out.append(
            {
                "name": name,
                "ns": length,
                "x": round(at, 3),
                "width": round(width, 3),
                "share": percent(length / wall) if wall else "",
            }
        )
        at += width
    return out


def _rung(rung: Rung, wall: int) -> Row:
    fraction = rung.fraction
    full = 0.0 if fraction is None else round(1000 * min(max(fraction, 0.0), 1.0), 3)
    drop = figures.largest_first(rung.drop)
    return {
        "r": rung,
        "meaning": RUNG_MEANING.get(rung.rung, ""),
        "sampled": figures.sampled(rung),
        "full": full,
        "steps": _segments(drop, wall, full) if fraction is not None else [],
        "drop": drop,
        "lost": sum(length for _, length in drop),
    }


def _device(d: DeviceView) -> Row:
    rows = []
    for category, length in figures.largest_first(d.categories):
        parts = figures.largest_first(d.details.get(category, {}))
        share = length / d.wall_ns
        rows.append(
            {
                "category": category,
                "ns": length,
                "share": share,
                "width": round(1000 * share, 3),
                "parts": parts,
                "meaning": CATEGORY_MEANING.get(category, ""),
            }
        )
    names = list(dict.fromkeys(m for means in d.metrics.values() for m in means))
    return {
        "d": d,
        "rows": rows,
        "stages": figures.largest_first(d.stages),
        "metric_names": names,
        "metrics": _metrics(d.metrics, names),
    }


def _metrics(metrics: Mapping[str, Mapping[str, float]], names: list[str]) -> list[Row]:
    return [{"what": what, "values": [means.get(name) for name in names]} for what, means in metrics.items()]


def _partition(p: PartitionView, a: Attribution) -> Row:
    longest = max((q.wall_ns or 0 for q in a.partitions), default=0)
    parts = figures.largest_first(p.categories)
    return {"p": p, "name": work_name(p.job, p.partition), "steps": _segments(parts, longest), "top": parts[:3]}
