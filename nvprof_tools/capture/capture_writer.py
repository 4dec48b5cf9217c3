"""Writes a capture file from Python, block by block: what a killed program wrote is there (docs/capture-format.md).

For :mod:`nvprof_tools.capture.in_process` only: the collector proper has a writer of its own.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ABSENT = 0xFFFF_FFFF
_HEADER = struct.pack("<8sII48x", b"NVPCAP\r\n", 1, 64)
_BLOCK_MAGIC = 0x4B4C4256
_SCHEMA, _INFO, _STRINGS, _END, _NOTICE = 1, 2, 3, 4, 5
_CODES = {"u1": "B", "u4": "I", "u8": "Q", "i4": "i"}
_WORK = "u8:start u8:end u4:deviceId u4:contextId u4:streamId u4:correlationId"
_TABLES: Mapping[str, tuple[int, str]] = {
    "kernel": (
        16,
        f"{_WORK} u8:graphNodeId u4:name u4:graphId i4:gridX i4:gridY i4:gridZ i4:blockX i4:blockY i4:blockZ "
        "i4:staticSharedMemory i4:dynamicSharedMemory u4:registersPerThread u4:launchType",
    ),
    "memcpy": (17, f"{_WORK} u8:bytes u8:graphNodeId u1:copyKind u1:srcKind u1:dstKind u1:flags"),
    "memset": (18, f"{_WORK} u8:bytes u8:graphNodeId u4:value u4:memKind"),
    "runtime": (19, "u8:start u8:end u4:tid u4:correlationId u4:cbid u4:name u4:returnValue"),
    "driver": (20, "u8:start u8:end u4:tid u4:correlationId u4:cbid u4:name u4:returnValue"),
    "synchronization": (21, "u8:start u8:end u4:contextId u4:streamId u4:correlationId u4:syncType"),
    "overhead": (22, "u8:start u8:end u4:overheadKind u4:tid"),
    "memory": (
        23,
        "u8:start u8:address u8:bytes u4:memoryOperationType u4:memKind u4:deviceId u4:contextId u4:correlationId",
    ),
    "graph": (24, f"{_WORK} u4:graphId"),
    "context": (25, "u4:contextId u4:deviceId"),
    "device": (
        26,
        "u8:globalMemorySize u8:globalMemoryBandwidth u4:id u4:name u4:computeMajor u4:computeMinor "
        "u4:numMultiprocessors u4:maxWarpsPerMultiprocessor u4:coreClockRate",
    ),
    "nvtx_range": (28, "u8:start u8:end u4:tid u4:endTid u4:text u4:domain u4:category u4:categoryName u4:type"),
    "nvtx_mark": (29, "u8:start u4:tid u4:text u4:domain u4:category u4:categoryName"),
    "thread_name": (30, "u4:tid u4:name u4:source"),
    "clock": (31, "u8:cupti u8:realtime u8:monotonic u8:uncertainty"),
}


class CaptureWriter:
    """One file in the making; methods may be called from any thread.

    :param path: must not exist.
    :raises OSError: it cannot be made.
    """

    def __init__(self, path: Path, info: Mapping[str, Any]) -> None:
        self.lost_blocks = 0
        self.rows: dict[str, int] = {}
        self._lock = threading.RLock()
        self._sequence = 0
        self._words: dict[str, int] = {}
        self._fresh: list[bytes] = []
        self._fields = {name: [f.split(":") for f in text.split()] for name, (_, text) in _TABLES.items()}
        self._pack = {name: struct.Struct("<" + "".join(_CODES[t] for t, _ in f)) for name, f in self._fields.items()}
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._write(_HEADER)
        self._json(_SCHEMA, {"tables": [self._described(name) for name in _TABLES]})
        self._json(_INFO, info)

    def _described(self, name: str) -> dict[str, Any]:
        fields, at = [], 0
        for kind, label in self._fields[name]:
            fields.append({"name": label, "type": kind, "offset": at})
            at += int(kind[1])
        return {"kind": _TABLES[name][0], "name": name, "row_bytes": at, "fields": fields}

    def word(self, text: str) -> int:
        """The id of a text."""
        with self._lock:
            known = self._words.get(text)
            if known is None:
                known = self._words[text] = len(self._words)
                data = text.encode("utf-8", "replace")[: 1 << 16]
                self._fresh.append(struct.pack("<II", known, len(data)) + data)
            return known

    def packed(self, table: str, values: Mapping[str, int]) -> bytes:
        """One row; a field that is not given, or does not fit, is all bits set."""
        out = []
        for kind, label in self._fields[table]:
            bits = 8 * int(kind[1]) - (kind[0] == "i")
            value = values.get(label, (1 << bits) - 1)
            out.append(value if -(1 << bits) * (kind[0] == "i") <= value < 1 << bits else (1 << bits) - 1)
        return self._pack[table].pack(*out)

    def add(self, table: str, rows: Sequence[bytes]) -> None:
        """A block of packed rows; words that are new come before it."""
        with self._lock:
            if self._fresh:
                self._block(_STRINGS, len(self._fresh), b"".join(self._fresh))
                self._fresh = []
            if rows:
                self.rows[table] = self.rows.get(table, 0) + len(rows)
                self._block(_TABLES[table][0], len(rows), b"".join(rows))

    def notice(self, what: str, count: int, message: str) -> None:
        """Something was lost or refused."""
        self._json(_NOTICE, {"slug": what, "count": count, "message": message})

    def close(self, totals: Mapping[str, Any]) -> None:
        """The end."""
        with self._lock:
            if self._descriptor < 0:
                return
            self._json(_END, {"rows": self.rows, "dropped_by_us": self.lost_blocks, **totals})
            os.close(self._descriptor)
            self._descriptor = -1

    def _json(self, kind: int, said: Mapping[str, Any]) -> None:
        self._block(kind, 1, json.dumps(said).encode())

    def _block(self, kind: int, rows: int, payload: bytes) -> None:
        with self._lock:
            head = struct.pack("<IHHIII", _BLOCK_MAGIC, kind, 0, rows, len(payload), zlib.crc32(payload))
            tail = struct.pack("<Q", self._sequence)
            self._sequence += 1
            own = struct.pack("<I", zlib.crc32(tail, zlib.crc32(head)))
            self._write(head + own + tail + payload + bytes(-len(payload) % 8))

    def _write(self, data: bytes) -> None:
        """A full disk is counted; the program goes on."""
        if self._descriptor < 0 or self.lost_blocks:
            return
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self.lost_blocks += 1
