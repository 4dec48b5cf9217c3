"""Intervals for tests of the functions on them: with the library and without, spans in order, walls filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import strategies as st

from nvprof_tools.attribution.engine import Segments
from nvprof_tools.native import library
from nvprof_tools.timeline.intervals import Codes, Ints
from nvprof_tools.timeline.lanes import Lanes
from tests.native.pages.decoder import decoder

Found = TypeVar("Found")
FAR = 2**62
ORIGINS = st.sampled_from([0, 0, 0, -FAR, FAR])


@contextmanager
def native(on: bool) -> Iterator[None]:
    """The library switched on or off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.SWITCH, str(decoder()) if on else "0")
        yield


def natively(ask: Callable[[], Found]) -> Found:
    """With the library."""
    with native(True):
        return ask()


def both(ask: Callable[[], Found]) -> tuple[Found, Found]:
    """With the library and without it."""
    with native(False):
        without = ask()
    return natively(ask), without


def ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def codes(values: Sequence[int]) -> Codes:
    return np.array(values, np.int32)


def columns(rows: Sequence[tuple[int, ...]], count: int) -> list[Ints]:
    """Rows of ``count`` numbers as arrays."""
    return [ints([row[i] for row in rows]) for i in range(count)]


def disjoint(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Spans in order, none empty; some touch."""

    def laid(steps: list[tuple[int, int]], at: int) -> list[tuple[int, int]]:
        made = []
        for gap, length in steps:
            made.append((at + gap, at + gap + length))
            at += gap + length
        return made

    return st.builds(laid, st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=most), st.integers(-4, 8))


Painted = list[tuple[int, int, int, str, str | None]]
"""Lane, start, end, category, sub-key."""


def shown(segments: Segments) -> Painted:
    """Segments in words."""
    rows = zip(*(c.tolist() for c in arrays(segments)), strict=True)
    return [
        (lane, start, end, segments.categories[kind], None if label < 0 else segments.details[label])
        for lane, start, end, kind, label in rows
    ]


def arrays(segments: Segments) -> list[Ints | Codes]:
    """A column each of what :func:`shown` tells."""
    return [segments.lane, segments.start, segments.end, segments.category, segments.detail]


@dataclass(frozen=True)
class Tiled:
    """Walls and the segments that fill them."""

    lanes: Lanes
    segments: Segments

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        """Begin, end and wall of each segment."""
        s = self.segments
        return list(zip(s.start.tolist(), s.end.tolist(), s.lane.tolist(), strict=True))


CATEGORIES, DETAILS = ("kernel", "cpu", "launch"), ("x", "y")
PIECE = st.tuples(st.integers(1, 5), st.integers(0, 2), st.integers(-1, 1))


@st.composite
def tiled(draw: st.DrawFn) -> Tiled:
    """Walls in one stretch of time, which may be far from 0; some are empty."""
    origin = draw(ORIGINS)
    walls = draw(st.lists(st.tuples(st.integers(-9, 9), st.lists(PIECE, max_size=6)), max_size=4))
    rows = []
    bounds = []
    for wall, (low, pieces) in enumerate(walls):
        at = origin + low
        for length, category, detail in pieces:
            rows.append((wall, at, at + length, category, detail))
            at += length
        bounds.append((origin + low, at))
    lanes = Lanes.of(*columns(bounds, 2))
    lane, start, end, category_of, detail_of = columns(rows, 5)
    segments = Segments(
        lanes,
        lane.astype(np.int32),
        start,
        end,
        category_of.astype(np.int32),
        CATEGORIES,
        detail_of.astype(np.int32),
        DETAILS,
    )
    return Tiled(lanes, segments)
