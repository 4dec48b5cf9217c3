"""Profiler identifiers to dense rows of ``threads``, ``processes`` and ``devices``.

A global thread id is ``<hardware:8><vm:8><process:24><thread:24>``; with the thread part zero it names the process.
Rows are numbered when everything is read; until then each identifier has a provisional code in order of appearance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.model.arrays import Bools, Ints, flat, from_numpy, ints, to_numpy, validity

PROCESS_BITS = 24
PROCESS_MASK = (1 << 24) - 1
UNKNOWN_PROCESS = 0
MOST_IDENTIFIERS = 200_000
"""No capture has more threads, processes or devices; a file that says so is damaged."""

Codes = npt.NDArray[np.int32]


def factorise(column: pa.Array | pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Codes and distinct values of a column, in order of appearance; a null has code −1."""
    array = flat(column)
    if pa.types.is_integer(array.type) and len(array) and array.null_count == 0:
        values = to_numpy(array)
        if bool((values == values[0]).all()):  # most often there is one process, device or context
            return np.zeros(len(array), np.int32), array.slice(0, 1)
    encoded = array.dictionary_encode()
    codes = to_numpy(encoded.indices).astype(np.int32, copy=False)
    if encoded.indices.null_count:
        codes = np.where(validity(encoded.indices), codes, np.int32(-1))
    return codes, encoded.dictionary


def combine(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], width: int) -> tuple[Codes, Ints]:
    """Codes of the pairs that occur, and the pairs as ``first * width + second`` in order of their values.

    :param width: above every ``second``.
    """
    key = first.astype(np.int64) * width + second
    span = int(key.max()) + 1 if len(key) else 0
    if span > max(4 * len(key), 1 << 16):
        pairs, codes = np.unique(key, return_inverse=True)
        return codes.astype(np.int32), pairs
    pairs = np.flatnonzero(np.bincount(key, minlength=span))
    table = np.zeros(max(span, 1), np.int32)
    table[pairs] = np.arange(len(pairs), dtype=np.int32)
    return table[key], pairs


def numbered(*columns: tuple[Ints, int]) -> tuple[Codes, list[tuple[int, ...]]]:
    """Codes of the distinct combinations of columns of codes from −1 on, and those combinations.

    :param columns: each with a bound above its codes.
    """
    codes = np.zeros(len(columns[0][0]), np.int32)
    combos: list[tuple[int, ...]] = [()]
    for column, bound in columns:
        codes, pairs = combine(codes, column + 1, bound + 1)
        combos = [(*combos[k // (bound + 1)], k % (bound + 1) - 1) for k in pairs.tolist()]
    return codes, combos


def distinct(*columns: pa.Array) -> tuple[Codes, list[tuple[int, ...]]]:
    """Codes of the distinct combinations of integer columns, and those combinations; a null counts as 0."""
    codes = np.zeros(len(columns[0]), np.int32)
    combos: list[tuple[int, ...]] = [()]
    for column in columns:
        part, found = factorise(from_numpy(ints(column)))
        values = ints(found).tolist()
        codes, pairs = combine(codes, part, max(len(values), 1))
        combos = [(*combos[k // len(values)], values[k % len(values)]) for k in pairs.tolist()]
    return codes, combos


class Interned:
    """Distinct keys with codes in order of appearance, and their final numbers in sorted order."""

    def __init__(self) -> None:
        self.codes: dict[tuple[int, ...], int] = {}

    def code(self, key: tuple[int, ...]) -> int:
        """The provisional code of a key."""
        if len(self.codes) >= MOST_IDENTIFIERS and key not in self.codes:
            message = f"the capture names more than {MOST_IDENTIFIERS:,} threads, processes or devices"
            raise SourceError("limit-identifiers", message, "the export is damaged: export the report again")
        return self.codes.setdefault(key, len(self.codes))

    def ordered(self) -> list[tuple[int, ...]]:
        """All keys, sorted."""
        return sorted(self.codes)

    def final(self) -> Codes:
        """Provisional code → row number."""
        table = np.zeros(max(len(self.codes), 1), np.int32)
        for row, key in enumerate(self.ordered()):
            table[self.codes[key]] = row
        return table


def _unsigned(value: int) -> int:
    return value & 0xFFFF_FFFF_FFFF_FFFF


def process_of(global_id: int) -> tuple[int, int]:
    """(pid, machine) of an unsigned global id; machine is its hardware and vm bytes."""
    return (global_id >> PROCESS_BITS) & PROCESS_MASK, global_id >> (2 * PROCESS_BITS)


class Identities:
    """What the rows read so far refer to."""

    def __init__(self) -> None:
        self.processes = Interned()
        self.threads = Interned()
        self.devices = Interned()
        """Keys: (process code, CUDA ordinal) of activity, or (−1, physical id) of samples."""

    def _process_code(self, global_id: int) -> int:
        return self.processes.code(process_of(_unsigned(global_id)))

    def thread_codes(self, column: pa.Array | pa.ChunkedArray) -> tuple[Codes, Codes]:
        """Provisional (process, thread) codes of a globalTid column; −1 where null."""
        codes, distinct = factorise(column)
        process = np.full(len(distinct) + 1, -1, np.int32)
        thread = np.full(len(distinct) + 1, -1, np.int32)
        for i, value in enumerate(ints(distinct).tolist()):
            process[i] = self._process_code(value)
            pid, machine = process_of(_unsigned(value))
            thread[i] = self.threads.code((pid, machine, value & PROCESS_MASK))
        return process[codes], thread[codes]

    def process_codes(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        """Provisional process codes of a globalPid column. Null is the only process there is, else an unknown one."""
        codes, distinct = factorise(column)
        table = np.full(len(distinct) + 1, -1, np.int32)
        for i, value in enumerate(ints(distinct).tolist()):
            table[i] = self._process_code(value)
        found = table[codes]
        if (found < 0).any():
            alone = 0 if len(self.processes.codes) == 1 else self._process_code(UNKNOWN_PROCESS)
            found = np.where(found < 0, np.int32(alone), found)
        return found

    def device_codes(self, process: Codes, ordinal: Ints) -> Codes:
        """Provisional device codes of CUDA ordinals within processes."""
        codes, distinct = factorise(from_numpy(ordinal))
        values = ints(distinct).tolist()
        pair, pairs = combine(process, codes, max(len(values), 1))
        found = [self.devices.code((key // len(values), values[key % len(values)])) for key in pairs.tolist()]
        return np.array(found or [0], np.int32)[pair]

    def sampled_device_codes(self, physical: Ints) -> Codes:
        """Provisional device codes of physical GPU numbers."""
        codes, distinct = factorise(from_numpy(physical))
        table = np.array([self.devices.code((-1, v)) for v in ints(distinct).tolist()] or [0], np.int32)
        return table[codes]


def known(codes: Codes) -> Bools:
    """Where an identifier was given."""
    return codes >= 0
