"""Which renderer answers to which name and suffix: an explicit table; a renderer is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from nvprof_tools.errors import UsageError

if TYPE_CHECKING:
    from nvprof_tools.report.base import Renderer


@dataclass(frozen=True)
class Format:
    """One output format: ``factory`` is ``module:callable``, which takes no argument."""

    name: str
    suffixes: tuple[str, ...]
    factory: str
    binary: bool = False


FORMATS: Final = (
    Format("table", (".txt",), "nvprof_tools.report.console:ConsoleTable"),
    Format("markdown", (".md", ".markdown"), "nvprof_tools.report.markdown:Markdown"),
    Format("csv", (".csv",), "nvprof_tools.report.csv_table:CsvTable"),
    Format("json", (".json",), "nvprof_tools.report.json_doc:JsonDocument"),
    Format("html", (".html", ".htm"), "nvprof_tools.report.html:HtmlPage"),
    Format("perfetto", (".pftrace", ".perfetto-trace"), "nvprof_tools.report.perfetto:PerfettoTrace", True),
    Format("png", (".png",), "nvprof_tools.report.chart:PngChart", True),
    Format("svg", (".svg",), "nvprof_tools.report.chart:SvgChart"),
)

TEXT_NAMES: Final = ("table", "markdown", "csv", "json")
"""The formats that ``-f`` offers: those that make sense on standard output."""


def by_name(name: str) -> Format:
    """The format of that name; raises ``KeyError`` for a name that is not in the table."""
    return {known.name: known for known in FORMATS}[name]


def by_suffix(path: PurePath) -> Format:
    """The format a file's suffix asks for; raises ``UsageError`` (``unknown-report-suffix``)."""
    suffix = path.suffix.lower()
    for known in FORMATS:
        if suffix in known.suffixes:
            return known
    raise UsageError(
        "unknown-report-suffix",
        f"no report format has the suffix {suffix!r}" if suffix else "the output file has no suffix to tell its format",
        "use one of " + ", ".join(s for f in FORMATS for s in f.suffixes),
    )


def make(known: Format) -> Renderer:
    """A renderer of that format."""
    module, _, name = known.factory.partition(":")
    factory: Callable[[], Renderer] = getattr(import_module(module), name)
    return factory()
