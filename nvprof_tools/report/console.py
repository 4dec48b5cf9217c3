"""The table people paste into an issue: finding, loss, ladder, overheads, devices; 100 columns, ASCII unless told."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from nvprof_tools.files.safe_text import terminal
from nvprof_tools.model.attribution import Attribution, DeviceView, KernelCounters, Overhead, Rung
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.report import figures
from nvprof_tools.report.base import Report
from nvprof_tools.report.paragraph import finding
from nvprof_tools.report.words import (
    BUSY,
    CATEGORY_MEANING,
    MISSING,
    PINNING,
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

BAR = 24
DEVICES_SHOWN = 16
ITEMS_SHOWN = 12
_COLOURS = {"error": "bold red", "data-loss": "bold red", "notice": "yellow", "info": "dim"}


@dataclass(frozen=True)
class Style:
    """``colour`` and ``blocks`` (Unicode bars) are for a terminal that can show them; neither is the plain default."""

    width: int = 100
    colour: bool = False
    blocks: bool = False


class ConsoleTable:
    """``-f table``."""

    def __init__(self, style: Style | None = None) -> None:
        self._style = style or Style()

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write the table, UTF-8; without ``blocks`` every byte is ASCII but for what names themselves hold."""
        style = self._style
        buffer = io.StringIO()
        console = Console(
            file=buffer,
            width=style.width,
            force_terminal=style.colour,
            color_system="standard" if style.colour else None,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )
        _write(console, report.attribution, style)
        lines = (line.rstrip() for line in buffer.getvalue().split("\n"))
        out.write("\n".join(lines).encode("utf-8", "replace"))


def _write(console: Console, a: Attribution, style: Style) -> None:
    console.print(_text(finding(a), "bold"))
    _quality(console, figures.lost(a))
    console.print(_text(_facts(a), "dim"))
    if a.ladder:
        console.print()
        console.print(_text("Utilisation ladder", "bold"))
        for device, rungs in figures.by_device(a.ladder).items():
            if device is not None and len(a.devices) > 1:
                console.print(_text(f"device {device}", "italic"))
            _lines(console, _ladder(rungs, style))
    if a.overheads:
        total = figures.sections_ns(a)
        console.print()
        console.print(_text(f"Overheads in {plural(len(figures.inside(a)), 'section')}, {ms(total)} ms", "bold"))
        _lines(console, _overheads(figures.overhead_rows(a), style))
    for view in a.devices[:DEVICES_SHOWN]:
        console.print()
        name = "" if view.name is None else f" ({view.name})"
        console.print(_text(f"Device {view.device}{name}: where {ms(view.wall_ns)} ms went", "bold"))
        _lines(console, _device(view, style))
    if len(a.devices) > DEVICES_SHOWN:
        console.print(_text(f"{len(a.devices) - DEVICES_SHOWN} more devices: see -f json", "dim"))
    if a.counters:
        console.print()
        console.print(_text("Kernel counters (ncu), % of peak", "bold"))
        _lines(console, _counters(a.counters))
    _memory(console, a)
    notices = [q for q in a.quality if q.severity is Severity.NOTICE]
    infos = sum(q.severity is Severity.INFO for q in a.quality)
    if notices or infos:
        console.print()
        _quality(console, notices)
    if infos:
        console.print(_text(f"{plural(infos, 'item')} of plain information: see -f json", "dim"))


def _lines(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line)


def _text(value: str, style: str = "") -> Text:
    return Text(terminal(value), style=style)


def _facts(a: Attribution) -> str:
    parts = [f"window {ms(a.window.wall_ns)} ms ({a.window.source})", f"pipeline {a.pipeline}"]
    parts.append(plural(len(a.devices), "GPU"))
    if a.partitions:
        parts.append(f"{plural(len(a.partitions), 'partition')} of {plural(len(a.jobs), 'job')}")
    doubt = "" if a.clock.uncertainty_ns is None else f" +-{duration(a.clock.uncertainty_ns)}"
    return "; ".join([*parts, f"clock {a.clock.method}{doubt}"])


def _quality(console: Console, items: Sequence[QualityItem]) -> None:
    for item in items[:ITEMS_SHOWN]:
        word = SEVERITY_WORDS[item.severity.value]
        times = "" if item.count == 1 else f" x{item.count:,}"
        console.print(_text(f"{word} [{item.slug}]{times}: {item.message}", _COLOURS[item.severity.value]))
        if item.hint:
            console.print(Padding(_text(f"hint: {item.hint}", "dim"), (0, 0, 0, 2)))
    if len(items) > ITEMS_SHOWN:
        console.print(_text(f"{len(items) - ITEMS_SHOWN} more: see -f json", "dim"))


Cell: TypeAlias = tuple[str, int, str]
"""Text, width (negative: right-aligned), style."""


def _row(*cells: Cell) -> Text:
    """Cells side by side, a space between; what does not fit is cut, so no line ever wraps."""
    line = Text()
    for i, (value, width, style) in enumerate(cells):
        shown = terminal(value)
        if cell_len(shown) > abs(width):
            shown = set_cell_size(shown, abs(width) - 2) + ".."
        text = Text(shown, style=style)
        text.align("right" if width < 0 else "left", abs(width))
        line.append(" " if i else "")
        line.append_text(text)
    return line


def _bar(fraction: float, style: Style) -> str:
    share = min(max(fraction, 0.0), 1.0)
    if not style.blocks:
        full = round(share * BAR)
        return "#" * full + "." * (BAR - full)
    eighths = round(share * BAR * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")


def _ladder(rungs: Iterable[Rung], style: Style) -> Iterator[Text]:
    missing = []
    for rung in rungs:
        if rung.fraction is None:
            missing.append(rung.rung)
            continue
        drop = figures.largest_first(rung.drop)
        if drop:
            listed = ", ".join(f"{name} {ms(length)}" for name, length in drop[:4])
            more = f", {len(drop) - 4} more" if len(drop) > 4 else ""
            total = "-" + ms(sum(length for _, length in drop))
            yield _row(("", 16, ""), ("", 8, ""), (total, -9, "red"), (" " + listed + more, style.width - 37, "dim"))
        sampled = figures.sampled(rung)
        yield _row(
            (rung.rung, 16, ""),
            (percent(rung.fraction), -8, "bold"),
            ("sampled" if sampled else ms(rung.busy_ns), -9, "dim" if sampled else ""),
            (" " + _bar(rung.fraction, style), BAR + 2, "blue" if sampled else "cyan"),
            (RUNG_MEANING.get(rung.rung, ""), style.width - BAR - 40, "dim"),
        )
    if missing:
        yield _text("not measured: " + ", ".join(missing), "dim")


def _overheads(rows: Sequence[Overhead], style: Style) -> Iterator[Text]:
    widths = (15, -6, -8, -7, -7, -7, -7, -7)
    titles = ("category", "calls", "total ms", "share", "p50", "p95", "max", "idle ms")
    last = style.width - 73
    yield _row(*((t, w, "dim") for t, w in zip(titles, widths, strict=True)), (" driver lock ms (while)", last, "dim"))
    for o in rows:
        work = o.category in BUSY
        values = (
            o.category,
            count(o.calls),
            ms(o.total_ns),
            percent(o.section_fraction),
            duration(o.p50_ns),
            duration(o.p95_ns),
            duration(o.max_ns),
            MISSING if work else ms(o.device_idle_ns),
        )
        cells = ((v, w, "dim" if work else "") for v, w in zip(values, widths, strict=True))
        yield _row(*cells, (" " + _lock(o), last, ""))


def _lock(o: Overhead) -> str:
    if o.driver_lock_ns is None:
        return MISSING
    who: dict[str, int] = {}
    for name, length in o.blockers.items():
        known = "pinning" if name in PINNING else name
        who[known] = who.get(known, 0) + length
    top = figures.largest_first(who)
    return ms(o.driver_lock_ns) + (f" ({top[0][0]} {ms(top[0][1])})" if top else "")


def _device(view: DeviceView, style: Style) -> Iterator[Text]:
    for category, length in figures.largest_first(view.categories):
        share = length / view.wall_ns
        parts = figures.largest_first(view.details.get(category, {}))
        note = ", ".join(f"{name} {ms(v)}" for name, v in parts[:3]) or CATEGORY_MEANING.get(category, "")
        yield _row(
            (category, 16, ""),
            (percent(share), -8, "bold"),
            (ms(length), -9, ""),
            (" " + _bar(share, style), BAR + 2, "green" if category in BUSY else "yellow"),
            (note, style.width - BAR - 40, "dim"),
        )


def _counters(rows: Sequence[KernelCounters]) -> Iterator[Text]:
    widths = (28, 12, -8, -9, -6, -6, -6, 9)
    titles = ("kernel", "stage", "launches", "total ms", "SM", "DRAM", "occ.", " bound")
    yield _row(*((t, w, "dim") for t, w in zip(titles, widths, strict=True)))
    for k in sorted(rows, key=lambda k: (-k.total_ns, k.kernel or "", k.stage))[:ITEMS_SHOWN]:
        values = (
            k.kernel or "(whole stage)",
            k.stage,
            count(k.launches),
            ms(k.total_ns),
            number(k.sm_throughput_pct),
            number(k.dram_throughput_pct),
            number(k.occupancy_pct),
            " " + (k.bound or MISSING),
        )
        yield _row(*((v, w, "") for v, w in zip(values, widths, strict=True)))


def _memory(console: Console, a: Attribution) -> None:
    known = [m for m in a.memory if m.peak_bytes is not None]
    if known:
        console.print()
        peaks = "; ".join(f"device {m.device}: {data_size(m.peak_bytes)}" for m in known[:DEVICES_SHOWN])
        console.print(_text(f"Peak device memory: {peaks}"))
