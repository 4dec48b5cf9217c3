"""Loss and doubt as data: what a reader of the report must know before trusting a figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Severity(StrEnum):
    """How much an item matters, least first."""

    INFO = "info"
    NOTICE = "notice"
    DATA_LOSS = "data-loss"
    ERROR = "error"


_RANK = {Severity.ERROR: 0, Severity.DATA_LOSS: 1, Severity.NOTICE: 2, Severity.INFO: 3}


@dataclass(frozen=True)
class QualityItem:
    """One fact about the data.

    :param slug: kebab-case name, documented in ``docs/messages.md``.
    :param count: how many rows, lines or records it concerns.
    :param message: one line, complete by itself.
    :param hint: what to do about it next time; empty when there is nothing to do.
    """

    slug: str
    severity: Severity
    count: int
    message: str
    hint: str = ""


def ordered(items: Iterable[QualityItem]) -> tuple[QualityItem, ...]:
    """Gravest first, then by slug and message: the same order for the same facts. Exact repeats are added up."""
    merged: dict[tuple[str, str, str], QualityItem] = {}
    for item in items:
        key = (item.slug, item.message, item.hint)
        known = merged.get(key)
        merged[key] = item if known is None else replace(known, count=known.count + item.count)
    return tuple(sorted(merged.values(), key=lambda i: (_RANK[i.severity], i.slug, i.message)))
