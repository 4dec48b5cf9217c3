"""Segments summed: by lane and category, by lane, category and sub-key, and inside a set of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nvprof_tools.attribution.engine import Segments
from nvprof_tools.native import interval_functions
from nvprof_tools.timeline.intervals import Codes, Ints, Spans, intersect


def totals(segments: Segments) -> list[dict[str, int]]:
    """Per lane: category → ns, in the segments' order of precedence, without zeros. Each sums to its wall."""
    out: list[dict[str, int]] = [{} for _ in range(len(segments.lanes))]
    lane, code, sums = _sums(segments, None)
    categories = segments.categories
    for own, row, ns in zip(lane.tolist(), code.tolist(), sums.tolist(), strict=True):
        out[own][categories[row]] = ns
    return out


def details(segments: Segments) -> list[dict[str, dict[str, int]]]:
    """Per lane: category → sub-key → ns, of the segments that have a sub-key."""
    width = max(len(segments.details), 1)
    lane, key, sums = _sums(segments, segments.detail)
    out: list[dict[str, dict[str, int]]] = [{} for _ in range(len(segments.lanes))]
    fresh = np.append(True, (lane[1:] != lane[:-1]) | (key[1:] // width != key[:-1] // width))[: len(key)]
    # What is one category of one lane lies together: its dict is made once.
    detail = [segments.details[row] for row in (key % width).tolist()]
    first = np.flatnonzero(fresh)
    bounds = np.append(first, len(key)).tolist()
    ns = sums.tolist()
    for own, category, low, high in zip(
        lane[first].tolist(), (key[first] // width).tolist(), bounds[:-1], bounds[1:], strict=True
    ):
        out[own][segments.categories[category]] = dict(zip(detail[low:high], ns[low:high], strict=True))
    return out


def _sums(segments: Segments, label: Codes | None) -> tuple[Codes | Ints, Ints, Ints]:
    """``(lane, key, ns)`` for each pair that occurs, in order. A key is a category, or a category and a label of it,
    which is not negative."""
    codes, width = len(segments.categories), max(len(segments.details), 1)
    found = interval_functions.sums(
        segments.lane, segments.category, label, segments.start, segments.end, (codes, width)
    )
    if found is not None:
        return found
    rows = np.arange(len(segments)) if label is None else np.flatnonzero(label >= 0)
    key, keys = segments.category[rows].astype(np.int64), codes
    if label is not None:
        key, keys = key * width + label[rows], codes * width
    values, inverse = np.unique(segments.lane[rows] * np.int64(keys) + key, return_inverse=True)
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, inverse, (segments.end - segments.start)[rows])
    return values // keys, values % keys, sums


def inside(segments: Segments, lane: int, time: Spans) -> dict[str, int]:
    """Category → how much of one lane's ``time`` is of it, ns, without zeros, in the segments' order of precedence."""
    low, high = np.searchsorted(segments.lane, [lane, lane + 1])
    start, end, code = segments.start[low:high], segments.end[low:high], segments.category[low:high]
    count = len(segments.categories)
    sums = interval_functions.shared(start, end, code, count, time.start, time.end)
    if sums is None:
        own = (Spans(start[code == row], end[code == row]) for row in range(count))
        sums = np.array([intersect(spans, time).total for spans in own], np.int64)
    return {word: ns for word, ns in zip(segments.categories, sums.tolist(), strict=True) if ns}


def by_word(sums: Ints, words: Sequence[str]) -> list[dict[str, int]]:
    """Each row of ``sums`` as word → number, without zeros."""
    out: list[dict[str, int]] = [{} for _ in range(len(sums))]
    row, column = np.nonzero(sums)
    for i, j, number in zip(row.tolist(), column.tolist(), sums[row, column].tolist(), strict=True):
        out[i][words[j]] = number
    return out
