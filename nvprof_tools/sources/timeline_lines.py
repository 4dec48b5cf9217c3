"""Splits a log into lines and sorts them by kind, all at once; only lines of no plain shape go through the repair."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.arrays import bools, from_numpy, ints
from nvprof_tools.sources.timeline_grammar import LINE, STAMP, TAG, Grammar
from nvprof_tools.sources.timeline_repair import Found, repair, settle

MANY_PREFIXES = 1_000
MAX_DAMAGED = 500_000
STEP = 1 << 20
"""What is looked at in one go where a column of the whole would be thrown away at once."""

_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,16}[@-~]|\][^\x07\x1b\n]{0,1024}(?:\x07|\x1b\\)|[@-Z\\-_])")

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lines:
    """Lines by kind: texts without their newline, and line numbers from 1. ``timeline`` and ``stamped`` are in file
    order; ``found`` counts what was repaired and lost."""

    timeline: pa.LargeBinaryArray
    timeline_line: Numbers
    timings: list[tuple[int, bytes]]
    stamped: list[tuple[int, bytes]]
    found: Found
    too_long: int
    count: int


def sort_lines(data: bytes, grammar: Grammar, limits: Limits) -> Lines:
    """Every line of a known kind in ``data``. Terminal escapes are dropped, all three newlines are understood.

    :raises SourceError: ``log-too-damaged``.
    """
    data = _plain(data)
    kinds = _kinds(data, grammar, limits)
    if np.count_nonzero(kinds.prefixed) > MANY_PREFIXES:
        # So many lines with something before them: a collector's doing, not tears.
        data = grammar.prefix.sub(b"", data)
        kinds = _kinds(data, grammar, limits)
    if int(kinds.starts[kinds.unusual].sum()) > MAX_DAMAGED:
        raise SourceError(
            "log-too-damaged",
            f"more than {MAX_DAMAGED:,} lines of the log are damaged",
            "check that the file is a pipeline's log; write it with one writer a file",
        )
    rows, lines = kinds.rows, kinds.lines
    fragments = np.zeros(len(kinds.offsets) - 1, np.bool_)
    fragments[rows[kinds.fragment]] = True
    reader = _Reader(data, kinds.offsets, limits.log_line_bytes)
    found = repair(reader, rows[kinds.unusual], fragments, grammar)
    if found.damaged:
        settle(found, reader, grammar, _jobs(lines.filter(from_numpy(kinds.event))))
    texts, numbers = _merge(lines, kinds, found.timeline)
    return Lines(
        timeline=texts,
        timeline_line=numbers,
        timings=_merged_list(lines, kinds.timing, rows, found.timings),
        stamped=_merged_list(lines, kinds.stamped, rows, found.stamped),
        found=found,
        too_long=_count_long(data, kinds.offsets, limits.log_line_bytes),
        count=len(fragments),
    )


@dataclass(frozen=True)
class _Kinds:
    """Masks over the lines looked at: all but blank and overlong ones; ``rows`` are their indices in the file."""

    offsets: Numbers
    rows: Numbers
    lines: pa.LargeBinaryArray
    starts: Numbers
    event: Mask
    timing: Mask
    stamped: Mask
    unusual: Mask
    prefixed: Mask
    fragment: Mask


def _kinds(data: bytes, grammar: Grammar, limits: Limits) -> _Kinds:
    offsets = _offsets(data)
    rows = _lines_of_length(offsets, 2, limits.log_line_bytes)
    lines = _as_array(data, offsets)
    if len(rows) < len(lines):
        lines = lines.take(from_numpy(rows))
    starts = ints(pc.count_substring_regex(lines, grammar.start))
    single = starts == 1
    # One literal at a time: far faster than one pattern of alternatives that is tied to the line's start.
    tagged, *timing_kinds = (_starts_with(lines, tag) & single for tag in grammar.tags)
    timing = np.logical_or.reduce(timing_kinds) if timing_kinds else np.zeros(len(lines), np.bool_)
    stamped = _regex(lines, f"^{STAMP}") & single
    event = tagged & (
        (_regex(lines, grammar.known_line) & ~_regex(lines, grammar.bad_number))
        | (_regex(lines, f"^{LINE}\n?$") & ~_regex(lines, grammar.known_head))
    )
    unusual = (starts > 0) & ~(event | timing | stamped)
    prefixed = unusual & ((single & ~tagged) | (starts == 2))
    fragment = _regex(lines, grammar.fragment) & (starts == 0)
    return _Kinds(offsets, rows, lines, starts, event, timing, stamped, unusual, prefixed, fragment)


class _Reader:
    """One line's text by index, without its newline."""

    def __init__(self, data: bytes, offsets: Numbers, cap: int) -> None:
        self._data, self._offsets, self._cap = data, offsets, cap

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        start, end = int(self._offsets[index]), int(self._offsets[index + 1])
        if end - start > self._cap:
            return b"\x00"
        return self._data[start:end].rstrip(b"\n")


def _plain(data: bytes) -> bytes:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _ESCAPE.sub(b"", data) if b"\x1b" in data else data


def _offsets(data: bytes) -> Numbers:
    """Where each line begins, and the end. A log of nothing but newlines must not need several times this much."""
    octets = np.frombuffer(data, np.uint8)
    unended = 1 if data and not data.endswith(b"\n") else 0
    offsets = np.zeros(1 + np.count_nonzero(octets == 0x0A) + unended, np.int64)
    at = 1
    for begin in range(0, len(octets), STEP):
        found = np.flatnonzero(octets[begin : begin + STEP] == 0x0A)
        offsets[at : at + len(found)] = found + (begin + 1)
        at += len(found)
    if unended:
        offsets[-1] = len(data)
    return offsets


def _lines_of_length(offsets: Numbers, least: int, most: int) -> Numbers:
    """Indices of lines of so many bytes, newline included."""
    parts = []
    for begin in range(0, len(offsets) - 1, STEP):
        length = np.diff(offsets[begin : begin + STEP + 1])
        parts.append(np.flatnonzero((length >= least) & (length <= most)) + begin)
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _as_array(data: bytes, offsets: Numbers) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _jobs(lines: pa.LargeBinaryArray) -> list[bytes]:
    jobs: list[bytes] = pc.unique(pc.extract_regex(lines, f"^{LINE}\n?$").field("job")).to_pylist()
    return jobs


def _merge(
    lines: pa.LargeBinaryArray, kinds: _Kinds, repaired: list[tuple[int, bytes]]
) -> tuple[pa.LargeBinaryArray, Numbers]:
    regular, numbers = lines.filter(from_numpy(kinds.event)), kinds.rows[kinds.event] + 1
    if not repaired:
        return regular, numbers
    found = [text for _, text in repaired]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(text) for text in found], dtype=np.int64)))
    texts = pa.concat_arrays([regular, _as_array(b"".join(found), offsets)])
    numbers = np.concatenate((numbers, np.array([line for line, _ in repaired], np.int64)))
    order = np.argsort(numbers, kind="stable")
    return texts.take(from_numpy(order)), numbers[order]


def _merged_list(
    lines: pa.LargeBinaryArray, chosen: Mask, rows: Numbers, repaired: list[tuple[int, bytes]]
) -> list[tuple[int, bytes]]:
    texts = lines.filter(from_numpy(chosen)).to_pylist()
    numbers = (rows[chosen] + 1).tolist()
    regular = [(line, text.rstrip(b"\n")) for line, text in zip(numbers, texts, strict=True)]
    return sorted(regular + repaired, key=lambda pair: pair[0]) if repaired else regular


def _count_long(data: bytes, offsets: Numbers, cap: int) -> int:
    """Events in lines over the cap: each counts, and a line without any counts once."""
    tag, over = TAG.encode(), _lines_of_length(offsets, cap + 1, len(data))
    return sum(max(1, data.count(tag, int(offsets[i]), int(offsets[i + 1]))) for i in over)


def _regex(values: Any, pattern: str) -> Mask:
    return bools(pc.match_substring_regex(values, pattern))


def _starts_with(values: Any, text: bytes) -> Mask:
    return bools(pc.starts_with(values, text))
