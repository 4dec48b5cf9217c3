"""The native library's look-ups, sweeps and sums over intervals, arrays in and arrays out (``intervals/*.h``).

Every function gives null where the library is not there: the caller then goes a slower way to the same result.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nvprof_tools.native.library import Cutting, Layer, Pieces, Walls, native_library

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

Room = Callable[[int, Any], npt.NDArray[Any]]
"""Makes an array to fill, as ``np.empty`` does."""

SWEEP_PARTS = 64


def covering(begin: Ints, end: Ints, at: Ints) -> Ints | None:
    """For each instant of ``at`` the last interval ``[begin, end)`` in the order given that covers it, −1 for none.

    ``begin`` must rise.
    """
    library = native_library()
    if library is None or len(end) != len(begin):
        return None
    given = _contiguous(begin, end, at)
    found = np.empty(len(at), np.int64)
    begins, ends, instants, out = _pointers(*given, found)
    return None if library.nvp_covering(begins, ends, len(begin), instants, len(at), out) else found


def innermost(begin: Ints, end: Ints, label: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Labelled intervals flattened: ``(begin, end, label)`` of disjoint pieces, in each the label of the last interval
    in the order given that covers it; pieces that touch have different labels.

    ``begin`` must rise and every interval be longer than nothing; one with a negative label covers the others and gives
    none.
    """
    found = _flattened("nvp_innermost", begin, end, label)
    if found is None:
        return None
    some = found[2] >= 0
    return found[0][some], found[1][some], found[2][some]


def oldest(begin: Ints, end: Ints, age: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Intervals with ages flattened: ``(begin, end, age)`` of disjoint pieces, in each the least age of all intervals
    that cover it; pieces that touch have different ages.

    ``begin`` must rise; intervals that are empty or reversed cover nothing.
    """
    return _flattened("nvp_oldest", begin, end, age)


def _flattened(function: str, begin: Ints, end: Ints, number: Ints) -> tuple[Ints, Ints, Ints] | None:
    library = native_library()
    if library is None or not len(begin) == len(end) == len(number):
        return None
    given = _contiguous(begin, end, number)
    made = [np.empty(2 * len(begin), np.int64) for _ in given]
    pieces = ctypes.c_uint64()
    pointers = _pointers(*given, *made)
    if getattr(library, function)(*pointers[:3], len(begin), *pointers[3:], ctypes.addressof(pieces)):
        return None
    start, stop, shown = (values[: pieces.value] for values in made)
    return start, stop, shown


def locate(first: npt.NDArray[np.uint64], begin: Ints, end: Ints, slot: Ints, at: Ints) -> npt.NDArray[np.int64] | None:
    """For each ``(slot, at)`` the last of the slot's intervals, in the order given, that covers it; −1 for none.

    Slot ``s`` has the intervals ``first[s]`` to ``first[s + 1]``, whose ``begin`` rises; a negative slot has none. Null
    too where the instants of some slot do not rise.
    """
    library = native_library()
    if library is None:
        return None
    begin, end, slot, at = _contiguous(begin, end, slot, at)
    found = np.empty(len(at), np.int64)
    begins, ends, slots, instants, out = _pointers(begin, end, slot, at, found)
    failed = library.nvp_locate(first.ctypes.data, len(first) - 1, begins, ends, slots, instants, len(at), out)
    return None if failed else found


def cut(
    first: npt.NDArray[np.uint64],
    rows: tuple[Ints, Ints, Codes, Codes],
    lane: Ints,
    low: Ints,
    high: Ints,
    shift: int,
    room: Room = np.empty,
) -> tuple[Ints, Ints, Codes, Codes] | None:
    """What of each row lies in each stretch ``[low, high)`` of a lane, moved by ``shift``, in order of the stretches.

    :param first: lane ``l`` has the rows ``first[l]`` to ``first[l + 1]``, disjoint and in order.
    :param rows: ``(begin, end, number, other number)``, and so is what is returned.
    """
    library = native_library()
    if library is None:
        return None
    begin, end, lane, low, high = _contiguous(rows[0], rows[1], lane, low, high)
    number, other = (np.ascontiguousarray(one, np.int32) for one in rows[2:])
    cutting = Cutting(first.ctypes.data, *_pointers(begin, end, number, other), *_pointers(lane, low, high), len(lane))
    count = library.nvp_cut_count(ctypes.addressof(cutting))
    times = room(count, np.int64), room(count, np.int64)
    numbers = room(count, np.int32), room(count, np.int32)
    library.nvp_cut_fill(ctypes.addressof(cutting), shift, *_pointers(*times, *numbers))
    return *times, *numbers


@dataclass(frozen=True)
class SweepLayer:
    """Disjoint intervals in order, none empty: each of category ``kind`` (one a row, or one for all) and with the
    sub-key ``label`` (−1: none; null: none has one)."""

    begin: Ints
    end: Ints
    kind: Codes | int
    label: Codes | None


@dataclass(frozen=True)
class SweepPieces:
    """Pieces of walls in order: bounds in their wall's own time, the wall, category and sub-key (−1: none) of each."""

    begin: Ints
    end: Ints
    wall: Codes
    kind: Codes
    label: Codes


def sweep(
    layers: Sequence[SweepLayer],
    base: Ints,
    length: Ints,
    start: Ints,
    rest: int,
    threads: int = 1,
    room: Room = np.empty,
) -> SweepPieces | None:
    """Walls ``[base, base + length)`` filled with pieces: each instant is of the first layer that covers it, else of
    category ``rest``. A piece ends where its interval ends or an earlier layer's begins. ``start`` is where each wall
    begins in its own time. The result does not depend on ``threads``.
    """
    library = native_library()
    if library is None:
        return None
    kept: list[npt.NDArray[np.generic]] = []

    def address(values: Ints | Codes, kind: type[np.int64] | type[np.int32]) -> int:
        kept.append(np.ascontiguousarray(values, kind))
        return int(kept[-1].ctypes.data)

    def described(layer: SweepLayer) -> Layer:
        every = layer.kind if isinstance(layer.kind, int) else -1
        kind = None if isinstance(layer.kind, int) else address(layer.kind, np.int32)
        label = None if layer.label is None else address(layer.label, np.int32)
        return Layer(address(layer.begin, np.int64), address(layer.end, np.int64), len(layer.begin), kind, label, every)

    given = (Layer * len(layers))(*map(described, layers))
    walls = Walls(*(address(values, np.int64) for values in (base, length, start)), len(base))
    first = np.zeros(SWEEP_PARTS + 1, np.uint64)
    if library.nvp_sweep_count(given, len(layers), ctypes.addressof(walls), threads, first.ctypes.data):
        return None
    count = int(first[-1])
    made = SweepPieces(room(count, np.int64), room(count, np.int64), *(room(count, np.int32) for _ in range(3)))
    out = ctypes.addressof(pieces := _described(made))
    if library.nvp_sweep_fill(given, len(layers), ctypes.addressof(walls), rest, threads, first.ctypes.data, out):
        return None
    del pieces
    return made


def filled(pieces: SweepPieces, start: Ints, end: Ints) -> bool | None:
    """Whether pieces fill the walls ``[start, end)`` to the ns: without a gap, in order."""
    library = native_library()
    if library is None:
        return None
    start, end = _contiguous(start, end)
    described = _described(pieces)
    return bool(library.nvp_filled(ctypes.addressof(described), len(pieces.begin), *_pointers(start, end), len(start)))


def _described(pieces: SweepPieces) -> Pieces:
    return Pieces(*_pointers(pieces.begin, pieces.end, pieces.wall, pieces.kind, pieces.label))


def sums(
    group: Codes, code: Codes, label: Codes | None, begin: Ints, end: Ints, keys: tuple[int, int]
) -> tuple[Codes, Ints, Ints] | None:
    """``(group, key, sum of end − begin)`` for each pair that occurs, in order of both. ``keys`` are how many codes and
    labels there are, all of which lie below them; a row's key is ``code · labels + label``, or its code where ``label``
    is null. Rows with a negative code or label are left out. ``group`` must rise.
    """
    library = native_library()
    if library is None:
        return None
    codes, width = keys
    numbers = [np.ascontiguousarray(one, np.int32) for one in (group, code, *(() if label is None else (label,)))]
    bounds = _contiguous(begin, end)
    made = (np.empty(len(group), np.int32), np.empty(len(group), np.int64), np.empty(len(group), np.int64))
    found = ctypes.c_uint64()
    if library.nvp_sums(
        *_pointers(*numbers[:2]),
        None if label is None else numbers[2].ctypes.data,
        *_pointers(*bounds),
        len(group),
        width,
        codes * (1 if label is None else width),
        *_pointers(*made),
        ctypes.addressof(found),
    ):
        return None
    own, key, total = made
    return own[: found.value].copy(), key[: found.value].copy(), total[: found.value].copy()


def shared(begin: Ints, end: Ints, code: Codes, codes: int, low: Ints, high: Ints) -> Ints | None:
    """How much of each code lies in a set of time ``[low, high)``. Both lists of intervals are disjoint and in order;
    every code is at least 0 and below ``codes``."""
    library = native_library()
    if library is None:
        return None
    total = np.zeros(codes, np.int64)
    begin, end, low, high = _contiguous(begin, end, low, high)
    code = np.ascontiguousarray(code, np.int32)
    rows = _pointers(begin, end, code)
    library.nvp_shared(*rows, len(begin), *_pointers(low, high), len(low), total.ctypes.data)
    return total


def subtract(begin: Ints, end: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints] | None:
    """What of the intervals ``[begin, end)`` lies in none of ``[low, high)``. Both are disjoint and in order, none
    empty."""
    library = native_library()
    if library is None:
        return None
    begin, end, low, high = _contiguous(begin, end, low, high)
    made = [np.empty(len(begin) + len(low), np.int64) for _ in range(2)]
    rows, spans = _pointers(begin, end), _pointers(low, high)
    count = library.nvp_subtract(*rows, len(begin), *spans, len(low), *_pointers(*made))
    return made[0][:count], made[1][:count]


def _contiguous(*values: Ints) -> list[Ints]:
    return [np.ascontiguousarray(one, np.int64) for one in values]


def _pointers(*values: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> list[int]:
    return [int(one.ctypes.data) for one in values]
