"""``compare -f table``: the finding first, then what it rests on; plain text of fixed columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from nvprof_tools.files.safe_text import terminal
from nvprof_tools.model.comparison import Comparison
from nvprof_tools.report import compare_words as words
from nvprof_tools.report.words import SEVERITY_WORDS


def render(c: Comparison, out: BinaryIO) -> None:
    """Write the table, UTF-8."""
    out.write(("\n".join(line.rstrip() for line in _lines(c)) + "\n").encode("utf-8", "replace"))


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """Rows under heads, each column as wide as its widest cell; ``sides`` holds ``l`` or ``r`` a column."""
    table = [[terminal(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    for row in table:
        cells = zip(row, widths, sides, strict=True)
        yield "  ".join(cell.rjust(width) if side == "r" else cell.ljust(width) for cell, width, side in cells)


def _lines(c: Comparison) -> Iterator[str]:
    scale = words.Scale.of(c)
    yield terminal(words.finding(c))
    for item in c.quality:
        yield terminal(f"{SEVERITY_WORDS[item.severity.value]} [{item.slug}]: {item.message}")
    for note in words.notes(c):
        yield terminal(note)
    for sentence in words.sentences(c):
        yield terminal(sentence)
    yield ""
    for run in (*c.sides[0], *c.sides[1]):
        yield terminal(words.describe(run))
    yield ""
    yield from columns(words.heads(scale), words.rows(c), words.SIDES)
    yield "(change, interval, detectable: of the sections for a part of them, else of the measure itself)"
    small = words.untested(c)
    if small is not None:
        yield small
    for title, rows, unit in (
        ("Cold partitions, apart, not tested", words.cold_rows(c), scale.unit),
        ("Utilisation ladder", words.ladder_rows(c), ""),
        ("Device view and queue, not tested", words.device_rows(c), scale.unit),
    ):
        if rows:
            yield ""
            yield title
            yield from columns(words.pair_heads(unit), rows, "lrrr")
