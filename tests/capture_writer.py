"""Writes capture files as docs/capture-format.md has them, from a few Python rows; shares nothing with the reader.

capture = Capture(pid=100)
capture.clock(monotonic=1_000, realtime=1_700_000_000_000_000_000)
capture.row("runtime", start=1_100, end=1_200, tid=101, name=capture.word("cudaMalloc"), correlationId=1)
path = capture.write(tmp_path / "p-100.nvcap")
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

ABSENT = 0xFFFFFFFF

_LAYOUTS: Mapping[str, tuple[int, str]] = {
    # name: kind, fields as TYPE:names
    "kernel": (
        16,
        "u8:start u8:end u8:graphNodeId u8:localMemoryTotal u4:name u4:deviceId u4:contextId u4:streamId "
        "u4:correlationId u4:graphId i4:gridX i4:gridY i4:gridZ i4:blockX i4:blockY i4:blockZ i4:staticSharedMemory "
        "i4:dynamicSharedMemory u4:sharedMemoryExecuted u4:localMemoryPerThread u4:registersPerThread u4:launchType",
    ),
    "memcpy": (
        17,
        "u8:start u8:end u8:bytes u8:graphNodeId u4:deviceId u4:contextId u4:streamId u4:correlationId u4:graphId "
        "u4:srcDeviceId u4:srcContextId u4:dstDeviceId u4:dstContextId u1:copyKind u1:srcKind u1:dstKind u1:flags",
    ),
    "memset": (
        18,
        "u8:start u8:end u8:bytes u8:graphNodeId u4:value u4:deviceId u4:contextId u4:streamId u4:correlationId "
        "u4:graphId u2:memKind u2:flags",
    ),
    "runtime": (19, "u8:start u8:end u4:tid u4:correlationId u4:cbid u4:name u4:returnValue"),
    "driver": (20, "u8:start u8:end u4:tid u4:correlationId u4:cbid u4:name u4:returnValue"),
    "synchronization": (
        21,
        "u8:start u8:end u8:eventSyncId u4:syncType u4:contextId u4:streamId u4:correlationId u4:eventId "
        "u4:returnValue",
    ),
    "overhead": (
        22,
        "u8:start u8:end u4:overheadKind u4:objectKind u4:tid u4:deviceId u4:contextId u4:streamId u4:correlationId",
    ),
    "memory": (
        23,
        "u8:start u8:address u8:bytes u8:pc u8:poolAddress u8:poolSize u8:poolUtilized u4:memoryOperationType "
        "u4:memKind u4:deviceId u4:contextId u4:streamId u4:correlationId u4:memoryPoolType u4:name u4:isAsync",
    ),
    "graph": (24, "u8:start u8:end u4:deviceId u4:contextId u4:streamId u4:correlationId u4:graphId"),
    "context": (25, "u4:contextId u4:deviceId u4:computeApiKind u4:nullStreamId u4:parentContextId"),
    "device": (
        26,
        "u8:globalMemorySize u8:globalMemoryBandwidth u4:id u4:name u4:computeMajor u4:computeMinor "
        "u4:numMultiprocessors u4:maxWarpsPerMultiprocessor u4:coreClockRate u4:l2CacheSize u4:numMemcpyEngines",
    ),
    "stream": (27, "u4:contextId u4:streamId u4:priority u4:flag u4:correlationId"),
    "nvtx_range": (
        28,
        "u8:start u8:end u8:rangeId u8:payload u4:tid u4:endTid u4:text u4:domain u4:category u4:categoryName u4:color "
        "u4:payloadType u4:type",
    ),
    "nvtx_mark": (
        29,
        "u8:start u8:payload u4:tid u4:text u4:domain u4:category u4:categoryName u4:color u4:payloadType",
    ),
    "thread_name": (30, "u4:tid u4:name u4:source"),
    "clock": (31, "u8:cupti u8:realtime u8:monotonic u8:uncertainty"),
    "gpu_metric_name": (32, "u4:metricId u4:deviceId u4:name u4:source u4:unit u4:scale"),
    "gpu_metric": (33, "u8:start u8:end u8:gpuStart i8:value u4:metricId u4:deviceId"),
}
KINDS = {name: kind for name, (kind, _) in _LAYOUTS.items()}
_CODES = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i4": "i", "i8": "q"}
_DEFAULT_ABSENT = ("name", "text", "domain", "categoryName", "tid", "endTid", "streamId", "source", "unit")


def fields(name: str) -> list[tuple[str, str]]:
    """(field, type) of a table, in order."""
    return [(part.split(":")[1], part.split(":")[0]) for part in _LAYOUTS[name][1].split()]


def block(kind: int, rows: int, payload: bytes, sequence: int, flags: int = 0) -> bytes:
    """One block, padded."""
    head = struct.pack("<IHHIII", 0x4B4C4256, kind, flags, rows, len(payload), zlib.crc32(payload))
    tail = struct.pack("<Q", sequence)
    return head + struct.pack("<I", zlib.crc32(head + tail)) + tail + payload + bytes(-len(payload) % 8)


def resealed(data: bytes) -> bytes:
    """The same file with every sum made to agree with what it covers, as far as blocks can be told."""
    out, at = bytearray(data), 64
    while at + 32 <= len(out):
        size = int.from_bytes(out[at + 12 : at + 16], "little")
        if size > len(out) - at - 32:
            break
        out[at + 16 : at + 20] = struct.pack("<I", zlib.crc32(out[at + 32 : at + 32 + size]))
        out[at + 20 : at + 24] = struct.pack("<I", zlib.crc32(bytes(out[at : at + 20] + out[at + 24 : at + 32])))
        at += 32 + size + -size % 8
    return bytes(out)


class Capture:
    """One process' file in the making. Rows are kept in the order given; ``flush`` begins a new block of each table."""

    def __init__(self, *, pid: int = 100, program: str = "prover", **info: object) -> None:
        self.info: dict[str, object] = {
            "collector": "0.1.0", "pid": pid, "ppid": 1, "program": program, "clock": "monotonic",
            "cupti_clock": "callback", "cupti": 130000, "cupti_headers": 26, "driver": 13000, "refused": [],
            "enabled": ["CONCURRENT_KERNEL", "RUNTIME"],
            "options": {"graph": "graph", "memory": True, "driver": "auto", "pm_hz": 0}, **info,
        }  # fmt: skip
        self.words: dict[bytes, int] = {}
        self._written_words = 0
        self._pending: dict[str, list[bytes]] = {}
        self.counts: dict[str, int] = {}
        self.blocks: list[tuple[int, int, bytes]] = []
        self.layouts = {name: fields(name) for name in _LAYOUTS}
        self.end: dict[str, object] | None = {}
        self.header = struct.pack("<8sII", b"NVPCAP\r\n", 1, 64) + bytes(48)

    def word(self, text: str | bytes) -> int:
        """The id of a text."""
        data = text.encode() if isinstance(text, str) else text
        return self.words.setdefault(data, len(self.words))

    def row(self, table: str, **values: int) -> None:
        """One row; what is not given is 0, or "not there" for ids that have such a value."""
        layout = self.layouts[table]
        unknown = set(values) - {name for name, _ in layout}
        assert not unknown, unknown
        packed = struct.pack(
            "<" + "".join(_CODES[kind] for _, kind in layout),
            *(values.get(name, ABSENT if name in _DEFAULT_ABSENT else 0) for name, _ in layout),
        )
        self._pending.setdefault(table, []).append(packed)
        self.counts[table] = self.counts.get(table, 0) + 1

    def clock(self, monotonic: int, realtime: int, cupti: int = 0) -> None:
        """One snapshot of the clocks."""
        known = {name for name, _ in self.layouts["clock"]}
        values = {"monotonic": monotonic, "realtime": realtime, "cupti": cupti, "uncertainty": 100}
        self.row("clock", **{name: value for name, value in values.items() if name in known})

    def notice(self, slug: str, count: int = 1, message: str = "") -> None:
        """One notice."""
        self.blocks.append((5, 1, json.dumps({"slug": slug, "count": count, "message": message}).encode()))

    def flush(self) -> None:
        """Put what is pending into blocks, words first."""
        fresh = list(self.words.items())[self._written_words :]
        if fresh:
            payload = b"".join(struct.pack("<II", number, len(data)) + data for data, number in fresh)
            self.blocks.append((3, len(fresh), payload))
            self._written_words = len(self.words)
        for table, rows in self._pending.items():
            self.blocks.append((KINDS[table], len(rows), b"".join(rows)))
        self._pending = {}

    def schema(self) -> dict[str, object]:
        """As the first block has it."""
        tables = []
        for name, layout in self.layouts.items():
            at, described = 0, []
            for label, kind in layout:
                described.append({"name": label, "type": kind, "offset": at})
                at += int(kind[1])
            tables.append({"kind": KINDS[name], "name": name, "row_bytes": at, "fields": described})
        return {"tables": tables}

    def bytes(self) -> bytes:
        """The whole file."""
        self.flush()
        said: list[tuple[int, int, bytes]] = [
            (1, 1, json.dumps(self.schema(), separators=(",", ":")).encode()),
            (2, 1, json.dumps(self.info).encode()),
            *self.blocks,
        ]
        if self.end is not None:
            totals = {
                "rows": self.counts, "dropped_by_cupti": 0, "dropped_by_us": 0, "nvtx_dropped": 0, "complete": True,
                **self.end,
            }  # fmt: skip
            said.append((4, 1, json.dumps(totals).encode()))
        return self.header + b"".join(block(*part, sequence) for sequence, part in enumerate(said))

    def write(self, path: Path) -> Path:
        """The whole file, on disk."""
        path.write_bytes(self.bytes())
        return path
