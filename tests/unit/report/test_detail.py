"""Levels of detail lose no event and no nanosecond; the bytes they travel in read back."""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.report.detail import Events, encode, leb128, levels, merged, within

spans = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 3)), max_size=60)


def lane(parts: list[tuple[int, int, int]]) -> Events:
    """Disjoint events from (gap before, length, name)."""
    at, starts, ends = 0, [], []
    for gap, length, _ in parts:
        starts.append(at + gap)
        at += gap + length
        ends.append(at)
    name = np.array([n for _, _, n in parts], np.int64)
    return Events.single(np.array(starts, np.int64), np.array(ends, np.int64), name, name + 10)


def read(text: str, columns: int) -> list[list[int]]:
    """An independent reader of the page's bytes."""
    values, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return [values[i : i + columns] for i in range(0, len(values), columns)]


@given(spans, st.integers(0, 4_000))
def test_merging_keeps_count_time_and_order(parts: list[tuple[int, int, int]], resolution: int) -> None:
    events = lane(parts)
    out = merged(events, resolution)
    assert out.count.sum() == len(events)
    assert out.busy.sum() == (events.end - events.start).sum()
    assert (out.start[1:] >= out.end[:-1]).all()
    assert (out.busy <= out.end - out.start).all()
    if len(events):
        assert (out.start[0], out.end[-1]) == (events.start[0], events.end[-1])


@given(spans, st.integers(2, 4_000))
def test_what_is_large_enough_to_see_stays_single(parts: list[tuple[int, int, int]], resolution: int) -> None:
    events = lane(parts)
    out = merged(events, resolution)
    kept = {(int(s), int(e)) for s, e, c in zip(out.start, out.end, out.count, strict=True) if c == 1}
    for start, end in zip(events.start.tolist(), events.end.tolist(), strict=True):
        if end - start >= resolution:
            assert (start, end) in kept


@given(spans, st.integers(2, 4_000))
def test_a_block_takes_the_name_that_fills_most_of_it(parts: list[tuple[int, int, int]], resolution: int) -> None:
    events = lane(parts)
    out = merged(events, resolution)
    at = 0
    for i in range(len(out)):
        inside = range(at, at + int(out.count[i]))
        at += int(out.count[i])
        filled: dict[int, int] = {}
        for k in inside:
            filled[int(events.name[k])] = filled.get(int(events.name[k]), 0) + int(events.end[k] - events.start[k])
        assert filled[int(out.name[i])] == max(filled.values())
        assert out.colour[i] == out.name[i] + 10


@given(spans, st.integers(1, 40))
def test_a_budget_is_kept_as_far_as_merging_can(parts: list[tuple[int, int, int]], budget: int) -> None:
    events = lane(parts)
    out = within(events, budget)
    assert out.count.sum() == len(events)
    if len(events) <= budget:
        assert out is events


def test_a_million_short_events_fit_a_budget() -> None:
    edges = np.arange(2_000_001, dtype=np.int64)
    zero = np.zeros(1_000_000, np.int64)
    out = within(Events.single(edges[:-1:2] * 10, edges[1::2] * 10, zero, zero), 10_000)
    assert len(out) <= 10_000
    assert out.busy.sum() == 10_000_000


@given(spans)
def test_levels_grow_coarser_and_smaller(parts: list[tuple[int, int, int]]) -> None:
    events = lane(parts)
    made = levels(events, 600_000)
    assert made[0] == (0, events)
    for (fine, more), (coarse, fewer) in itertools.pairwise(made):
        assert coarse > fine
        assert len(fewer) <= len(more) / 2
        assert fewer.count.sum() == len(events)


@given(spans, st.integers(0, 4_000))
def test_the_bytes_read_back(parts: list[tuple[int, int, int]], resolution: int) -> None:
    events = merged(lane(parts), resolution)
    at = 0
    rows = read(encode(events, 0, whole=False), 6)
    assert len(rows) == len(events)
    for i, (gap, length, name, colour, count, busy) in enumerate(rows):
        assert (at + gap, at + gap + length) == (events.start[i], events.end[i])
        assert (name, colour, count, busy) == (events.name[i], events.colour[i], events.count[i], events.busy[i])
        at += gap + length


@given(st.lists(st.integers(0, 2**63 - 1), max_size=30))
def test_leb128_is_the_varint_of_protocol_buffers(values: list[int]) -> None:
    encoder = pytest.importorskip("google.protobuf.internal.encoder")
    want = b"".join(encoder._VarintBytes(v) for v in values)
    assert leb128(np.array(values, np.int64)) == want


def test_a_negative_value_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0"):
        leb128(np.array([-1], np.int64))
