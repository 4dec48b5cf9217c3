"""The sweep: layers of evidence in order of precedence, laid over walls, each ns given to the first that covers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nvprof_tools.errors import InvariantError
from nvprof_tools.timeline.intervals import Index, Ints, Spans, pairs, sum_exact, without
from nvprof_tools.timeline.lanes import Lanes


@dataclass(frozen=True)
class Layer:
    """One rank of evidence: the time it covers on the lanes' axis and its category.

    ``label`` gives each span's row of ``details`` (−1: no sub-key); null when no span has one.
    """

    category: str
    spans: Spans
    label: Ints | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Segments:
    """Disjoint segments on lanes, sorted by lane and start, filling every wall exactly.

    ``category`` indexes ``categories``; ``detail`` indexes ``details`` (−1: none). ``at`` holds the same segments on
    the lanes' axis.
    """

    lanes: Lanes
    at: Spans
    lane: Index
    start: Ints
    end: Ints
    category: Ints
    categories: tuple[str, ...]
    detail: Ints
    details: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    def spans_of(self, category: str) -> Spans:
        """The axis time in one category; touching spans are kept apart."""
        if category not in self.categories:
            return Spans(self.at.start[:0], self.at.end[:0])
        rows = self.category == self.categories.index(category)
        return Spans(self.at.start[rows], self.at.end[rows])


def sweep(lanes: Lanes, layers: Sequence[Layer], rest_category: str) -> Segments:
    """Give each ns of each wall to the first layer that covers it, what none covers to ``rest_category``.

    O(n log n) in the spans. :raises InvariantError: when the segments do not fill the walls exactly.
    """
    categories = tuple(dict.fromkeys([*(layer.category for layer in layers), rest_category]))
    details: dict[str, int] = {}
    rest = lanes.walls
    starts: list[Ints] = []
    ends: list[Ints] = []
    codes: list[Ints] = []
    labels: list[Ints] = []

    def keep(spans: Spans, category: str, label: Ints) -> None:
        starts.append(spans.start)
        ends.append(spans.end)
        codes.append(np.full(len(spans), categories.index(category), np.int64))
        labels.append(label)

    for layer in layers:
        if len(layer.spans) == 0 or len(rest) == 0:
            continue
        i, j = pairs(rest, layer.spans)
        inside = Spans(np.maximum(rest.start[i], layer.spans.start[j]), np.minimum(rest.end[i], layer.spans.end[j]))
        rest = without(rest, inside)
        own = np.full(len(inside), -1, np.int64)
        if layer.label is not None:
            names = np.array([details.setdefault(word, len(details)) for word in layer.details] + [-1], np.int64)
            own = names[layer.label[j]]
        keep(inside, layer.category, own)
    keep(rest, rest_category, np.full(len(rest), -1, np.int64))
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start, kind="stable")
    at = Spans(start[order], end[order])
    _check(lanes, at)
    lane, low, high = lanes.lift(at)
    return Segments(
        lanes,
        at,
        lane,
        low,
        high,
        np.concatenate(codes)[order],
        categories,
        np.concatenate(labels)[order],
        tuple(details),
    )


def _check(lanes: Lanes, at: Spans) -> None:
    """Conservation: disjoint, and as long as the walls together."""
    wall = sum_exact(lanes.end, lanes.start)
    if at.total != wall or bool((at.start[1:] < at.end[:-1]).any()):
        raise InvariantError(
            "conservation-broken",
            f"segments of {at.total} ns do not fill walls of {wall} ns",
            "this is a bug: please report it with the trace, or a golden of it",
        )


def totals(segments: Segments) -> list[dict[str, int]]:
    """Per lane: category → ns, in the segments' order of precedence, without zeros. Each sums to its wall."""
    width = len(segments.categories)
    sums = np.zeros(len(segments.lanes) * width, np.int64)
    np.add.at(sums, segments.lane * width + segments.category, segments.end - segments.start)
    return by_word(sums.reshape(len(segments.lanes), width), segments.categories)


def by_word(sums: Ints, words: Sequence[str]) -> list[dict[str, int]]:
    """Each row of ``sums`` as word → number, without zeros."""
    out: list[dict[str, int]] = [{} for _ in range(len(sums))]
    row, column = np.nonzero(sums)
    for i, j, number in zip(row.tolist(), column.tolist(), sums[row, column].tolist(), strict=True):
        out[i][words[j]] = number
    return out


def details(segments: Segments) -> list[dict[str, dict[str, int]]]:
    """Per lane: category → sub-key → ns, of the segments that have a sub-key."""
    rows = np.flatnonzero(segments.detail >= 0)
    width = max(len(segments.details), 1)
    group = segments.lane[rows] * len(segments.categories) + segments.category[rows]
    values, inverse = np.unique(group * width + segments.detail[rows], return_inverse=True)
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, inverse, (segments.end - segments.start)[rows])
    out: list[dict[str, dict[str, int]]] = [{} for _ in range(len(segments.lanes))]
    for key, ns in zip(values.tolist(), sums.tolist(), strict=True):
        lane, category = divmod(key // width, len(segments.categories))
        out[lane].setdefault(segments.categories[category], {})[segments.details[key % width]] = ns
    return out
