"""What the page's timeline is drawn from: lanes in levels of detail, curves, and the tables they index."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.files.safe_text import shorten, terminal
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.report.base import Report
from nvprof_tools.report.columns import floats, integers, words
from nvprof_tools.report.detail import encode, levels, within
from nvprof_tools.report.timeline import Timeline, build

BUDGET = 240_000
"""Intervals in all lanes together: what keeps the page under 5 MB."""
POINTS = 4_000
"""Points a curve, each the mean of those it stands for."""
NAME_LENGTH = 160

CURVES = (
    ("SMs Active", "#0072b2"),
    ("SM Issue", "#e69f00"),
    ("DRAM Read", "#009e73"),
    ("DRAM Write", "#cc79a7"),
    ("PCIe RX", "#56b4e9"),
)
"""Metric name begins with … → colour."""

Ints = npt.NDArray[np.int64]


def payload(report: Report) -> dict[str, Any]:
    """Plain data for the page's script. Times are ns since ``origin`` (a string: it may pass what a double holds)."""
    a = report.attribution
    t = build(a, report.trace)
    wall = t.end_ns - t.start_ns
    return {
        "origin": str(t.start_ns),
        "wall": wall,
        "window": [a.window.start_ns - t.start_ns, a.window.end_ns - t.start_ns],
        "names": [short(n) for n in t.names.values],
        "classes": [[short(label), colour] for label, colour in t.classes],
        "lanes": _lanes(t, wall),
        "curves": _curves(report, t),
    }


def short(name: str) -> str:
    """A name as the page shows it: printable, one line, not endless."""
    return shorten(terminal(name), NAME_LENGTH)


def _lanes(t: Timeline, wall: int) -> list[dict[str, Any]]:
    total = sum(len(lane.events) for lane in t.lanes)
    out = []
    for lane in t.lanes:
        share = len(lane.events) if total <= BUDGET else max(BUDGET * len(lane.events) // total, 200)
        kept = within(lane.events, share)
        made = levels(kept, wall)
        out.append(
            {
                "group": lane.group,
                "label": short(lane.label),
                "evidence": short(lane.evidence),
                "events": len(lane.events),
                "levels": [
                    {"res": step, "n": len(events), "whole": whole, "data": encode(events, t.start_ns, whole)}
                    for step, events in made
                    for whole in [bool((events.count == 1).all())]
                ],
            }
        )
    return out


def _curves(report: Report, t: Timeline) -> list[dict[str, Any]]:
    out = []
    if report.trace is not None:
        out += _samples(report.trace["gpu_metrics"], t)
    out += _memory(report.attribution, t) + _queue(report.attribution, t)
    return out


def _samples(table: pa.Table, t: Timeline) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if not len(table):
        return out
    device, time = integers(table, "device"), integers(table, "time_ns")
    value = floats(table, "value")
    metric, known = words(table, "metric")
    for d in sorted(set(device.tolist()))[:8]:
        series = []
        for prefix, colour in CURVES:
            codes = [i for i, name in enumerate(known) if name.startswith(prefix) and "%" in name]
            pick = (
                (device == d) & np.isin(metric, codes) & (time >= t.start_ns) & (time < t.end_ns) & np.isfinite(value)
            )
            if pick.any():
                x, y = thin(time[pick] - t.start_ns, value[pick])
                series.append({"label": prefix, "colour": colour, "x": x, "y": y})
        if series:
            out.append({"label": f"GPU {d}, % of peak", "unit": "%", "stepped": False, "series": series})
    return out


def thin(x: Ints, y: npt.NDArray[np.float64], points: int = POINTS) -> tuple[list[int], list[float]]:
    """At most ``points`` means of neighbours, in order of time."""
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    step = -(-len(x) // points)
    at = np.arange(0, len(x), step)
    sizes = np.diff(np.append(at, len(x)))
    return x[at].tolist(), [round(v, 1) for v in (np.add.reduceat(y, at) / sizes).tolist()]


def _memory(a: Attribution, t: Timeline) -> list[dict[str, Any]]:
    series = []
    for m, colour in zip(
        (m for m in a.memory if m.times_ns), ("#0072b2", "#e69f00", "#009e73", "#cc79a7") * 4, strict=False
    ):
        times, used = np.array(m.times_ns, np.int64), np.array(m.bytes_in_use, np.float64)
        pick = (times >= t.start_ns) & (times < t.end_ns)
        if pick.any():
            x, y = thin(times[pick] - t.start_ns, used[pick] / 2**20)
            series.append({"label": f"GPU {m.device}", "colour": colour, "x": x, "y": y})
    return [{"label": "device memory, MiB", "unit": "MiB", "stepped": True, "series": series}] if series else []


def _queue(a: Attribution, t: Timeline) -> list[dict[str, Any]]:
    table = a.activities
    if not len(table):
        return []
    kind, known = words(table, "kind")
    out = []
    for label, colour in (("queued", "#e69f00"), ("synthesis", "#cc79a7")):
        if label not in known:
            continue
        pick = kind == known.index(label)
        start, end = integers(table, "start_ns")[pick], integers(table, "end_ns")[pick]
        times = np.concatenate([start, end])
        change = np.concatenate([np.ones(len(start), np.int64), -np.ones(len(end), np.int64)])
        order = np.argsort(times, kind="stable")
        at, last = np.unique(times[order], return_index=True)
        depth = np.add.reduceat(change[order], last).cumsum()
        x, y = thin(np.clip(at, t.start_ns, t.end_ns) - t.start_ns, depth.astype(np.float64))
        out.append({"label": label, "colour": colour, "x": x, "y": y})
    return [{"label": "partitions queued, in synthesis", "unit": "", "stepped": True, "series": out}] if out else []
