"""The window: the wall every share is taken of."""

from __future__ import annotations

import numpy as np

from nvprof_tools.attribution.placement import NEVER, Placed
from nvprof_tools.attribution.work import Work
from nvprof_tools.errors import AlignmentError, UsageError
from nvprof_tools.model.attribution import Window, WindowSource
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Session

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def choose(
    wish: str | None, placed: Placed | None, pipeline: Pipeline, work: Work, session: Session
) -> tuple[Window, list[QualityItem]]:
    """The window asked for (``trace``, ``log`` or ``A:B``), else the log's first bracket start to last bracket end,
    else the first to the last device event; clipped to the capture.

    :raises AlignmentError: ``window-outside-capture``, ``window-empty``; :raises UsageError: ``window-malformed``.
    """
    captured = capture(work, session)
    window = _wanted(wish, placed, pipeline, work)
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


def capture(work: Work, session: Session) -> tuple[int, int]:
    """Where the capture begins and ends on the trace's clock."""
    begin = min(0, int(work.start.min())) if len(work) else 0
    end = session.end_ns
    if end is None:
        end = int(work.end.max()) if len(work) else 0
    return begin, end


def _wanted(wish: str | None, placed: Placed | None, pipeline: Pipeline, work: Work) -> Window:
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
            return Window(0, 0, source)
        return Window(int(work.start.min()), int(work.end.max()), source)
    return Window(*_parsed(str(wish)), "option")


def _of_log(placed: Placed, pipeline: Pipeline) -> tuple[int, int] | None:
    start, end = (placed.time(column) for column in pipeline.bracket_columns)
    start, end = start[start != NEVER], end[end != NEVER]
    return (int(start.min()), int(end.max())) if len(start) and len(end) else None


def _parsed(wish: str) -> tuple[int, int]:
    """``A:B`` with a unit each (``1.5s:2500ms``); plain numbers are ns. Exact: no float takes part."""
    parts = wish.split(":")
    try:
        if len(parts) != 2:
            raise ValueError
        low, high = (_nanoseconds(part.strip()) for part in parts)
    except ValueError:
        raise UsageError(
            "window-malformed",
            f"{wish[:60]!r} is no window",
            "write trace, log, or A:B such as 1.25s:1900ms or 1250000000:1900000000 (ns)",
        ) from None
    return low, high


def _nanoseconds(text: str) -> int:
    unit = next((u for u in ("ns", "us", "ms", "s") if text.endswith(u)), "")
    number, scale = text.removesuffix(unit), _UNITS.get(unit, 1)
    whole, _, fraction = number.partition(".")
    sign = -1 if whole.startswith("-") else 1
    digits = len(str(scale)) - 1
    if len(fraction) > digits:
        raise ValueError
    value = sign * int(whole or "0") * scale + (int(fraction.ljust(digits, "0")) if digits and fraction else 0)
    if abs(value) > np.iinfo(np.int64).max // 4:
        raise ValueError
    return sign * value
