"""The HTML report: one file, offline, with nothing in it that could run but the two scripts whose hashes it states."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import BinaryIO

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from nvprof_tools.files.safe_text import terminal
from nvprof_tools.report import words
from nvprof_tools.report.base import Report
from nvprof_tools.report.page_data import payload
from nvprof_tools.report.page_view import view
from nvprof_tools.report.palette import CATEGORY_COLOURS, colour_of

_TEMPLATES = files("nvprof_tools.report") / "templates"


@cache
def _part(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


class HtmlPage:
    """``-o X.html``."""

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write the page, UTF-8."""
        style = _part("uPlot.min.css") + _part("report.css") + _swatches()
        scripts = (_part("uPlot.iife.min.js"), _part("timeline.js"), _part("report.js"))
        page = _environment().get_template("report.html.j2")
        text = page.render(
            csp=_policy(scripts, style),
            style=Markup(style),
            scripts=[Markup(s) for s in scripts],
            data=Markup(embedded(payload(report))),
            **view(report.attribution),
        )
        out.write(text.encode("utf-8", "replace"))


def embedded(data: object) -> str:
    """JSON that cannot end the element it stands in, nor start a comment or another element in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&'\x7f":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({"report.html.j2": _part("report.html.j2")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["duration"] = lambda value: words.duration(value).replace(" us", " µs")
    for name in ("ms", "percent", "count", "number", "data_size", "plural"):
        environment.filters[name] = getattr(words, name)
    environment.filters["css"] = css_class
    return environment


def _printable(value: object) -> object:
    """Controls, bidi marks and the like spelled out; escaping follows, by the template engine."""
    return terminal(value) if type(value) is str else value


def css_class(category: str) -> str:
    """The class that colours a category; one of a fixed set, whatever the name holds."""
    return f"c-{category}" if category in CATEGORY_COLOURS else "c-other"


def _swatches() -> str:
    rules = [f".c-{name}{{fill:{colour};background:{colour}}}" for name, colour in CATEGORY_COLOURS.items()]
    rules.append(f".c-other{{fill:{colour_of('')};background:{colour_of('')}}}")
    return "\n".join(rules)


def _policy(scripts: tuple[str, ...], style: str) -> str:
    allowed = " ".join(_hash(s) for s in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
