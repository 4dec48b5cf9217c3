"""Level of detail: coarser copies of a lane, and the bytes it travels in.

A level of resolution R merges neighbours that R is too wide to tell apart, so that a picture of the whole run and one
of a single launch both draw a few thousand rectangles. The finest level holds every event as it is, as long as the
lane's budget allows; then the shortest are merged there too, with their count.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_BLOCK = 4
"""A merged block is never wider than this many resolutions."""
_STEP = 8
_FINEST_PICTURE = 1500
_WORTH = 0.5
"""A coarser level must have at most this share of the finer one's rectangles."""


@dataclass(frozen=True)
class Events:
    """Disjoint intervals in order. ``name`` and ``colour`` index the report's tables; ``count`` is the events an
    interval stands for and ``busy`` their length, ns (for a single event: 1 and its length)."""

    start: Ints
    end: Ints
    name: Ints
    colour: Ints
    count: Ints
    busy: Ints

    @classmethod
    def single(cls, start: Ints, end: Ints, name: Ints, colour: Ints) -> Events:
        """Events as they are."""
        return cls(start, end, name, colour, np.ones(len(start), np.int64), end - start)

    def __len__(self) -> int:
        return len(self.start)


def merged(events: Events, resolution: int) -> Events:
    """Neighbours shorter than ``resolution`` and closer than it to one another as one block each, which takes name and
    colour of the event that fills most of it."""
    if len(events) < 2 or resolution <= 1:
        return events
    small = events.end - events.start < resolution
    joined = small[1:] & small[:-1] & (events.start[1:] - events.end[:-1] < resolution)
    cell = events.start // (resolution * _BLOCK)
    joined &= cell[1:] == cell[:-1]
    first = np.flatnonzero(np.concatenate([[True], ~joined]))
    last = np.append(first[1:], len(events)) - 1
    group = np.cumsum(np.concatenate([[0], (~joined).astype(np.int64)]))
    chief = _chief(events, group, len(first))
    return Events(
        events.start[first],
        events.end[last],
        events.name[chief],
        events.colour[chief],
        np.add.reduceat(events.count, first),
        np.add.reduceat(events.busy, first),
    )


def _chief(events: Events, group: Ints, groups: int) -> Ints:
    """Per group, an event of the name that fills most of it."""
    order = np.lexsort((events.colour, events.name, group))
    g, n, c = group[order], events.name[order], events.colour[order]
    new = np.concatenate([[True], (g[1:] != g[:-1]) | (n[1:] != n[:-1]) | (c[1:] != c[:-1])])
    at = np.flatnonzero(new)
    share = np.add.reduceat(events.busy[order], at)
    best = np.lexsort((at, -share, g[at]))
    leading = np.concatenate([[True], np.diff(g[at][best]) != 0])
    return np.asarray(order[at[best[leading]]][:groups], np.int64)


def within(events: Events, budget: int) -> Events:
    """At most about ``budget`` intervals: the shortest neighbours merged, as little as will do."""
    if len(events) <= budget or not len(events):
        return events
    resolution = max(int(events.end[-1] - events.start[0]) // (64 * budget), 2)
    out = merged(events, resolution)
    while len(out) > budget and resolution < int(events.end[-1] - events.start[0]):
        resolution *= 2
        out = merged(events, resolution)
    return out


def levels(events: Events, wall: int) -> list[tuple[int, Events]]:
    """(resolution in ns, events), finest first; the finest has resolution 0."""
    out = [(0, events)]
    resolution = 1
    while resolution * _FINEST_PICTURE * _STEP < wall:
        resolution *= _STEP
    coarser = []
    while resolution >= _STEP:
        coarser.append(resolution)
        resolution //= _STEP
    for step in sorted(coarser):
        made = merged(out[-1][1], step)
        if len(made) <= _WORTH * len(out[-1][1]):
            out.append((step, made))
    return out


def encode(events: Events, origin: int, whole: bool) -> str:
    """Base64 of LEB128 integers: for each interval the gap since the one before, its length, name and colour; unless
    ``whole`` (every interval is one event) also count and busy time."""
    before = np.concatenate([[origin], events.end[:-1]])
    columns = [events.start - before, events.end - events.start, events.name, events.colour]
    if not whole:
        columns += [events.count, events.busy]
    table = np.stack(columns, axis=1).reshape(-1) if len(events) else np.zeros(0, np.int64)
    return base64.b64encode(leb128(table)).decode("ascii")


def leb128(values: Ints) -> bytes:
    """Unsigned LEB128 of each value, one after the other; negative ones are an error of the caller."""
    if not len(values):
        return b""
    if int(values.min()) < 0:
        raise ValueError("only values from 0 can be written")
    rest = values.astype(np.uint64)
    groups = np.ones(len(values), np.int64)
    probe = rest >> np.uint64(7)
    while probe.any():
        groups += probe > 0
        probe = probe >> np.uint64(7)
    place = np.cumsum(groups) - groups
    out = np.zeros(int(groups.sum()), np.uint8)
    for k in range(int(groups.max())):
        pick = groups > k
        byte = ((rest[pick] >> np.uint64(7 * k)) & np.uint64(0x7F)).astype(np.uint8)
        byte |= np.where(groups[pick] > k + 1, 0x80, 0).astype(np.uint8)
        out[place[pick] + k] = byte
    return out.tobytes()
