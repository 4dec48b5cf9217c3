"""``compare -f markdown``: a comment for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from nvprof_tools.files.safe_text import markdown
from nvprof_tools.model.comparison import Comparison
from nvprof_tools.report import compare_words as words
from nvprof_tools.report.words import SEVERITY_WORDS


def render(c: Comparison, out: BinaryIO) -> None:
    """Write the document, UTF-8."""
    out.write(("\n".join(_lines(c)) + "\n").encode("utf-8", "replace"))


def _lines(c: Comparison) -> Iterator[str]:
    scale = words.Scale.of(c)
    yield f"**{markdown(words.finding(c))}**"
    yield ""
    for item in c.quality:
        yield markdown(f"- {SEVERITY_WORDS[item.severity.value]} ({item.slug}): {item.message}")
    for note in words.notes(c):
        yield f"- {markdown(note)}"
    for sentence in words.sentences(c):
        yield f"- {markdown(sentence)}"
    yield ""
    yield from _table(words.heads(scale), words.rows(c), words.SIDES)
    yield ""
    small = words.untested(c)
    if small is not None:
        yield markdown(small)
        yield ""
    for title, rows, unit in (
        ("Utilisation ladder", words.ladder_rows(c), ""),
        ("Cold partitions, apart", words.cold_rows(c), scale.unit),
        ("Device view and queue", words.device_rows(c), scale.unit),
        ("Runs", [(words.describe(run), "", "", "") for run in (*c.sides[0], *c.sides[1])], ""),
    ):
        if rows:
            yield f"<details><summary>{title}</summary>"
            yield ""
            yield from _table(words.pair_heads(unit), rows, "lrrr")
            yield ""
            yield "</details>"
            yield ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "|".join("---:" if side == "r" else "---" for side in sides) + "|"
    for row in rows:
        yield "| " + " | ".join(markdown(cell) for cell in row) + " |"
