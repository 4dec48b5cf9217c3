"""Text out of a trace or log, made safe for where it is shown.

Names of kernels, ranges, threads and jobs are whatever the program under test, or whoever edited the file, wrote. Each
function here takes any string and gives one that means the same to a reader and nothing to the medium.
"""

from __future__ import annotations

import html
import unicodedata
from typing import Final

_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that are not seen, or that move what is: controls, bidi marks, joiners, lone
surrogates, line and paragraph separators."""

_MARKDOWN: Final = str.maketrans(
    {
        "\\": "\\\\",
        "`": "\\`",
        "*": "\\*",
        "[": "\\[",
        "]": "\\]",
        "|": "\\|",
        "~": "\\~",
        "$": "\\$",
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "@": "&#64;",
    }
)
_FORMULA: Final = frozenset("=+-@＝＋－＠")


def terminal(text: str) -> str:
    """One line that a terminal shows as it is: escapes, controls, bidi marks and newlines are spelled out."""
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def markdown(text: str) -> str:
    """Text for a line or a table cell of Markdown: no markup, no HTML, no link, no cell border.

    ``#`` and ``_`` stay: they mean something only where a writer puts them (a line's start, a word of its own).
    """
    safe = terminal(text).translate(_MARKDOWN)
    return safe.replace("://", "&#58;//").replace("www.", "www&#46;")


def csv_cell(text: str) -> str:
    """Text for a CSV cell (before quoting): a spreadsheet does not take it for a formula."""
    safe = terminal(text)
    return f"'{safe}" if safe.lstrip()[:1] in _FORMULA and safe.strip() else safe


def html_text(text: str) -> str:
    """Text for HTML, inside an element or a quoted attribute."""
    return html.escape(terminal(text), quote=True)


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters of a safe text: the start and the end, which tell ids apart, around ``..``."""
    if len(text) <= width:
        return text
    if width <= 4:
        return text[:width]
    head = (width - 2 + 1) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    if unicodedata.category(char) not in _ESCAPED:
        return " "
    code = ord(char)
    if char in "\t":
        return " "
    if code < 0x100:
        return f"\\x{code:02x}" if char not in "\n\r" else {"\n": "\\n", "\r": "\\r"}[char]
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
