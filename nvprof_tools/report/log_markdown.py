"""``log -f markdown``: for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from nvprof_tools.files.safe_text import markdown
from nvprof_tools.model.log_summary import LogSummary
from nvprof_tools.report import log_words as words
from nvprof_tools.report.words import SEVERITY_WORDS, plural


class LogMarkdown:
    """The Markdown document."""

    def render(self, summary: LogSummary, out: BinaryIO) -> None:
        """Write the document, UTF-8."""
        out.write(("\n".join(_document(summary)) + "\n").encode("utf-8", "replace"))


def _document(s: LogSummary) -> Iterator[str]:
    yield f"**{markdown(words.finding(s))}**"
    yield ""
    yield f"{markdown(words.facts(s))}. {markdown(words.CAUTION)}"
    yield ""
    yield from _table(words.totals_titles(s), words.totals_rows(s))
    yield "### Jobs"
    yield ""
    yield from _table(words.JOB_TITLES, words.job_rows(s), left=(0, 6, 9))
    if len(s.jobs) > words.JOBS_SHOWN:
        yield f"{plural(len(s.jobs) - words.JOBS_SHOWN, 'job')} more are in the JSON and CSV forms."
        yield ""
    devices = list(words.device_rows(s))
    if devices:
        yield from _table(("GPU", "workers", "partitions", "bracket open"), devices, left=(0, 1, 2, 3))
    if s.timings:
        yield "### Figures"
        yield ""
        yield from _table(words.TIMING_TITLES, words.timing_rows(s))
    others = list(words.other_events(s))
    if others:
        yield "### Other events"
        yield ""
        yield from _table(("event", "count", "meaning"), others, left=(0, 2))
    if s.quality:
        yield "### Quality of the log"
        yield ""
        for item in s.quality:
            hint = f" *{markdown(item.hint)}*" if item.hint else ""
            times = f"`{item.slug}` ×{item.count:,}"
            yield f"- {SEVERITY_WORDS[item.severity.value]} {times}: {markdown(item.message)}.{hint}"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> Iterator[str]:
    yield "| " + " | ".join(markdown(title) for title in titles) + " |"
    yield "|" + "|".join("---" if place in left else "---:" for place in range(len(titles))) + "|"
    for row in rows:
        yield "| " + " | ".join(markdown(cell.strip()) for cell in row) + " |"
    yield ""
