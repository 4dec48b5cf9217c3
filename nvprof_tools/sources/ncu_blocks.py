"""The outer frame of a ``.ncu-rep``: is the file whole, how many launches does it hold, and of which process.

The reader library opens a truncated report without a word and shows fewer launches. The frame is simple: the magic, a
header, then blocks; each has a length, a header that counts its sources and results and gives the size of its payload,
and the payload. Only frames are read here, a few hundred bytes a launch; what is inside is the library's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"NVR\0"
_SOURCES, _RESULTS, _PAYLOAD, _PROCESS = 1, 2, 5, 6
_PROCESS_ID = 1
_LARGEST_HEADER = 64 * 1024 * 1024


@dataclass(frozen=True)
class Frame:
    """``whole``: the blocks end exactly where the file does. ``process``: the one process all blocks name, else null."""

    whole: bool
    results: int
    process: int | None


def read_frame(path: Path) -> Frame:
    """Walk the blocks of a report."""
    size = path.stat().st_size
    results = 0
    processes: set[int] = set()
    whole = False
    with path.open("rb", buffering=0) as file:
        try:
            at = _header_end(file.fileno(), len(MAGIC))
            while at < size:
                header, at = _header(file.fileno(), at)
                fields = dict(_fields(header))
                results += _number(fields.get(_RESULTS))
                process = fields.get(_PROCESS)
                if isinstance(process, bytes):
                    processes.add(_number(dict(_fields(process)).get(_PROCESS_ID)))
                at += _number(fields.get(_PAYLOAD))
            whole = at == size
        except ValueError:
            whole = False
    processes.discard(0)
    return Frame(whole, results, processes.pop() if len(processes) == 1 else None)


def _header_end(descriptor: int, at: int) -> int:
    return _header(descriptor, at)[1]


def _header(descriptor: int, at: int) -> tuple[bytes, int]:
    length = int.from_bytes(_exactly(descriptor, 4, at), "little")
    if length > _LARGEST_HEADER:
        raise ValueError("no block header is that long")
    return _exactly(descriptor, length, at + 4), at + 4 + length


def _exactly(descriptor: int, count: int, at: int) -> bytes:
    data = os.pread(descriptor, count, at)
    if len(data) != count:
        raise ValueError("the file ends inside a block")
    return data


def _number(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a torn number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field number and value of each field of a message in protobuf wire form."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            number, at = _varint(data, at)
            yield key >> 3, number
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
        else:
            raise ValueError("an unknown wire type")
        if at + length > len(data):
            raise ValueError("a torn field")
        yield key >> 3, data[at : at + length]
        at += length
