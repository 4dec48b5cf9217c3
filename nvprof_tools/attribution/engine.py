"""The sweep: layers of evidence in order of precedence, laid over walls, each ns given to the first that covers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nvprof_tools.errors import InvariantError
from nvprof_tools.native import interval_functions
from nvprof_tools.native.interval_functions import SweepLayer, SweepPieces
from nvprof_tools.timeline.intervals import Codes, Index, Ints, Spans, pairs, without
from nvprof_tools.timeline.lanes import Lanes
from nvprof_tools.timeline.memory import room
from nvprof_tools.timeline.parallel import processors

SWEEP_THREADS = 8


@dataclass(frozen=True)
class Layer:
    """One rank of evidence: the time it covers on the lanes' axis and its category.

    ``spans`` are disjoint and in order, none empty; they may touch. ``label`` gives each span's row of ``details``
    (−1: no sub-key); null when no span has one. Where spans of a layer differ in category, ``kind`` gives each one's
    row of ``category``, which then is a tuple.
    """

    category: str | tuple[str, ...]
    spans: Spans
    label: Ints | Codes | None = None
    details: tuple[str, ...] = ()
    kind: Codes | None = None

    @property
    def categories(self) -> tuple[str, ...]:
        """Every category its spans may have."""
        return (self.category,) if isinstance(self.category, str) else self.category


@dataclass(frozen=True)
class Segments:
    """Disjoint segments on lanes, sorted by lane and start, filling every wall exactly.

    ``category`` indexes ``categories``; ``detail`` indexes ``details`` (−1: none). There may be tens of millions, so
    only their times have 64 bits.
    """

    lanes: Lanes
    lane: Codes
    start: Ints
    end: Ints
    category: Codes
    categories: tuple[str, ...]
    detail: Codes
    details: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    def on_axis(self, rows: Index | slice) -> Spans:
        """Chosen rows on the lanes' axis; touching ones are kept apart."""
        lane = self.lane[rows]
        shift = self.lanes.base[lane] - self.lanes.start[lane]
        return Spans(self.start[rows] + shift, self.end[rows] + shift)

    def spans_of(self, category: str) -> Spans:
        """The axis time in one category; touching spans are kept apart."""
        if category not in self.categories:
            return self.on_axis(slice(0, 0))
        return self.on_axis(np.flatnonzero(self.category == self.categories.index(category)))

    def cut(self, lane: Ints, low: Ints, high: Ints, shift: int) -> tuple[Ints, Ints, Codes, Codes]:
        """``(start, end, category, detail)`` of what of each segment lies in each stretch ``[low, high)`` of a lane,
        moved by ``shift``, in order of the stretches."""
        first = np.searchsorted(self.lane, np.arange(len(self.lanes) + 1, dtype=np.int32)).astype(np.uint64)
        rows = (self.start, self.end, self.category, self.detail)
        found = interval_functions.cut(first, rows, lane, low, high, shift, room)
        if found is not None:
            return found
        low, high = np.maximum(low, self.lanes.start[lane]), np.minimum(high, self.lanes.end[lane])
        onto = self.lanes.base[lane] - self.lanes.start[lane]
        row, stretch = pairs(self.on_axis(slice(None)), Spans(low + onto, high + onto))
        start, end = np.maximum(self.start[row], low[stretch]), np.minimum(self.end[row], high[stretch])
        some = end > start
        row = row[some]
        return start[some] + shift, end[some] + shift, self.category[row], self.detail[row]


def sweep(lanes: Lanes, layers: Sequence[Layer], rest_category: str) -> Segments:
    """Give each ns of each wall to the first layer that covers it, what none covers to ``rest_category``.

    O(n log n) in the spans. :raises InvariantError: when the segments do not fill the walls exactly.
    """
    categories = tuple(dict.fromkeys([*(word for layer in layers for word in layer.categories), rest_category]))
    details: dict[str, int] = {}
    ready = [_ready(layer, categories, details) for layer in layers if len(layer.spans)]
    rest = categories.index(rest_category)
    walls = (lanes.base, lanes.end - lanes.start, lanes.start)
    pieces = interval_functions.sweep(ready, *walls, rest, processors(SWEEP_THREADS), room) or _sweep(
        lanes, ready, rest
    )
    if not _filled(lanes, pieces):
        raise InvariantError(
            "conservation-broken",
            f"{len(pieces.begin)} segments do not fill {len(lanes)} walls",
            "this is a bug: please report it with the trace, or a golden of it",
        )
    return Segments(lanes, pieces.wall, pieces.begin, pieces.end, pieces.kind, categories, pieces.label, tuple(details))


def _ready(layer: Layer, categories: tuple[str, ...], details: dict[str, int]) -> SweepLayer:
    """The layer with numbers that all layers share; its new sub-keys go to the end of ``details``."""
    own = np.array([categories.index(word) for word in layer.categories], np.int32)
    label = None
    if layer.label is not None:
        names = np.array([details.setdefault(word, len(details)) for word in layer.details] + [-1], np.int32)
        label = names[layer.label]
    return SweepLayer(layer.spans.start, layer.spans.end, int(own[0]) if layer.kind is None else own[layer.kind], label)


def _sweep(lanes: Lanes, layers: Sequence[SweepLayer], rest_category: int) -> SweepPieces:
    """What :func:`nvprof_tools.native.interval_functions.sweep` gives, layer after layer."""
    rest = lanes.walls
    found: list[tuple[Ints, Ints, Codes, Codes]] = []
    for layer in layers:
        spans = Spans(layer.begin, layer.end)
        i, j = pairs(rest, spans)
        inside = Spans(np.maximum(rest.start[i], spans.start[j]), np.minimum(rest.end[i], spans.end[j]))
        rest = without(rest, inside)
        kind = np.full(len(inside), layer.kind, np.int32) if isinstance(layer.kind, int) else layer.kind[j]
        none = np.full(len(inside), -1, np.int32)
        found.append((inside.start, inside.end, kind, none if layer.label is None else layer.label[j]))
    none = np.full(len(rest), -1, np.int32)
    found.append((rest.start, rest.end, np.full(len(rest), rest_category, np.int32), none))
    start, end, kind, label = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(start, kind="stable")
    lane, low, high = lanes.lift(Spans(start[order], end[order]))
    return SweepPieces(low, high, lane.astype(np.int32), kind[order], label[order])


def _filled(lanes: Lanes, pieces: SweepPieces) -> bool:
    """Conservation: every wall is filled from its start to its end, without a gap, in order."""
    found = interval_functions.filled(pieces, lanes.start, lanes.end)
    if found is not None:
        return found
    walls = np.flatnonzero(lanes.end > lanes.start)
    fresh = np.append(True, pieces.wall[1:] != pieces.wall[:-1])[: len(pieces.wall)]
    begins = np.where(fresh, lanes.start[pieces.wall], np.append(0, pieces.end[:-1])[: len(fresh)])
    last = np.append(fresh[1:], True)[: len(fresh)]
    return (
        np.array_equal(pieces.wall[fresh], walls)
        and bool((pieces.begin == begins).all() and (pieces.end > pieces.begin).all())
        and np.array_equal(pieces.end[last], lanes.end[walls])
    )
