"""Which renderer of a log answers to which name."""

from __future__ import annotations

from typing import BinaryIO, Protocol

from nvprof_tools.model.log_summary import LogSummary
from nvprof_tools.report.log_csv import LogCsv
from nvprof_tools.report.log_json import LogJson
from nvprof_tools.report.log_markdown import LogMarkdown
from nvprof_tools.report.log_table import LogTable


class LogRenderer(Protocol):
    """Writes one summary. The same summary gives the same bytes."""

    def render(self, summary: LogSummary, out: BinaryIO) -> None:
        """Write the whole document to ``out``; never close it."""
        ...


def renderer(name: str, colour: bool = False) -> LogRenderer:
    """The renderer of that name; raises ``KeyError`` for another name."""
    makers: dict[str, LogRenderer] = {
        "table": LogTable(colour),
        "markdown": LogMarkdown(),
        "csv": LogCsv(),
        "json": LogJson(),
    }
    return makers[name]
