"""The window: the wall every share is taken of."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.attribution.work import Work
from nvprof_tools.errors import AlignmentError, UsageError
from nvprof_tools.model.attribution import Window, WindowSource
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import ints

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def choose(
    wish: str | None, placed: Placed | None, pipeline: Pipeline, trace: Trace, work: Work
) -> tuple[Window, list[QualityItem]]:
    """The window asked for (``trace``, ``log`` or ``A:B``), else the log's first bracket start to last bracket end,
    else the first to the last device event; clipped to the capture.

    :raises AlignmentError: ``window-outside-capture``, ``window-empty``; :raises UsageError: ``window-malformed``.
    """
    captured = capture(trace)
    window = _wanted(wish, placed, pipeline, trace, work)
    if not any(len(trace[name]) for name in _TIMED):
        raise AlignmentError(
            "nothing-captured",
            "there is nothing to attribute: the capture holds no GPU work, no CUDA or OS calls and no NVTX ranges",
            "capture with nsys profile -t cuda,nvtx,osrt, and check that the program was started by it",
        )
    if window.end_ns <= window.start_ns:
        raise AlignmentError(
            "window-empty",
            "the window holds no time: there is no device event and no complete bracket in it",
            "give one with --window A:B, or capture while the GPU works",
        )
    if window.end_ns <= captured[0] or window.start_ns >= captured[1]:
        raise AlignmentError(
            "window-outside-capture",
            f"nothing was captured in the window {window.start_ns}…{window.end_ns} ns "
            f"(the capture spans {captured[0]}…{captured[1]} ns)",
            "give the log of the run that was captured, or another --window",
        )
    start, end = max(window.start_ns, captured[0]), min(window.end_ns, captured[1])
    items = []
    lost = (start - window.start_ns) + (window.end_ns - end)
    if lost:
        items.append(
            QualityItem(
                "window-clipped",
                Severity.NOTICE,
                1,
                f"the window reaches {lost / 1e6:,.3f} ms past the capture and was cut to it",
                "capture the whole run, or compare only what lies in the capture",
            )
        )
    return Window(start, end, window.source), items


_TIMED = ("kernels", "graphs", "copies", "memsets", "api_calls", "nvtx_ranges", "os_calls")


def capture(trace: Trace) -> tuple[int, int]:
    """Where the capture begins and ends on the trace's clock: its own word for the end, else its last event."""
    begin, end = _extent(trace, _TIMED)
    return min(0, begin), end if trace.session.end_ns is None else trace.session.end_ns


def _extent(trace: Trace, tables: Sequence[str]) -> tuple[int, int]:
    starts = [int(ints(trace[name], "start_ns").min()) for name in tables if len(trace[name])]
    ends = [int(ints(trace[name], "end_ns").max()) for name in tables if len(trace[name])]
    return min(starts, default=0), max(ends, default=0)


def _wanted(wish: str | None, placed: Placed | None, pipeline: Pipeline, trace: Trace, work: Work) -> Window:
    if wish in (None, "log"):
        found = None if placed is None or placed.clock.offset_ns is None else _of_log(placed, pipeline)
        if found is not None:
            return Window(*found, "log")
        if wish == "log":
            raise AlignmentError(
                "window-without-log",
                "--window log needs a log with a complete bracket, on the trace's clock",
                "give --log, or --window trace",
            )
    if wish in (None, "trace"):
        source: WindowSource = "trace"
        if len(work) == 0:
            return Window(*_extent(trace, _TIMED), source)
        return Window(int(work.start.min()), int(work.end.max()), source)
    return Window(*_parsed(str(wish)), "option")


def _of_log(placed: Placed, pipeline: Pipeline) -> tuple[int, int] | None:
    start, end = (placed.time(column) for column in pipeline.bracket_columns)
    start, end = start[start != NEVER], end[end != NEVER]
    return (int(start.min()), int(end.max())) if len(start) and len(end) else None


def _parsed(wish: str) -> tuple[int, int]:
    """``A:B`` with a unit each (``1.5s:2500ms``); plain numbers are ns. Exact: no float takes part."""
    first, colon, second = wish.partition(":")
    try:
        return _nanoseconds(first.strip()), _nanoseconds(second.strip() if colon else "no time")
    except (ValueError, InvalidOperation):
        raise UsageError(
            "window-malformed",
            f"{wish[:60]!r} is no window",
            "write trace, log, or A:B such as 1.25s:1900ms or 1250000000:1900000000 (ns)",
        ) from None


def _nanoseconds(text: str) -> int:
    """A time in decimal with a unit, as exact ns. :raises ValueError: when it is none."""
    unit = next((u for u in ("ns", "us", "ms", "s") if text.endswith(u)), "ns")
    exact = Decimal(text.removesuffix(unit).strip()) * _UNITS[unit]
    if not exact.is_finite() or exact != exact.to_integral_value() or abs(exact) > 2**61:
        raise ValueError(text)
    return int(exact)
