"""Writes SQLite exports laid out like nsys', of any schema generation, from a few Python rows.

    export = Export("2023.4")
    export.call(100, 200, "cudaLaunchKernel_v7000", correlation=1)
    export.kernel(150, 400, "saxpy", correlation=1)
    path = export.write(tmp_path / "trace.sqlite")

Columns a generation does not have are left out of its tables, and values given for them are dropped, so one scenario
serves every generation. Tables without rows are not made, as nsys does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

GENERATIONS: Mapping[str, str | None] = {
    "2020.5": None,
    "2022.1": "2.9.1",
    "2022.4": "3.0.0",
    "2023.3": "3.4.0",
    "2023.4": "3.7.2",
    "2024.5": "3.13.2",
    "2024.6": "3.16.1",
    "2025.3": "3.20.3",
    "2025.5": "3.23.3",
    "2026.1": "3.24.14",
    "2026.2": "3.25.0",
    "2026.4": "3.28.1",
}
"""nsys version → schema version; the first states none."""

_ORDER = {version: i for i, version in enumerate(GENERATIONS)}

# NAME, or NAME! where it is NOT NULL, or NAME>V / NAME<V where it came with V / was last seen before V; T: text.
_GPU = "start! end! deviceId! contextId! greenContextId>2023.4 streamId! correlationId globalPid"
_RAW: Mapping[str, tuple[str, str]] = {
    # table: (since, columns)
    "StringIds": ("2020.5", "id! T:value!"),
    "META_DATA_EXPORT": ("2023.3", "T:name! T:value"),
    "META_DATA_CAPTURE": ("2023.3", "T:name! T:value"),
    "EXPORT_META_DATA": ("2022.1", "T:name! T:value"),
    "ANALYSIS_DETAILS": ("2022.1", "globalVid! duration! startTime! stopTime!"),
    "TARGET_INFO_SESSION_START_TIME": (
        "2022.1",
        "utcEpochNs T:utcTime T:localTime systemClockNs>2026.1 sessionStartCntVctNs>2026.4",
    ),
    "TARGET_INFO_SYSTEM_ENV": ("2020.5", "globalVid T:devStateName! T:name! nameEnum! T:value!"),
    "TARGET_INFO_GPU": (
        "2020.5",
        "vmId! id!>2022.1 deviceId!<2022.1 T:name T:busLocation isDiscrete totalMemory>2022.1 memoryBandwidth>2022.1 "
        "clockRate>2022.1 smCount>2022.1 T:uuid>2022.1 cuDevice>2022.1 maxWarpsPerSm>2022.1 computeMajor>2022.1 "
        "computeMinor>2022.1 numaNodeId>2026.4",
    ),
    "TARGET_INFO_CUDA_DEVICE": ("2025.3", "gpuId cudaId! pid! T:uuid>2026.1 numMultiprocessors>2026.1"),
    "PROCESSES": ("2022.1", "globalPid pid T:name"),
    "ThreadNames": ("2020.5", "nameId! priority globalTid"),
    "ProcessStreams": ("2020.5", "globalPid! filenameId! contentId!"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "2020.5",
        "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "2020.5",
        f"{_GPU} demangledName! shortName! mangledName>2022.1 launchType cacheConfig registersPerThread! gridX! gridY! "
        "gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! "
        "localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone>2026.1 "
        "graphId>2026.1 clusterX>2026.1 T:tensorSizeMinusOneElements!>2026.2",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "2020.5",
        f"{_GPU} bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId "
        "migrationCause graphNodeId virtualAddress>2022.1 copyCount>2026.1",
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": ("2020.5", f"{_GPU} value! bytes! graphNodeId memKind"),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "2020.5",
        f"{_GPU} deprecatedSyncType>2025.3 syncType! eventId! eventSyncId>2025.3",
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ("2024.5", f"{_GPU} graphId! graphExecId!"),
    "NVTX_EVENTS": (
        "2020.5",
        "start! end eventType! rangeId category color T:text globalTid endGlobalTid textId domainId uint64Value "
        "int64Value R:doubleValue uint32Value int32Value R:floatValue jsonTextId T:jsonText T:binaryData>2024.6 "
        "eventId!>2026.4",
    ),
    "OSRT_API": (
        "2020.5",
        "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId! argumentsId!>2025.5",
    ),
    "PROFILER_OVERHEAD": (
        "2020.5",
        "start! end! globalTid correlationId<2022.1 nameId! overheadType!>2026.1 returnValue!<2026.1",
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ("2026.1", "start! end! eventClass! globalTid correlationId nameId overheadType!"),
    "DIAGNOSTIC_EVENT": ("2024.5", "timestamp! timestampType! source! severity! T:text! globalPid"),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "2022.4",
        "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! T:name correlationId "
        "streamId>2024.6",
    ),
    "GPU_METRICS": ("2023.4", "rawTimestamp!>2026.4 timestamp typeId! metricId! value!"),
    "TARGET_INFO_GPU_METRICS": ("2023.4", "typeId! sourceId! T:typeName! metricId! T:metricName!"),
    "GENERIC_EVENTS": (
        "2020.5",
        "genericEventId!>2026.4 rawTimestamp! timestamp typeId! globalTid>2026.4 T:data",
    ),
    "GENERIC_EVENT_TYPES": ("2020.5", "typeId! sourceId! T:data"),
    "GENERIC_EVENT_SOURCES": ("2020.5", "sourceId! nameId T:data"),
}


class _Column:
    def __init__(self, text: str) -> None:
        self.kind = {"T:": "TEXT", "R:": "REAL"}.get(text[:2], "INTEGER")
        name = text.removeprefix("T:").removeprefix("R:")
        name, _, since = name.partition(">")
        name, _, until = name.partition("<")
        self.name = name.removesuffix("!")
        self.required = name.endswith("!")
        self.since, self.until = since or "2020.5", until

    def exists(self, version: str) -> bool:
        return _ORDER[self.since] <= _ORDER[version] and (not self.until or _ORDER[version] < _ORDER[self.until])

    def filled(self, value: object) -> object:
        """The value; where none is given and one must be, an empty one."""
        if value is not None or not self.required:
            return value
        return "" if self.kind == "TEXT" else 0


def columns_of(table: str, version: str) -> list[_Column]:
    """The columns a table has in a generation."""
    return [c for c in map(_Column, _RAW[table][1].split()) if c.exists(version)]


def global_pid(pid: int, hardware: int = 1) -> int:
    """A process as nsys packs it, signed as SQLite stores it."""
    value = hardware << 56 | pid << 24
    return value - (1 << 64) if value >= 1 << 63 else value


class Export:
    """One export in the making. Times are session ns; ``shift`` is added to each as ``--ts-normalize`` would."""

    def __init__(
        self, version: str = "2025.3", *, pid: int = 100, duration: int | None = 1_000_000, shift: int = 0
    ) -> None:
        self.version, self.pid, self.shift, self.duration = version, pid, shift, duration
        self.tables: dict[str, list[dict[str, object]]] = {}
        self.strings: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.utc: int | None = 1_700_000_000_000_000_000
        self.metadata: dict[str, str] = {}
        self.capture: list[tuple[str, str]] = [("CAPTURE_EVENT_TYPE", "Cuda")]

    def string(self, text: str) -> int:
        """The id of a string; ids start above zero and have gaps, as real ones do."""
        return self.strings.setdefault(text, 3 + 2 * len(self.strings))

    def tid(self, thread: int, pid: int | None = None) -> int:
        """A thread as nsys packs it."""
        return global_pid(self.pid if pid is None else pid) | thread

    def add(self, table: str, **values: object) -> None:
        """One row. Unknown names are refused, so that a test cannot misspell a column and pass."""
        known = {c.name for c in map(_Column, _RAW[table][1].split())}
        assert set(values) <= known, set(values) - known
        self.tables.setdefault(table, []).append(values)

    def _at(self, time: int | None) -> int | None:
        return None if time is None else time + self.shift

    def call(
        self, start: int | None, end: int | None, name: str, *, correlation: int | None = None, thread: int = 100,
        pid: int | None = None, event_class: int = 0, result: int = 0,
    ) -> None:  # fmt: skip
        """One CUDA API call."""
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=self._at(start), end=self._at(end), eventClass=event_class,
            globalTid=self.tid(thread, pid), correlationId=correlation, nameId=self.string(name), returnValue=result,
        )  # fmt: skip

    def kernel(
        self, start: int | None, end: int | None, name: str = "kernel", *, correlation: int | None = None,
        pid: int | None = None, device: int = 0, context: int = 1, stream: int = 7, **more: object,
    ) -> None:  # fmt: skip
        """One kernel."""
        more = {"demangledName": self.string(f"void {name}<int>(int *)"), "gridX": 4, "gridY": 1, "gridZ": 1,
                "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 32, "launchType": 1, **more}  # fmt: skip
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL", **self._work(start, end, correlation, pid, device, context, stream),
            shortName=self.string(name), **more,
        )  # fmt: skip

    def copy(
        self, start: int | None, end: int | None, kind: int = 1, *, size: int = 4096, correlation: int | None = None,
        pid: int | None = None, device: int = 0, context: int = 1, stream: int = 7, **more: object,
    ) -> None:  # fmt: skip
        """One copy; ``kind`` as nsys numbers it, 1 is host to device."""
        work = self._work(start, end, correlation, pid, device, context, stream)
        self.add("CUPTI_ACTIVITY_KIND_MEMCPY", **work, bytes=size, copyKind=kind, **more)

    def memset(self, start: int, end: int, *, size: int = 64, correlation: int | None = None, stream: int = 7) -> None:
        """One memset."""
        work = self._work(start, end, correlation, None, 0, 1, stream)
        self.add("CUPTI_ACTIVITY_KIND_MEMSET", **work, bytes=size, value=0)

    def graph(self, start: int, end: int, *, correlation: int | None = None, stream: int = 7) -> None:
        """One graph launch traced as a whole."""
        work = self._work(start, end, correlation, None, 0, 1, stream)
        self.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **work, graphId=1, graphExecId=2)

    def sync(self, start: int, end: int, kind: int = 3, *, correlation: int | None = None, stream: int = 7) -> None:
        """One synchronisation; ``kind`` 3 is of a stream."""
        work = self._work(start, end, correlation, None, 0, 1, stream)
        self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **work, syncType=kind)

    def _work(
        self, start: int | None, end: int | None, correlation: int | None, pid: int | None, device: int, context: int,
        stream: int,
    ) -> dict[str, object]:  # fmt: skip
        return {
            "start": self._at(start), "end": self._at(end), "deviceId": device, "contextId": context,
            "streamId": stream, "correlationId": correlation, "globalPid": global_pid(self.pid if pid is None else pid),
        }  # fmt: skip

    def nvtx(
        self, start: int, end: int | None, text: str | None = None, *, kind: int = 59, thread: int = 100,
        pid: int | None = None, registered: str | None = None, domain: int = 0, **more: object,
    ) -> None:  # fmt: skip
        """One NVTX row; ``kind`` 59 push/pop, 60 start/end, 34 mark, 75 domain, 33 category, 39 thread name."""
        self.add(
            "NVTX_EVENTS", start=self._at(start), end=self._at(end), eventType=kind, text=text, domainId=domain,
            textId=None if registered is None else self.string(registered), globalTid=self.tid(thread, pid), **more,
        )  # fmt: skip

    def os_call(self, start: int, end: int, name: str, *, thread: int = 100, nesting: int | None = 0) -> None:
        """One operating-system call."""
        self.add(
            "OSRT_API", start=self._at(start), end=self._at(end), eventClass=27, globalTid=self.tid(thread),
            nameId=self.string(name), nestingLevel=nesting,
        )  # fmt: skip

    def overhead(self, start: int, end: int, name: str, *, kind: int = 1, thread: int = 100, table: str = "") -> None:
        """One row of the profiler's overhead."""
        self.add(
            table or "PROFILER_OVERHEAD", start=self._at(start), end=self._at(end), globalTid=self.tid(thread),
            nameId=self.string(name), overheadType=kind,
        )  # fmt: skip

    def say(self, text: str, severity: int = 2, time: int = 0) -> None:
        """One diagnostic; severity 2 is a warning."""
        self.add("DIAGNOSTIC_EVENT", timestamp=self._at(time), timestampType=1, source=3, severity=severity, text=text)

    def metric(self, time: int, value: int, name: str = "SMs Active [Throughput %]", *, gpu: int = 0) -> None:
        """One GPU metric sample."""
        kind = (1 << 56) + (1 << 40) + gpu
        described = self.tables.setdefault("TARGET_INFO_GPU_METRICS", [])
        number = next((d["metricId"] for d in described if d["metricName"] == name and d["typeId"] == kind), None)
        if number is None:
            number = len(described)
            self.add("TARGET_INFO_GPU_METRICS", typeId=kind, metricId=number, metricName=name)
        self.add("GPU_METRICS", timestamp=self._at(time), typeId=kind, metricId=number, value=value)

    def memory(
        self, time: int, size: int, *, free: bool = False, address: int = 0x7F00_0000_0000, kind: int = 2
    ) -> None:
        """One allocation or free of device memory."""
        self.add(
            "CUDA_GPU_MEMORY_USAGE_EVENTS", start=self._at(time), globalPid=global_pid(self.pid), contextId=1,
            address=address - (1 << 64) if address >= 1 << 63 else address, bytes=size, memKind=kind,
            memoryOperationType=int(free),
        )  # fmt: skip

    def output(self, name: str, content: str) -> None:
        """What the program wrote, as nsys keeps it."""
        self.add(
            "ProcessStreams",
            globalPid=global_pid(self.pid),
            filenameId=self.string(name),
            contentId=self.string(content),
        )

    def board(self, number: int, *, ordinal: int | None = None, name: str = "NVIDIA H200") -> None:
        """One physical GPU."""
        self.add(
            "TARGET_INFO_GPU", id=number, deviceId=number, name=name, cuDevice=ordinal, smCount=132,
            totalMemory=1 << 37, computeMajor=9, computeMinor=0, maxWarpsPerSm=64, clockRate=1_980_000_000,
            memoryBandwidth=4_800_000_000_000,
        )  # fmt: skip

    def process(self, pid: int, name: str) -> None:
        """One named process."""
        self.add("PROCESSES", globalPid=global_pid(pid), pid=pid, name=name)

    def thread_name(self, thread: int, name: str) -> None:
        """One name of a thread."""
        self.add("ThreadNames", nameId=self.string(name), priority=20, globalTid=self.tid(thread))

    def _describe(self) -> None:
        schema = GENERATIONS[self.version]
        if schema is not None:
            table = "META_DATA_EXPORT" if _ORDER[self.version] >= _ORDER["2023.3"] else "EXPORT_META_DATA"
            facts = {"EXPORT_PRODUCT_VERSION": f"{self.version}.1", "EXPORT_SCHEMA_VERSION": schema, **self.metadata}
            for name, value in facts.items():
                self.add(table, name=name, value=value)
            if self.duration is not None:
                start = 500_000 + self.shift
                self.add("ANALYSIS_DETAILS", duration=self.duration, startTime=start, stopTime=start + self.duration)
            if self.utc is not None:
                self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=self.utc)
        if table_exists("META_DATA_CAPTURE", self.version):
            for name, value in self.capture:
                self.add("META_DATA_CAPTURE", name=name, value=value)

    def write(self, path: Path, *, shuffle: int | None = None) -> Path:
        """Write it; ``shuffle`` is the seed of an order of rows."""
        if "StringIds" not in self.tables:
            self._describe()
            self.string("[Unknown]")
            for text, number in self.strings.items():
                self.add("StringIds", id=number, value=text)
        database = sqlite3.connect(path)
        database.execute("PRAGMA synchronous=OFF")
        for table, rows in self.tables.items():
            if rows and table_exists(table, self.version):
                _write(database, self.names.get(table, table), columns_of(table, self.version), _ordered(rows, shuffle))
        database.commit()
        database.close()
        return path


def table_exists(table: str, version: str) -> bool:
    """Whether a generation has the table; metric samples were JSON events before they had one."""
    if table == "EXPORT_META_DATA":
        return _ORDER["2022.1"] <= _ORDER[version] < _ORDER["2023.3"]
    return _ORDER[_RAW[table][0]] <= _ORDER[version]


def _ordered(rows: list[dict[str, object]], shuffle: int | None) -> list[dict[str, object]]:
    if shuffle is None:
        return rows
    import random

    mixed = list(rows)
    random.Random(shuffle).shuffle(mixed)
    return mixed


def _write(database: sqlite3.Connection, name: str, columns: list[_Column], rows: list[dict[str, object]]) -> None:
    body = ", ".join(f'"{c.name}" {c.kind}{" NOT NULL" if c.required else ""}' for c in columns)
    database.execute(f'CREATE TABLE "{name}" ({body})')
    values = [[c.filled(row.get(c.name)) for c in columns] for row in rows]
    database.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', values)


UNSIGNED = {"globalTid", "globalPid", "endGlobalTid", "address", "typeId"}


def to_columnar(database: Path, folder: Path, kind: str) -> Path:
    """The same export as ``parquet`` or ``arrow`` files in ``folder``, or as ``streams`` in one file.

    As nsys does, Arrow forms have unsigned columns where SQLite has signed ones, and Parquet widens to 64 bits.
    """
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    connection = sqlite3.connect(database)
    streams = []
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        rows = connection.execute(f'SELECT * FROM "{name}"')
        labels = [d[0] for d in rows.description]
        declared = {r[1]: r[2] for r in connection.execute(f'PRAGMA table_info("{name}")')}
        columns = list(zip(*rows.fetchall(), strict=True)) or [()] * len(labels)
        arrays = []
        for label, values in zip(labels, columns, strict=True):
            if declared[label] == "TEXT":
                arrays.append(pa.array(values, pa.string()))
            elif declared[label] == "REAL":
                arrays.append(pa.array(values, pa.float64()))
            elif label in UNSIGNED:
                arrays.append(pa.array([None if v is None else v & (1 << 64) - 1 for v in values], pa.uint64()))
            else:
                arrays.append(pa.array(values, pa.int64()))
        table = pa.table(arrays, names=labels)
        if kind == "parquet":
            parquet.write_table(table, folder / f"{name}.parquet", version="1.0")
        elif kind == "arrow":
            with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
        else:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema.with_metadata({"table_name": name})) as writer:
                writer.write_table(table)
            streams.append(sink.getvalue().to_pybytes())
    connection.close()
    if kind == "streams":
        path = folder / "export.arrow"
        path.write_bytes(b"".join(streams))
        return path
    return folder
