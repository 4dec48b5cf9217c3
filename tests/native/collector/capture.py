"""A small reader of capture files for these tests, written from ``docs/capture-format.md`` and nothing else."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TYPES = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i4": "i", "i8": "q"}
NONE = 0xFFFFFFFF


@dataclass
class Capture:
    """What a file holds, and whether it ends as it should."""

    infos: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, list[dict[str, int]]] = field(default_factory=dict)
    strings: dict[int, bytes] = field(default_factory=dict)
    notices: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None
    whole: bool = True

    def table(self, name: str) -> list[dict[str, int]]:
        """Rows of a table, in order of the file."""
        return self.rows.get(name, [])

    def text(self, number: int) -> str | None:
        """A text by its number."""
        return None if number == NONE else self.strings[number].decode("utf-8", "backslashreplace")

    def slugs(self) -> dict[str, int]:
        """Counts of notices by slug."""
        counts: dict[str, int] = {}
        for notice in self.notices:
            counts[notice["slug"]] = counts.get(notice["slug"], 0) + notice["count"]
        return counts


def read(path: Path) -> Capture:
    """Reads a file to its last whole block; every sum and number is checked."""
    data = path.read_bytes()
    assert data[:64] == b"NVPCAP\r\n" + struct.pack("<II", 1, 64) + bytes(48)
    capture, at, expected, tables = Capture(), 64, 0, {}
    while at < len(data):
        header = data[at : at + 32]
        if len(header) < 32:
            capture.whole = False
            break
        magic, kind, flags, rows, size, payload_sum, header_sum, sequence = struct.unpack("<IHHIIIIQ", header)
        assert (magic, flags, sequence) == (0x4B4C4256, 0, expected)
        assert header_sum == zlib.crc32(header[:20] + header[24:])
        payload = data[at + 32 : at + 32 + size]
        end = at + 32 + size + -size % 8
        if end > len(data):
            capture.whole = False
            break
        assert payload_sum == zlib.crc32(payload)
        assert not any(data[at + 32 + size : end])
        assert capture.end is None, "the end block is the last"
        assert (expected == 0) == (kind == 1), "the schema comes first"
        if kind == 1:
            tables = {table["kind"]: table for table in json.loads(payload)["tables"]}
        elif kind == 2:
            capture.infos |= json.loads(payload)
        elif kind == 3:
            position = 0
            for _ in range(rows):
                number, length = struct.unpack_from("<II", payload, position)
                assert number not in capture.strings
                capture.strings[number] = payload[position + 8 : position + 8 + length]
                position += 8 + length
            assert position == size
        elif kind == 4:
            capture.end = json.loads(payload)
        elif kind == 5:
            capture.notices.append(json.loads(payload))
        else:
            table = tables[kind]
            assert size == rows * table["row_bytes"]
            into = capture.rows.setdefault(table["name"], [])
            for row in range(rows):
                base = row * table["row_bytes"]
                into.append(
                    {
                        one["name"]: struct.unpack_from("<" + TYPES[one["type"]], payload, base + one["offset"])[0]
                        for one in table["fields"]
                    }
                )
        at, expected = end, expected + 1
    return capture
