"""Perfetto packets in bulk: one is made and serialised by the protobuf library, the rest are copies with values put in.

A million packets made one by one take minutes. Here a packet that holds marks where values vary is serialised once;
the marks are found in its bytes and overwritten, a column at a time, for all rows. Integers are written as varints of
the mark's fixed width (leading groups that are zero, as Perfetto's own writer does for sizes), which every decoder
reads; all else is the library's own encoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

TIME_MARK = (0x5A << 56) | 0x123456789ABCDE
"""Nine bytes as a varint: 63 bits."""
NAME_MARK = (0x6 << 28) | 0x1234567
CATEGORY_MARK = (0x5 << 28) | 0x7654321
"""Five bytes as a varint: 35 bits."""
FIXED_MARK = 0x0F1E2D3C4B5A6978
"""Eight bytes as they are: a fixed64, or a double of these bits."""

_CHUNK = 65_536


@dataclass(frozen=True)
class _Place:
    """Where a value stands: offset and width in bytes; ``varint`` or eight plain bytes."""

    at: int
    width: int
    varint: bool


class Template:
    """A packet, framed for a trace file, with places for values.

    :param marks: name of a value → its mark in the packet; each mark must stand there once. A mark that starts with
        ``fixed`` in its name is eight plain bytes.
    """

    def __init__(self, packet: schema.TracePacket, marks: Mapping[str, int]) -> None:
        trace = schema.Trace()
        trace.packet.append(packet)
        data = trace.SerializeToString()
        self._bytes = np.frombuffer(data, np.uint8)
        self._places: dict[str, _Place] = {}
        for name, mark in marks.items():
            varint = not name.startswith("fixed")
            code = varint_bytes(mark) if varint else mark.to_bytes(8, "little")
            if data.count(code) != 1:
                raise ValueError(f"the mark of {name!r} stands {data.count(code)} times in the packet")
            self._places[name] = _Place(data.index(code), len(code), varint)

    @property
    def length(self) -> int:
        """Bytes of one framed packet."""
        return len(self._bytes)

    def rows(self, values: Mapping[str, Ints], count: int) -> Bytes:
        """``count`` packets, a row each."""
        out = np.tile(self._bytes, (count, 1))
        for name, column in values.items():
            place = self._places[name]
            bits = column.view(np.uint64)
            if not place.varint:
                out[:, place.at : place.at + 8] = bits.reshape(-1, 1).view(np.uint8).reshape(-1, 8)
                continue
            for k in range(place.width):
                group = ((bits >> np.uint64(7 * k)) & np.uint64(0x7F)).astype(np.uint8)
                out[:, place.at + k] = group | (0x80 if k + 1 < place.width else 0)
        return out


@dataclass(frozen=True)
class Block:
    """Packets of one template: their values, and their places in the order of all."""

    template: Template
    values: Mapping[str, Ints]
    position: Ints


def interleaved(blocks: Sequence[Block]) -> list[bytes]:
    """The packets of all blocks in order of position (which run from 0 without a gap), in pieces."""
    total = sum(len(b.position) for b in blocks)
    length = np.zeros(total, np.int64)
    owner = np.zeros(total, np.int32)
    row = np.zeros(total, np.int64)
    for i, block in enumerate(blocks):
        length[block.position] = block.template.length
        owner[block.position] = i
        row[block.position] = np.arange(len(block.position))
    out = []
    for begin in range(0, total, _CHUNK):
        part = slice(begin, min(begin + _CHUNK, total))
        offset = np.cumsum(length[part]) - length[part]
        piece = np.empty(int(length[part].sum()), np.uint8)
        for i, block in enumerate(blocks):
            here = np.flatnonzero(owner[part] == i)
            if len(here):
                picked = row[part][here]
                rows = block.template.rows({name: column[picked] for name, column in block.values.items()}, len(here))
                place = offset[here]
                for k in range(block.template.length):
                    piece[place + k] = rows[:, k]
        out.append(piece.tobytes())
    return out


def varint_bytes(value: int) -> bytes:
    """The shortest varint of a value."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def framed(packet: Any) -> bytes:
    """One packet as a trace file holds it."""
    trace = schema.Trace()
    trace.packet.append(packet)
    data: bytes = trace.SerializeToString()
    return data
