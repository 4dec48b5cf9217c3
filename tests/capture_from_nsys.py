"""The rows of an nsys export, written as a capture of our own collector: what both say must come out the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tests.capture_writer import ABSENT, Capture

BOOT = 10**15
"""Where session time 0 lies on CLOCK_MONOTONIC."""
_LAUNCH = {1: 0, 2: 1, 3: 2}
_MEMORY = {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 0}
_OVERHEADS = {"buffer flush": 1 << 16, "instrumentation": 2 << 16, "resource": 3 << 16, "lazy": 5 << 16,
              "module loading": 4 << 16, "full": 6 << 16}  # fmt: skip
_DRIVER = 1
_PAYLOADS = {1: "uint64Value", 2: "int64Value", 4: "uint32Value", 5: "int32Value"}
_TID = 0xFFFFFF


class Converter:
    """One SQLite export to captures, one a process."""

    def __init__(self, database: Path) -> None:
        self.connection = sqlite3.connect(database)
        self.connection.row_factory = sqlite3.Row
        self.tables = {r[0] for r in self.connection.execute("SELECT name FROM sqlite_master")}
        self.strings = {r["id"]: r["value"] for r in self.rows("StringIds")}
        self.captures: dict[int, Capture] = {}
        self.domains: dict[tuple[int, int], str] = {}
        self.categories: dict[tuple[int, int, int], str] = {}

    def rows(self, table: str) -> Iterator[sqlite3.Row]:
        if table in self.tables:
            yield from self.connection.execute(f'SELECT * FROM "{table}"')

    def capture(self, global_id: int) -> Capture:
        pid = global_id >> 24 & 0xFFFFFF
        if pid not in self.captures:
            said = {r["name"].rpartition(":")[2] for r in self.rows("META_DATA_CAPTURE") if r["value"] == "true"}
            memory = "COLLECT_GPU_MEMORY_USAGE" in said
            options = {"graph": "graph", "memory": memory}
            self.captures[pid] = Capture(pid=pid, program=self.programs.get(pid, ""), options=options)
        return self.captures[pid]

    def write(self, folder: Path) -> Path:
        """All of it; gives the folder."""
        self.programs = {
            r["globalPid"] >> 24 & 0xFFFFFF: (r["name"] or "").rpartition("/")[2] for r in self.rows("PROCESSES")
        }
        self._calls()
        self._work()
        self._nvtx()
        self._rest()
        utc = next(r["utcEpochNs"] for r in self.rows("TARGET_INFO_SESSION_START_TIME"))
        end = next(r["duration"] for r in self.rows("ANALYSIS_DETAILS"))
        folder.mkdir()
        for pid, capture in self.captures.items():
            for device in self.rows("TARGET_INFO_GPU"):
                capture.row(
                    "device", id=device["id"], name=capture.word(device["name"]),
                    coreClockRate=device["clockRate"] // 1000,
                    globalMemorySize=device["totalMemory"], globalMemoryBandwidth=device["memoryBandwidth"] // 1000,
                    numMultiprocessors=device["smCount"], maxWarpsPerMultiprocessor=device["maxWarpsPerSm"],
                    computeMajor=device["computeMajor"], computeMinor=device["computeMinor"],
                )  # fmt: skip
            for time in (0, end // 2, end):
                capture.clock(BOOT + time, utc + time)
            capture.write(folder / f"prover-{pid}.nvcap")
        return folder

    def _calls(self) -> None:
        for r in self.rows("CUPTI_ACTIVITY_KIND_RUNTIME"):
            capture = self.capture(r["globalTid"])
            capture.row(
                "driver" if r["eventClass"] == _DRIVER else "runtime", start=BOOT + r["start"], end=BOOT + r["end"],
                tid=r["globalTid"] & _TID, correlationId=r["correlationId"] or 0,
                name=capture.word(self.strings[r["nameId"]]), returnValue=_column(r, "returnValue") or 0,
            )  # fmt: skip

    def _work(self) -> None:
        sizes = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
                 "dynamicSharedMemory")  # fmt: skip
        for r in self.rows("CUPTI_ACTIVITY_KIND_KERNEL"):
            capture = self.capture(r["globalPid"])
            name = self.strings.get(_column(r, "mangledName")) or self.strings[r["shortName"]]
            capture.row(
                "kernel", **_where(r), name=capture.word(name), graphNodeId=r["graphNodeId"] or 0,
                launchType=_LAUNCH.get(r["launchType"], 3), **{s: r[s] or 0 for s in sizes},
            )  # fmt: skip
        for r in self.rows("CUPTI_ACTIVITY_KIND_MEMCPY"):
            self.capture(r["globalPid"]).row(
                "memcpy", **_where(r), bytes=r["bytes"], copyKind=r["copyKind"], graphNodeId=r["graphNodeId"] or 0,
                srcKind=_MEMORY[r["srcKind"]], dstKind=_MEMORY[r["dstKind"]],
            )  # fmt: skip
        for r in self.rows("CUPTI_ACTIVITY_KIND_MEMSET"):
            self.capture(r["globalPid"]).row(
                "memset", **_where(r), bytes=r["bytes"], value=r["value"], graphNodeId=r["graphNodeId"] or 0
            )
        for r in self.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
            self.capture(r["globalPid"]).row("graph", **_where(r), graphId=r["graphId"])
        contexts = set()
        for r in self.rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
            where = _where(r)
            contexts.add((r["globalPid"], where["contextId"], where.pop("deviceId")))
            self.capture(r["globalPid"]).row("synchronization", **where, syncType=r["syncType"])
        for process, context, device in sorted(contexts):
            self.capture(process).row("context", contextId=context, deviceId=device)

    def _nvtx(self) -> None:
        rows = list(self.rows("NVTX_EVENTS"))
        text = {id(r): r["text"] if r["text"] is not None else self.strings.get(r["textId"]) for r in rows}
        for r in rows:
            process = r["globalTid"] >> 24
            if r["eventType"] == 75:
                self.domains[process, r["domainId"]] = text[id(r)]
            elif r["eventType"] == 33:
                self.categories[process, r["domainId"], r["category"]] = text[id(r)]
            elif r["eventType"] == 39:
                capture = self.capture(r["globalTid"])
                capture.row("thread_name", tid=r["globalTid"] & _TID, name=capture.word(text[id(r)]), source=1)
        for r in rows:
            if r["eventType"] not in {34, 59, 60, 70, 71}:
                continue
            capture, process = self.capture(r["globalTid"]), r["globalTid"] >> 24
            category, domain = r["category"] or 0, r["domainId"] or 0
            named = self.categories.get((process, domain, category))
            payload = next(((k, r[c]) for k, c in _PAYLOADS.items() if _column(r, c) is not None), (0, 0))
            word = text[id(r)]
            common = {
                "start": BOOT + r["start"], "tid": r["globalTid"] & _TID, "category": category,
                "text": ABSENT if word is None else capture.word(word), "payloadType": payload[0],
                "payload": payload[1] & (1 << 64) - 1,
                "domain": capture.word(self.domains[process, domain]) if (process, domain) in self.domains else ABSENT,
                "categoryName": ABSENT if named is None else capture.word(named),
            }  # fmt: skip
            if r["eventType"] == 34:
                capture.row("nvtx_mark", **common)
            else:
                end = r["end"]
                capture.row(
                    "nvtx_range", **common, end=0 if end is None else BOOT + end, rangeId=_column(r, "rangeId") or 0,
                    type=int(r["eventType"] in {60, 71}),
                    endTid=ABSENT if r["endGlobalTid"] is None else r["endGlobalTid"] & _TID,
                )  # fmt: skip

    def _rest(self) -> None:
        for r in self.rows("PROFILER_OVERHEAD"):
            name = self.strings[r["nameId"]].lower()
            kind = next((k for part, k in _OVERHEADS.items() if part in name), 2 << 16)
            self.capture(r["globalTid"]).row(
                "overhead", start=BOOT + r["start"], end=BOOT + r["end"], tid=r["globalTid"] & _TID, overheadKind=kind
            )
        for r in self.rows("CUDA_GPU_MEMORY_USAGE_EVENTS"):
            self.capture(r["globalPid"]).row(
                "memory", start=BOOT + r["start"], address=r["address"] & (1 << 64) - 1, bytes=r["bytes"],
                memKind=_MEMORY[r["memKind"]], memoryOperationType=r["memoryOperationType"] + 1,
                deviceId=_column(r, "deviceId") or 0, correlationId=_column(r, "correlationId") or 0,
            )  # fmt: skip
        for r in self.rows("ThreadNames"):
            if r["globalTid"] >> 24 & 0xFFFFFF in self.captures:
                capture = self.capture(r["globalTid"])
                capture.row(
                    "thread_name", tid=r["globalTid"] & _TID, name=capture.word(self.strings[r["nameId"]]), source=0
                )
        if self.captures:
            capture = next(iter(self.captures.values()))
            for r in self.rows("TARGET_INFO_GPU_METRICS"):
                capture.row(
                    "gpu_metric_name", metricId=r["metricId"], deviceId=r["typeId"] & 0xFF, scale=1,
                    name=capture.word(r["metricName"]),
                )  # fmt: skip
            for r in self.rows("GPU_METRICS"):
                capture.row(
                    "gpu_metric", start=BOOT + r["timestamp"], value=r["value"], metricId=r["metricId"],
                    deviceId=r["typeId"] & 0xFF,
                )  # fmt: skip


def _column(row: sqlite3.Row, name: str) -> object:
    return row[name] if name in row.keys() else None  # noqa: SIM118 - a row has no other way


def _where(r: sqlite3.Row) -> dict[str, int]:
    return {
        "start": BOOT + r["start"], "end": BOOT + r["end"], "deviceId": r["deviceId"], "contextId": r["contextId"],
        "streamId": r["streamId"] & ABSENT, "correlationId": r["correlationId"] or 0,
    }  # fmt: skip
