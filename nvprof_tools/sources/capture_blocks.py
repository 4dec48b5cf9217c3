"""The container of our collector's files: a header, then blocks with sums of their own.

The file may end anywhere, since the program may be killed at any instant: blocks are taken as long as they are whole.
Everything is read with ``pread``: a file that shrinks meanwhile is an error, never a fault of memory.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB, Limits

MAGIC = b"NVPCAP\r\n"
SUFFIX = ".nvcap"
VERSION = 1
HEADER = struct.Struct("<8sII")
HEADER_BYTES = 64
BLOCK_MAGIC = 0x4B4C4256
BLOCK = struct.Struct("<IHHIIIIQ")
"""magic, kind, flags, rows, payload bytes, payload's CRC-32, CRC-32 of the other header bytes, sequence."""

SCHEMA, INFO, STRINGS, END, NOTICE = 1, 2, 3, 4, 5
FIRST_EVENT = 16

MOST_BLOCKS = 4_000_000
"""Of a whole capture: some 30 a second, that is more than a day."""
MOST_PAYLOAD = 16 * MIB
"""Collectors make no larger ones; a reader holds one at a time in memory."""
_CHUNK = 4 * MIB
AGAIN = "capture the run again"


@dataclass(frozen=True, slots=True)
class Block:
    """A whole block: ``at`` is where its payload begins, ``size`` that payload's bytes."""

    kind: int
    rows: int
    at: int
    size: int


@dataclass
class Contents:
    """What a file holds, and what of it cannot be used.

    ``tail`` bytes follow the last whole block; ``damaged`` blocks have a wrong payload sum, with ``damaged_rows`` rows;
    ``missing`` is how many numbers the sequence of blocks leaves out.
    """

    size: int
    blocks: list[Block] = field(default_factory=list)
    tail: int = 0
    damaged: int = 0
    damaged_rows: int = 0
    missing: int = 0

    def of(self, kind: int) -> Iterator[Block]:
        """Blocks of a kind, in file order."""
        return (block for block in self.blocks if block.kind == kind)


def exactly(descriptor: int, size: int, at: int) -> bytes:
    """``size`` bytes at ``at``.

    :raises SourceError: ``file-changed``: the file is shorter than it was.
    """
    parts, left = [], size
    while left:
        part = os.pread(descriptor, left, at)
        if not part:
            raise SourceError(
                "file-changed", "the capture was cut short while it was read", "wait until it is complete"
            )
        parts.append(part)
        at, left = at + len(part), left - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def scan(descriptor: int, limits: Limits, most_blocks: int = MOST_BLOCKS) -> Contents:
    """Find every whole block of an open file and check its sums.

    :param most_blocks: that are still to be had.
    :raises SourceError: it is no capture, of a newer format, or over a limit.
    """
    size = os.fstat(descriptor).st_size
    if size > limits.file_bytes:
        raise SourceError("limit-file", f"the capture has {size:,} bytes, more than allowed", "capture a shorter time")
    found = Contents(size)
    at = _begin(descriptor, size)
    expected = 0
    while True:
        block = _block(descriptor, at, size)
        if block is None:
            break
        kind, rows, payload, check, sequence = block
        begin = at + BLOCK.size
        at = begin + payload + -payload % 8
        if len(found.blocks) + found.damaged >= most_blocks:
            raise SourceError("limit-blocks", f"the capture has more than {MOST_BLOCKS:,} blocks", AGAIN)
        found.missing += sequence - expected if sequence > expected else 0
        expected = max(sequence + 1, expected)
        if _sum(descriptor, begin, payload) == check:
            found.blocks.append(Block(kind, rows, begin, payload))
        else:
            found.damaged += 1
            found.damaged_rows += rows if kind >= FIRST_EVENT else 0
    # The padding of the last block may be what was not written any more: nothing is lost with it.
    found.tail = max(size - at, 0)
    return found


def _begin(descriptor: int, size: int) -> int:
    """Where blocks begin."""
    if size < HEADER_BYTES:
        raise SourceError("capture-damaged", f"the capture ends after {size} bytes, within its header", AGAIN)
    magic, version, begin = HEADER.unpack(exactly(descriptor, HEADER.size, 0))
    if magic != MAGIC:
        raise SourceError("not-a-trace", "the file is no capture of the collector", "give a .nvcap file")
    if version != VERSION:
        message = f"the capture's format is version {version}; this is known up to {VERSION}"
        raise SourceError("capture-version", message, "read it with the version of nvprof-tools that wrote it")
    if begin < HEADER_BYTES or begin % 8:
        raise SourceError("capture-damaged", "the capture's header is damaged", AGAIN)
    return int(begin)


def _block(descriptor: int, at: int, size: int) -> tuple[int, int, int, int, int] | None:
    """(kind, rows, payload bytes, payload's sum, sequence) of the block at ``at``; null where none is whole."""
    if size - at < BLOCK.size:
        return None
    head = exactly(descriptor, BLOCK.size, at)
    magic, kind, flags, rows, payload, check, own, sequence = BLOCK.unpack(head)
    if magic != BLOCK_MAGIC or flags != 0 or own != zlib.crc32(head[24:], zlib.crc32(head[:20])):
        return None
    return None if payload > min(size - at - BLOCK.size, MOST_PAYLOAD) else (kind, rows, payload, check, sequence)


def _sum(descriptor: int, at: int, size: int) -> int:
    total = 0
    for begin in range(at, at + size, _CHUNK):
        total = zlib.crc32(exactly(descriptor, min(_CHUNK, at + size - begin), begin), total)
    return total
