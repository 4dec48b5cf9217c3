"""Foreign text in a terminal, Markdown, CSV and HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nvprof_tools.files.safe_text import csv_cell, html_text, markdown, shorten, terminal

ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain _text_ 100 %", "plain _text_ 100 %"),
        ("Größe ☃ 漢字", "Größe ☃ 漢字"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\rc\td", "a\\nb\\rc d"),
        ("\u202eevil", "\\u202eevil"),
        ("a\u2066b\u200bc\ufeff", "a\\u2066b\\u200bc\\ufeff"),
        ("\u2028", "\\u2028"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f", "\\x7f"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("a\u00a0b", "a b"),
    ],
)
def test_terminal(text: str, shown: str) -> None:
    assert terminal(text) == shown


@given(ANY)
def test_terminal_is_one_printable_line_and_stays(text: str) -> None:
    shown = terminal(text)
    assert shown.isprintable()
    assert terminal(shown) == shown


@given(ANY)
def test_csv_is_never_a_formula(text: str) -> None:
    cell = csv_cell(text)
    assert cell.lstrip()[:1] not in set("=+-@＝＋－＠")
    assert cell.isprintable()


def test_csv_leaves_plain_text() -> None:
    assert csv_cell("gpu_prove") == "gpu_prove"
    assert csv_cell("") == ""
    assert csv_cell("=1+1") == "'=1+1"
    assert csv_cell("  -x") == "'  -x"


class Collect(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


@given(ANY)
def test_html_is_text_and_nothing_else(text: str) -> None:
    seen = Collect()
    seen.feed(f'<p title="{html_text(text)}">{html_text(text)}</p>')
    assert seen.tags == ["p"]
    assert seen.words == terminal(text)


@given(st.one_of(ANY, st.text("[]()!<>|`*_~\\&@#$:/.w=\"' ahtp-", max_size=30)))
def test_markdown_in_a_cell_is_text_and_nothing_else(text: str) -> None:
    html = (
        MarkdownIt("commonmark", {"html": True})
        .enable(["table", "strikethrough"])
        .render(f"| a | b |\n|---|---|\n| x{markdown(text)}x | end |\n")
    )
    seen = Collect()
    seen.feed(html)
    assert [tag for tag in seen.tags if tag not in {"em", "strong"}] == [
        "table",
        "thead",
        "tr",
        "th",
        "th",
        "tbody",
        "tr",
        "td",
        "td",
    ]
    if "_" not in text:
        assert "em" not in seen.tags
        assert f"x{terminal(text)}x" in seen.words


@pytest.mark.parametrize("url", ["https://example.org", "www.example.org", "ftp://x.y", "a@b.org"])
def test_markdown_has_no_bare_link(url: str) -> None:
    assert url not in markdown(url)


@given(st.text(max_size=60), st.integers(1, 40))
def test_shorten_keeps_to_the_width(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) <= width
    assert short == text or len(text) > width


def test_shorten_keeps_both_ends() -> None:
    assert shorten("6cdff066-dc7f-41aa-ae5a-ccbb439bd9a3", 18) == "6cdff066..439bd9a3"
