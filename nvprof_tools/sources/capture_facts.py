"""What a capture says besides its events, as the small tables of an nsys export."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.model.arrays import Ints, from_numpy, strings
from nvprof_tools.model.kernel_names import base_name
from nvprof_tools.sources import capture_columns as kinds
from nvprof_tools.sources.capture_blocks import AGAIN, VERSION
from nvprof_tools.sources.capture_clock import FAR, LATE_NS, wall_clock
from nvprof_tools.sources.capture_columns import ABSENT, OVERHEAD_WORDS, OVERHEADS
from nvprof_tools.sources.capture_layout import text, whole
from nvprof_tools.sources.capture_process import BASE, MOST_TEXT, SIGNATURE, Process
from nvprof_tools.sources.capture_tables import METRIC_TYPE, integers, metric_ids

_UNSAFE = re.compile(r"[^\w .,:;%+*-]")
_NVTX_NAMED = 1


@dataclass(frozen=True)
class Session:
    """When the capture began and ended, ns of CLOCK_MONOTONIC; ``utc``: what to add for ns since 1970; ``stepped``: by
    how much that changed meanwhile. Null: not known."""

    origin: int
    end: int | None
    utc: int | None
    stepped: int


def session(processes: Sequence[Process]) -> Session:
    """The span that the snapshots of all processes cover; of a file that was cut, to its last event."""
    first = [int(p.clocks.monotonic.min()) for p in processes if len(p.clocks)]
    last = [_last(p) for p in processes if len(p.clocks)]
    found = wall_clock([p.clocks for p in processes])
    utc, stepped = (None, 0) if found is None else found
    if not first:
        return Session(_earliest(processes), None, None, 0)
    return Session(min(first), max(last), utc, stepped)


def _last(process: Process) -> int:
    snapshot = int(process.clocks.monotonic.max())
    if process.end is not None:
        return snapshot
    return max([snapshot, *(t for t in _extremes(process, "end", np.max, snapshot + LATE_NS))])


def _earliest(processes: Sequence[Process]) -> int:
    starts = [t for p in processes for t in _extremes(p, "start", np.min, FAR - 1)]
    return min(starts, default=0)


def _extremes(process: Process, name: str, choose: Any, most: int) -> list[int]:
    """The extreme of a time in each block that has one, among those from 1 to ``most``."""
    found = []
    for kind in process.sound:
        if not process.has(kind, name):
            continue
        for rows in process.rows(kind):
            times = rows[name].astype(np.uint64, copy=False)
            times = times[(times != 0) & (times <= np.uint64(most))]
            if len(times):
                found.append(int(choose(times)))
    return found


def small_tables(processes: Sequence[Process], span: Session) -> dict[str, pa.Table]:
    """Every table that is no event table."""
    tables = {
        "StringIds": _strings(processes),
        "META_DATA_EXPORT": _pairs(_exported(processes)),
        "META_DATA_CAPTURE": _pairs(_captured(processes)),
        "TARGET_INFO_SYSTEM_ENV": _pairs(_system(processes)),
        "PROCESSES": _processes(processes),
        "ThreadNames": _threads(processes),
        "TARGET_INFO_GPU": _boards(processes),
        "TARGET_INFO_GPU_METRICS": _metrics(processes),
    }
    if span.utc is not None:
        tables["TARGET_INFO_SESSION_START_TIME"] = _table(utcEpochNs=[span.origin + span.utc])
    if span.end is not None:
        tables["ANALYSIS_DETAILS"] = _table(duration=[span.end - span.origin])
    return tables


def _table(**columns: Sequence[int | None] | Sequence[str | None]) -> pa.Table:
    arrays = [
        strings(values) if any(isinstance(v, str) for v in values) else integers(values)  # type: ignore[arg-type]
        for values in columns.values()
    ]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _pairs(pairs: Sequence[tuple[str, str]]) -> pa.Table:
    return pa.Table.from_arrays(
        [strings([n for n, _ in pairs]), strings([v for _, v in pairs])], names=["name", "value"]
    )


def fact(said: Mapping[str, Any], name: str) -> str | None:
    """A fact as plain words; null where there is none."""
    value = said.get(name)
    found = text(said, name, 80) if isinstance(value, str) else None if whole(said, name) is None else str(value)
    return None if found is None else _UNSAFE.sub("?", found)


def _exported(processes: Sequence[Process]) -> list[tuple[str, str]]:
    found = [("EXPORT_SCHEMA_VERSION", f"{VERSION}.0")]
    for process in processes:
        for name, key in (("COLLECTOR_VERSION", "collector"), ("CUPTI_VERSION", "cupti")):
            value = fact(process.info, key)
            if value is not None:
                found.append((name, value))
    return found


def _captured(processes: Sequence[Process]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for process in processes:
        said = process.info.get("options")
        options = said if isinstance(said, dict) else {}
        enabled = process.info.get("enabled")
        if isinstance(enabled, list) and enabled:
            found.append(("CAPTURE_EVENT_TYPE", "Cuda"))
        if options.get("graph") in {"graph", "node"}:
            found.append(("CUDA_GRAPH_TRACE_OPTIONS:MODE", str(options["graph"]).capitalize()))
        if options.get("memory") is True:
            found.append(("COLLECT_GPU_MEMORY_USAGE", "true"))
        pm = process.info.get("pm")
        if isinstance(pm, dict) and pm.get("state") == "on" and whole(pm, "hz"):
            found.append(("GPU_METRICS_OPTIONS:SAMPLING_FREQUENCY", str(whole(pm, "hz"))))
    return list(dict.fromkeys(found))


def _system(processes: Sequence[Process]) -> list[tuple[str, str]]:
    versions = [whole(process.info, "driver") for process in processes]
    return [("CudaDriverVersion", str(version)) for version in dict.fromkeys(versions) if version]


def _processes(processes: Sequence[Process]) -> pa.Table:
    # The path says where the program lay, which is nobody's business.
    names = [(text(process.info, "program") or "").rpartition("/")[2] for process in processes]
    return pa.Table.from_arrays(
        [integers([p.global_pid for p in processes]), integers([p.pid for p in processes]), strings(names)],
        names=["globalPid", "pid", "name"],
    )


def _threads(processes: Sequence[Process]) -> pa.Table:
    """Names the program gave through NVTX come last: they count."""
    words: list[Ints] = []
    threads: list[Ints] = []
    for process in processes:
        tid, name, source = process.small(kinds.THREAD_NAME, "tid", "name", "source")
        order = np.argsort(source == _NVTX_NAMED, kind="stable")
        order = order[(tid[order] != ABSENT) & (name[order] != ABSENT)]
        words.append(name[order] + process.word_base)
        threads.append(tid[order] & 0xFF_FFFF | process.global_pid)
    arrays = [from_numpy(np.concatenate([np.empty(0, np.int64), *part])) for part in (words, threads)]
    return pa.Table.from_arrays(arrays, names=["nameId", "globalTid"])


def _boards(processes: Sequence[Process]) -> pa.Table:
    """Devices by their number within the process: a capture does not tell more."""
    fields = (
        "id", "name", "globalMemorySize", "globalMemoryBandwidth", "coreClockRate", "numMultiprocessors",
        "maxWarpsPerMultiprocessor", "computeMajor", "computeMinor",
    )  # fmt: skip
    rows: dict[int, list[int | None]] = {}
    names: dict[int, str | None] = {}
    for process in processes:
        for number, name, *facts in zip(*(part.tolist() for part in process.small(kinds.DEVICE, *fields)), strict=True):
            if number not in rows:
                size, bandwidth, clock, *rest = (None if value in {-1, ABSENT} else value for value in facts)
                scaled = [
                    None if value is None or not 0 <= value < FAR // 1000 else value * 1000
                    for value in (bandwidth, clock)
                ]
                rows[number] = [number, number, size, *scaled, *rest]
                names[number] = process.word(name)
    labels = ["id", "cuDevice", "totalMemory", "memoryBandwidth", "clockRate", "smCount", "maxWarpsPerSm",
              "computeMajor", "computeMinor"]  # fmt: skip
    columns = list(zip(*rows.values(), strict=True)) or [()] * len(labels)
    arrays = [integers(column) for column in columns]
    return pa.Table.from_arrays([*arrays, strings([names[n] for n in rows])], names=[*labels, "name"])


def _metrics(processes: Sequence[Process]) -> pa.Table:
    kind: list[int] = []
    metric: list[int] = []
    scale: list[int | None] = []
    names: list[str | None] = []
    for process in processes:
        fields = process.small(kinds.METRIC_NAME, "metricId", "deviceId", "name", "scale")
        number = metric_ids(process, fields[0])
        for m, device, name, factor in zip(number.tolist(), *(part.tolist() for part in fields[1:]), strict=True):
            kind.append(METRIC_TYPE + (device & 0xFF))
            metric.append(m)
            scale.append(factor if 0 < factor < ABSENT else None)
            names.append(process.word(name))
    return pa.Table.from_arrays(
        [integers(kind), integers(metric), integers(scale), strings(names)],
        names=["typeId", "metricId", "scale", "metricName"],
    )


def _strings(processes: Sequence[Process]) -> pa.Table:
    """Every word, the readable forms of kernels' names, and the names of overheads."""
    ids: list[Ints] = []
    parts: list[bytes] = []
    for process in processes:
        ids.append(np.array(process.word_ids, np.int64) + process.word_base)
        parts += process.word_bytes
        readable = sorted(process.readable.items())
        numbers = np.array([number for number, _ in readable], np.int64) + process.word_base
        ids += [numbers + SIGNATURE, numbers + BASE]
        parts += [name.encode() for _, name in readable] + [base_name(name).encode() for _, name in readable]
    ids.append(OVERHEAD_WORDS + np.arange(len(OVERHEADS), dtype=np.int64))
    parts += [name.encode() for _, name in OVERHEADS.values()]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    if ends[-1] > MOST_TEXT:
        raise SourceError("limit-string", f"the capture's texts have {ends[-1]:,} bytes, more than allowed", AGAIN)
    offsets = np.concatenate([np.zeros(1, np.int32), ends.astype(np.int32)])
    values = pa.Array.from_buffers(
        pa.string(), len(parts), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))], 0
    )
    return pa.Table.from_arrays([from_numpy(np.concatenate(ids)), values], names=["id", "value"])
