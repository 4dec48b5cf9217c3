"""Table, Markdown and CSV: what they show, and that no name of a trace acts on terminal, page or spreadsheet."""

from __future__ import annotations

import csv
import io
import unicodedata
from functools import cache

import attribution_samples as samples
import pytest
from markdown_it import MarkdownIt

from nvprof_tools.model.attribution import Attribution
from nvprof_tools.report.base import Report
from nvprof_tools.report.console import ConsoleTable, Style
from nvprof_tools.report.csv_table import HEADER, CsvTable
from nvprof_tools.report.markdown import Markdown


def text_of(renderer: ConsoleTable | CsvTable | Markdown, a: Attribution) -> str:
    out = io.BytesIO()
    renderer.render(Report(a), out)
    return out.getvalue().decode("utf-8")


def test_the_table_fits_100_columns_and_is_ascii() -> None:
    text = text_of(ConsoleTable(), samples.rich())
    assert text.isascii()
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "launch           1,798     81.1   4.0 %" in text
    assert "71.7 (pinning 66.2)" in text
    assert "not measured: nvml_utilisation" in text


def test_a_terminal_gets_colour_and_blocks() -> None:
    text = text_of(ConsoleTable(Style(120, colour=True, blocks=True)), samples.rich())
    assert "\x1b[" in text
    assert "█" in text


@pytest.mark.parametrize("payload", samples.HOSTILE)
def test_nothing_in_a_table_moves_the_terminal(payload: str) -> None:
    lines = text_of(ConsoleTable(), samples.hostile(payload)).split("\n")
    for line in lines:
        assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in line)


@pytest.mark.parametrize("payload", samples.HOSTILE)
def test_a_csv_cell_is_no_formula_and_rows_keep_their_shape(payload: str) -> None:
    rows = list(csv.reader(io.StringIO(text_of(CsvTable(), samples.hostile(payload)), newline="")))
    assert rows[0] == list(HEADER)
    for row in rows:
        assert len(row) == len(HEADER)
        assert not any(cell[:1] in {"=", "+", "@", "\t", "\r"} for cell in row)
        assert not any(
            cell.startswith("-") and not cell[1:].replace(".", "").replace("e-", "").isdigit() for cell in row
        )


def test_csv_has_a_row_a_view_subject_and_category() -> None:
    rows = list(csv.DictReader(io.StringIO(text_of(CsvTable(), samples.rich()))))
    found = {(r["view"], r["subject"], r["category"]): r for r in rows}
    assert found["device", "device 0", "kernel"]["ns"] == "735600000"
    assert found["overhead", "sections", "launch"]["calls"] == "1798"
    assert found["ladder", "nvml_utilisation", ""]["ns"] == ""
    assert found["partition", "job-2/4", "mutex_wait"]["ns"] == "75220000"


def parsed(text: str) -> list[tuple[str, str]]:
    return [
        (child.type, child.attrGet("href") or child.attrGet("src") or child.content)
        for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
        for child in (token, *(token.children or []))
        if child.type in {"link_open", "image", "html_inline", "html_block", "fence", "code_inline", "heading_open"}
    ]


@cache
def plain_markdown() -> list[tuple[str, str]]:
    return parsed(text_of(Markdown(), samples.hostile("plain")))


@pytest.mark.parametrize("payload", samples.HOSTILE)
def test_markdown_gains_no_link_image_code_or_element(payload: str) -> None:
    plain = plain_markdown()
    hostile = parsed(text_of(Markdown(), samples.hostile(payload)))
    assert [kind for kind, _ in hostile] == [kind for kind, _ in plain]
    assert {content for kind, content in hostile if kind.startswith("html")} == {
        content for kind, content in plain if kind.startswith("html")
    }


def test_markdown_tables_keep_their_columns() -> None:
    text = text_of(Markdown(), samples.hostile("a|b`c"))
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<table>") == text.count("\n|---") + text.count("\n|---:") * 0
    assert "a|b`c" in html
