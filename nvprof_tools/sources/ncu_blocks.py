"""The outer frame of a ``.ncu-rep``: is the file whole, how many launches does it hold, and of which process.

The reader library opens a truncated report without a word and shows fewer launches. The frame is simple: the magic, a
header, then blocks; each has a length, a header that counts its sources and results and gives the size of its payload,
and the payload, in which each source and result has its length before it. Frames are a few hundred bytes a launch.

A launch's result also carries the layout of every section of the profiler's window, which the library parses before it
shows a single counter: three quarters of its time and memory. :func:`write_slim` copies a report without them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"NVR\0"
_SOURCES, _RESULTS, _PAYLOAD, _PROCESS = 1, 2, 5, 6
_PROCESS_ID = 1
_SECTIONS = 17
"""The field of a result that holds the sections' layout and tables; counters are in another one."""
_LARGEST_HEADER = 64 * 1024 * 1024
_LARGEST_RESULT = 256 * 1024 * 1024
_MOST_FIELDS = 3_000_000
_COPY = 4 * 1024 * 1024


@dataclass(frozen=True)
class Frame:
    """``whole``: the blocks end where the file does. ``process``: the one process that all blocks name, else null."""

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


def write_slim(path: Path, descriptor: int) -> bool:
    """Copy a report without the sections of its results. False: the report is not of a form that can be cut down.

    :param descriptor: an empty file, open for writing; of no use when False comes back.
    :raises OSError: it cannot be written.
    """
    size = path.stat().st_size
    budget = _MOST_FIELDS
    with path.open("rb", buffering=0) as file:
        source = file.fileno()
        try:
            at = _header_end(source, len(MAGIC))
            _write(descriptor, _exactly(source, at, 0))
            while at < size:
                header, at = _header(source, at)
                fields = dict(_fields(header))
                if not _number(fields.get(_RESULTS)):
                    payload = _number(fields.get(_PAYLOAD))
                    _write(descriptor, len(header).to_bytes(4, "little") + header)
                    _copy(source, descriptor, at, payload)
                    at += payload
                    continue
                entries, at, used = _slim_entries(source, at, fields, budget)
                budget -= used
                payload_bytes = b"".join(len(e).to_bytes(4, "little") + e for e in entries)
                slim = _with_payload(header, len(payload_bytes))
                _write(descriptor, len(slim).to_bytes(4, "little") + slim + payload_bytes)
        except ValueError:
            return False
    return True


def _slim_entries(source: int, at: int, fields: dict[int, int | bytes], budget: int) -> tuple[list[bytes], int, int]:
    """A block's entries without sections, where the next block begins, and how many fields were looked at."""
    sources, results = _number(fields.get(_SOURCES)), _number(fields.get(_RESULTS))
    end = at + _number(fields.get(_PAYLOAD))
    entries: list[bytes] = []
    used = 0
    for number in range(sources + results):
        entry, at = _entry(source, at)
        if number >= sources:
            entry, seen = _without(entry, _SECTIONS, budget - used)
            used += seen
        entries.append(entry)
    if at != end:
        raise ValueError("the entries do not fill the payload")
    return entries, at, used


def _entry(source: int, at: int) -> tuple[bytes, int]:
    length = int.from_bytes(_exactly(source, 4, at), "little")
    if length > _LARGEST_RESULT:
        raise ValueError("no result is that long")
    return _exactly(source, length, at + 4), at + 4 + length


def _without(message: bytes, unwanted: int, budget: int) -> tuple[bytes, int]:
    """A message without one of its fields, and how many fields it has."""
    kept: list[bytes] = []
    at = begin = seen = 0
    end = len(message)
    while at < end:
        seen += 1
        if seen > budget:
            raise ValueError("too many fields")
        start = at
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 2:
            length, at = _varint(message, at)
            at += length
        elif wire == 0:
            _, at = _varint(message, at)
        elif wire in {1, 5}:
            at += 8 if wire == 1 else 4
        else:
            raise ValueError("an unknown wire type")
        if at > end:
            raise ValueError("a torn field")
        if key >> 3 == unwanted:
            kept.append(message[begin:start])
            begin = at
    kept.append(message[begin:])
    return b"".join(kept), seen


def _with_payload(header: bytes, size: int) -> bytes:
    """A block header that states another payload size."""
    rest, _ = _without(header, _PAYLOAD, _MOST_FIELDS)
    return rest + bytes([_PAYLOAD << 3]) + _to_varint(size)


def _to_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _copy(source: int, target: int, at: int, count: int) -> None:
    while count:
        data = _exactly(source, min(count, _COPY), at)
        _write(target, data)
        at += len(data)
        count -= len(data)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
