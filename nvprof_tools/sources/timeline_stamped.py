"""Lines that carry a wall-clock stamp, and lines of figures."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence

from nvprof_tools.model.pipeline import LogEvents

Text = tuple[int, bytes]
Completion = tuple[int, int, str, int | None, int | None]
"""Line, UTC ns, job, partition, gpu_ms."""

_STAMP = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:(Z)|([+-])(\d\d):(\d\d))(?![0-9])"
)
_FIGURE = re.compile(rb"(?<![^\s])([A-Za-z_][A-Za-z0-9_]{0,99})=(\d{1,15})(ms)?(?![^\s,])")
_TORN_FIGURE = re.compile(rb"[A-Za-z0-9]_ms=(?!\d{1,15}(?:ms)?(?:[\s,]|$))")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_NS = 1_000_000_000


def utc_ns(text: bytes) -> int | None:
    """The RFC 3339 stamp at a text's start, as ns since 1970, UTC, exactly; null where it is none, has no zone or lies
    outside 1970 to 2261 (all that fits into int64)."""
    match = _STAMP.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    try:
        days = datetime.date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    if not 1970 <= year <= 2261 or hour > 23 or minute > 59 or second > 60:
        return None
    fraction = int((match[7] or b"0").ljust(9, b"0"))
    zone = 0 if match[8] else (int(match[10]) * 60 + int(match[11])) * (-60 if match[9] == b"-" else 60)
    return (days * 86_400 + hour * 3_600 + minute * 60 + second - zone) * _NS + fraction


def anchors(stamped: Iterable[Text], events: LogEvents) -> tuple[list[tuple[int, int]], int]:
    """(line, UTC ns) of the engine's starts, and how many of those lines have no readable stamp."""
    words = [word.encode() for word in events.anchors]
    found, unreadable = [], 0
    for line, text in stamped:
        if any(word in text for word in words):
            when = utc_ns(text)
            if when is None:
                unreadable += 1
            else:
                found.append((line, when))
    return found, unreadable


def completions(stamped: Iterable[Text], events: LogEvents) -> list[Completion]:
    """The lines that say a GPU call is over."""
    words = [word.encode() for word in events.completions]
    found = []
    for line, text in stamped:
        if any(word in text for word in words):
            when, job = utc_ns(text), re.search(rb'(?:^|\s)job_id="?([^\s"]+)', text)
            if when is not None and job is not None:
                name = job[1].decode("utf-8", "replace")
                found.append((line, when, name, _field(text, events.partition), _field(text, events.gpu_ms)))
    return found


def timings(
    lines: Sequence[Text], stamped: Sequence[Text], events: LogEvents
) -> tuple[dict[str, tuple[int, int]], int]:
    """Name → (count, sum in ms) of all figures in ms, and how many figures are damaged.

    A figure is in ms if its name ends in ``_ms`` or its value in ``ms``.
    """
    sums: dict[str, tuple[int, int]] = {}
    damaged = 0
    for number, tag in enumerate(events.timing_tags):
        head = f"{tag}: ".encode()
        word = re.compile(rb"\s" + re.escape(tag.encode()) + rb"\s")
        own = [text[len(head) :] for _, text in lines if text.startswith(head)]
        own += [text[match.end() :] for _, text in stamped if (match := word.search(text))]
        joined = b"\n".join(own)
        damaged += len(_TORN_FIGURE.findall(joined))
        for name, value, unit in _FIGURE.findall(joined):
            if unit or name.endswith(b"_ms"):
                key = name.decode() if number == 0 else f"{tag}.{name.decode()}"
                count, total = sums.get(key, (0, 0))
                sums[key] = (count + 1, total + int(value))
    return dict(sorted(sums.items())), damaged


def _field(text: bytes, names: Sequence[str]) -> int | None:
    for name in names:
        match = re.search(rb"(?:^|\s)" + re.escape(name.encode()) + rb"=(?:Some\()?(\d{1,9})\b", text)
        if match:
            return int(match[1])
    return None
