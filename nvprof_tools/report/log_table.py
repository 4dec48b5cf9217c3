"""``log -f table``: 100 columns, plain on a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nvprof_tools.files.safe_text import shorten, terminal
from nvprof_tools.model.log_summary import LogSummary
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.report import log_words as words
from nvprof_tools.report.words import SEVERITY_WORDS, plural

WIDTH = 100
_JOB_WIDTHS = (18, 5, 9, 9, 9, 11, 8, 7, 8, 5)
_COLOURS = {Severity.ERROR: "bold red", Severity.DATA_LOSS: "bold red", Severity.NOTICE: "yellow"}


class LogTable:
    """The console table. ``colour`` only for a terminal."""

    def __init__(self, colour: bool = False) -> None:
        self._colour = colour

    def render(self, summary: LogSummary, out: BinaryIO) -> None:
        """Write the table, UTF-8; lines have no trailing spaces."""
        buffer = io.StringIO()
        console = Console(
            file=buffer,
            width=WIDTH,
            force_terminal=self._colour,
            color_system="standard" if self._colour else None,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )
        _write(console, summary)
        lines = (line.rstrip() for line in buffer.getvalue().split("\n"))
        out.write("\n".join(lines).encode("utf-8", "replace"))


def _write(console: Console, s: LogSummary) -> None:
    console.print(_text(words.finding(s), "bold"))
    grave = [item for item in s.quality if item.severity in {Severity.ERROR, Severity.DATA_LOSS}]
    _quality(console, grave)
    console.print(_text(words.facts(s), "dim"))
    console.print()
    _table(console, words.totals_titles(s), words.totals_rows(s), (60, 14, 14))
    console.print()
    _table(console, words.JOB_TITLES, words.job_rows(s), _JOB_WIDTHS)
    if len(s.jobs) > words.JOBS_SHOWN:
        console.print(_text(f"{plural(len(s.jobs) - words.JOBS_SHOWN, 'job')} more: see -f json or csv", "dim"))
    for row in words.device_rows(s):
        console.print(_text("  ".join(row)))
    if s.timings:
        console.print()
        _table(console, words.TIMING_TITLES, words.timing_rows(s), (48, 10, 14, 12))
    others = list(words.other_events(s))
    if others:
        console.print()
        _table(console, ("other event", "count", "meaning"), others, (30, 10, 56), left=(0, 2))
    console.print()
    console.print(_text(words.CAUTION, "dim"))
    _quality(console, [item for item in s.quality if item not in grave])


def _table(
    console: Console,
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    widths: Sequence[int],
    left: Sequence[int] = (),
) -> None:
    """Fixed widths, so that no line ever wraps; a text that does not fit is shortened in the middle."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for place, (title, width) in enumerate(zip(titles, widths, strict=False)):
        words_left = place in left or place == 0 or title in {"cause", ""}
        table.add_column(Text(title), width=width, no_wrap=True, justify="left" if words_left else "right")
    for row in rows:
        table.add_row(*(_cell(value, width) for value, width in zip(row, widths, strict=False)))
    console.print(table)


def _cell(value: str, width: int) -> Text:
    text = shorten(terminal(value), width)
    while cell_len(text) > width:
        text = text[:-1]
    return Text(text)


def _quality(console: Console, items: Sequence[QualityItem]) -> None:
    for item in items:
        times = "" if item.count == 1 else f" x{item.count:,}"
        line = f"{SEVERITY_WORDS[item.severity.value]} [{item.slug}]{times}: {item.message}"
        console.print(_text(line, _COLOURS.get(item.severity, "dim")))
        if item.hint:
            console.print(_text(f"  hint: {item.hint}", "dim"))


def _text(value: str, style: str = "") -> Text:
    return Text(terminal(value), style=style)
