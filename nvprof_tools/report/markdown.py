"""Markdown for a pull request: the paragraph, the ladder as text bars, the table, and detail that folds away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from nvprof_tools.files.safe_text import markdown
from nvprof_tools.model.attribution import Attribution, DeviceView
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.report import figures
from nvprof_tools.report.base import Report
from nvprof_tools.report.csv_table import partition_name
from nvprof_tools.report.paragraph import sentences
from nvprof_tools.report.words import (
    BUSY,
    CATEGORY_MEANING,
    MISSING,
    RUNG_MEANING,
    SEVERITY_WORDS,
    count,
    data_size,
    duration,
    ms,
    number,
    percent,
    plural,
)

BAR = 20
ROWS_SHOWN = 40
GAPS_SHOWN = 15


class Markdown:
    """``-f markdown``, ``-o X.md``."""

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write the document, UTF-8."""
        out.write(("\n".join(_document(report.attribution)) + "\n").encode("utf-8", "replace"))


def _document(a: Attribution) -> Iterator[str]:
    first, *rest = sentences(a)
    yield f"**{markdown(first)}**"
    yield ""
    yield from _quality(a)
    if rest:
        yield markdown(" ".join(rest))
        yield ""
    yield markdown(_facts(a))
    yield ""
    yield from _ladder(a)
    yield from _overheads(a)
    for view in a.devices:
        yield from _device(view)
    yield from _details(a)


def _facts(a: Attribution) -> str:
    parts = [f"Window {ms(a.window.wall_ns)} ms (from the {a.window.source})", f"pipeline {a.pipeline}"]
    parts += [
        plural(len(a.devices), "GPU"),
        f"{plural(len(a.partitions), 'partition')} of {plural(len(a.jobs), 'job')}",
    ]
    method = a.clock.method
    doubt = "" if a.clock.uncertainty_ns is None else f" ± {duration(a.clock.uncertainty_ns)}"
    return ", ".join([*parts, f"clock: {method}{doubt}"]) + "."


def _quality(a: Attribution) -> Iterator[str]:
    """What must be known before a figure is trusted; plain information comes last in the document."""
    losses = figures.lost(a)
    if losses:
        yield f"> ⚠️ **Data loss**: {markdown('; '.join(q.message for q in losses))}"
        yield ""
    shown = [q for q in a.quality if q.severity is not Severity.INFO]
    if shown:
        yield from _fold(f"Data quality: {plural(len(shown), 'item')}", _items(shown))


def _items(items: Sequence[QualityItem]) -> Iterator[str]:
    rows = [(SEVERITY_WORDS[q.severity.value], q.slug, count(q.count), q.message, q.hint) for q in items]
    return _table(("", "slug", "count", "message", "hint"), rows, "llrll")


def _ladder(a: Attribution) -> Iterator[str]:
    if not a.ladder:
        return
    yield "### Utilisation ladder"
    yield ""
    for device, rungs in figures.by_device(a.ladder).items():
        if device is not None and len(a.devices) > 1:
            yield f"GPU {device}:"
            yield ""
        rows = []
        for rung in rungs:
            if rung.fraction is None:
                continue
            drop = figures.largest_first(rung.drop)
            listed = ", ".join(f"{name} {ms(length)}" for name, length in drop[:5]) + (", …" if len(drop) > 5 else "")
            busy = "sampled" if figures.sampled(rung) else ms(rung.busy_ns)
            meaning = RUNG_MEANING.get(rung.rung, "")
            rows.append((rung.rung, percent(rung.fraction), busy, _bar(rung.fraction), meaning, listed, rung.evidence))
        if rows:
            heads = ("rung", "share", "ms", "", "meaning", "lost since the rung above, ms", "evidence")
            yield from _table(heads, rows, "lrrllll")
            yield ""
        missing = [r.rung for r in rungs if r.fraction is None]
        if missing:
            yield markdown(f"not measured: {', '.join(missing)}")
            yield ""


def _bar(fraction: float) -> str:
    full = round(min(max(fraction, 0.0), 1.0) * BAR)
    return "█" * full + "░" * (BAR - full)


def _overheads(a: Attribution) -> Iterator[str]:
    if not a.overheads:
        return
    yield f"### Overheads in {plural(len(figures.inside(a)), 'section')}, {ms(figures.sections_ns(a))} ms"
    yield ""
    rows = []
    for o in figures.overhead_rows(a):
        blockers = ", ".join(f"{name} {ms(length)}" for name, length in figures.largest_first(o.blockers))
        idle = MISSING if o.category in BUSY else ms(o.device_idle_ns)
        spread = (duration(o.mean_ns), duration(o.p50_ns), duration(o.p95_ns), duration(o.max_ns))
        share = percent(o.section_fraction)
        locked = ms(o.driver_lock_ns)
        rows.append((o.category, count(o.calls), ms(o.total_ns), share, *spread, idle, locked, blockers, o.evidence))
    heads = (
        "category",
        "calls",
        "total ms",
        "share",
        "mean",
        "p50",
        "p95",
        "max",
        "device idle ms",
        "driver lock ms",
        "while",
        "evidence",
    )
    yield from _table(heads, rows, "lrrrrrrrrrll")
    yield ""


def _device(view: DeviceView) -> Iterator[str]:
    name = "" if view.name is None else f" ({view.name})"
    yield markdown(f"### Device {view.device}{name}: where {ms(view.wall_ns)} ms went")
    yield ""
    rows = []
    for category, length in figures.largest_first(view.categories):
        parts = figures.largest_first(view.details.get(category, {}))
        detail = ", ".join(f"{key} {ms(value)}" for key, value in parts[:6])
        share = length / view.wall_ns
        rows.append((category, percent(share), ms(length), _bar(share), CATEGORY_MEANING.get(category, ""), detail))
    yield from _table(("category", "share", "ms", "", "meaning", "of which, ms"), rows, "lrrlll")
    yield ""


def _details(a: Attribution) -> Iterator[str]:
    if a.partitions:
        yield from _fold(f"Partitions ({len(a.partitions)})", _cut(_partitions(a), len(a.partitions)))
    if a.jobs:
        yield from _fold(f"Jobs ({len(a.jobs)})", _cut(_jobs(a), len(a.jobs)))
    if a.latency:
        latency = [
            (x.stage, count(x.launches), duration(x.p50_ns), duration(x.p95_ns), duration(x.max_ns)) for x in a.latency
        ]
        yield from _fold(
            "Launch latency by stage", _table(("stage", "launches", "p50", "p95", "max"), latency, "lrrrr")
        )
    if a.counters:
        yield from _fold("Kernel counters (ncu), % of peak", _counters(a))
    if a.gaps:
        yield from _fold("Longest gaps", _gaps(a))
    known = [m for m in a.memory if m.peak_bytes is not None]
    if known:
        peaks = ", ".join(f"device {m.device} {data_size(m.peak_bytes)}" for m in known)
        yield f"Peak device memory: {markdown(peaks)}."
        yield ""
    infos = [q for q in a.quality if q.severity is Severity.INFO]
    if infos:
        yield from _fold(f"{plural(len(infos), 'item')} of plain information", _items(infos))


def _partitions(a: Attribution) -> Iterator[str]:
    rows = []
    for p in a.partitions[:ROWS_SHOWN]:
        wall = "outside the capture" if p.wall_ns is None else ms(p.wall_ns)
        most = ", ".join(f"{k} {ms(v)}" for k, v in figures.largest_first(p.categories)[:5])
        rows.append((partition_name(p), count(p.worker), count(p.device), wall, most, "open" if p.open else ""))
    return _table(("partition", "worker", "device", "ms", "most of it", ""), rows, "lrrrll")


def _jobs(a: Attribution) -> Iterator[str]:
    rows = []
    for j in a.jobs[:ROWS_SHOWN]:
        spans = (j.wall_ns, j.synthesis_ns, j.queue_ns, j.gpu_ns, j.slack_ns)
        rows.append((j.job or "?", count(j.partitions), *(ms(span) for span in spans), "cold" if j.cold else ""))
    heads = ("job", "partitions", "wall ms", "synthesis ms", "queue ms", "GPU ms", "slack ms", "")
    return _table(heads, rows, "lrrrrrrl")


def _counters(a: Attribution) -> Iterator[str]:
    rows = []
    for k in a.counters[:ROWS_SHOWN]:
        shares = (k.sm_throughput_pct, k.dram_throughput_pct, k.occupancy_pct)
        cells = (count(k.launches), ms(k.total_ns), *(number(share) for share in shares))
        rows.append((k.kernel or "(whole stage)", k.stage, *cells, k.bound or MISSING, count(k.matched_launches)))
    heads = ("kernel", "stage", "launches", "total ms", "SM %", "DRAM %", "occupancy %", "bound", "matched")
    return _table(heads, rows, "llrrrrrlr")


def _gaps(a: Attribution) -> Iterator[str]:
    rows = []
    for g in sorted(a.gaps, key=lambda g: (g.start_ns - g.end_ns, g.device, g.start_ns))[:GAPS_SHOWN]:
        at, length = ms(g.start_ns - a.window.start_ns), duration(g.end_ns - g.start_ns)
        rows.append((str(g.device), at, length, g.category, g.before or "", g.after or ""))
    return _table(("device", "at ms", "length", "cause", "after", "before"), rows, "rrrlll")


def _cut(table: Iterable[str], total: int) -> Iterator[str]:
    yield from table
    if total > ROWS_SHOWN:
        yield ""
        yield f"{total - ROWS_SHOWN} more: see the JSON."


def _fold(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{markdown(title)}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"
    yield ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], sides: str) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "|".join("---:" if side == "r" else "---" for side in sides) + "|"
    for row in rows:
        yield "| " + " | ".join(markdown(cell) for cell in row) + " |"
