"""The tables of threads, processes and devices, and final row numbers for every other table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import flat, from_numpy, ints, strings, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.tables import TABLES
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.ids import PROCESS_MASK, Codes, Identities, process_of
from nvprof_tools.timeline.words import Words


@dataclass(frozen=True)
class Numbering:
    """Provisional code → row, and the three tables."""

    process: Codes
    thread: Codes
    device: Codes
    tables: dict[str, pa.Table]
    quality: tuple[QualityItem, ...]


def number(raw: RawTables, words: Words, ids: Identities, nvtx_names: list[tuple[int, int, str]]) -> Numbering:
    """Give everything that has events its row."""
    processes = ids.processes.ordered()
    threads = ids.threads.ordered()
    row_of = {key: row for row, key in enumerate(processes)}
    names = _thread_names(raw, words, nvtx_names)
    device, devices, quality = _devices(raw, ids)
    tables = {
        "processes": _table(
            "processes",
            process=np.arange(len(processes), dtype=np.int32),
            pid=np.array([pid for pid, _ in processes], np.int64),
            name=_process_names(raw, processes),
        ),
        "threads": _table(
            "threads",
            thread=np.arange(len(threads), dtype=np.int32),
            process=np.array([row_of[(pid, machine)] for pid, machine, _ in threads], np.int32),
            tid=np.array([tid for _, _, tid in threads], np.int64),
            name=[names.get(key) for key in threads],
        ),
        "devices": devices,
    }
    return Numbering(ids.processes.final(), ids.threads.final(), device, tables, quality)


def _table(name: str, /, **columns: object) -> pa.Table:
    spec = TABLES[name]
    arrays = []
    for column in spec.columns:
        given = columns[column.name]
        if isinstance(given, np.ndarray):
            arrays.append(from_numpy(given))
        elif pa.types.is_string(column.type):
            arrays.append(strings(given))  # type: ignore[arg-type]
        else:
            arrays.append(_nullable(given))  # type: ignore[arg-type]
    return pa.Table.from_arrays(arrays, schema=spec.schema)


def _nullable(values: list[int | None]) -> pa.Array:
    return from_numpy(
        np.array([0 if v is None else v for v in values], np.int64), np.array([v is not None for v in values], np.bool_)
    )


def _process_names(raw: RawTables, processes: list[tuple[int, ...]]) -> list[str | None]:
    """Base names: the path says where the program lay, which is nobody's business."""
    found: dict[tuple[int, ...], str] = {}
    table = raw.read("PROCESSES")
    if table is not None:
        rows = zip(ints(table["globalPid"]).tolist(), flat(table["name"]).to_pylist(), strict=True)
        for global_id, name in rows:
            base = (name or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
            if base:
                found.setdefault(process_of(global_id & 0xFFFF_FFFF_FFFF_FFFF), base)
    return [found.get(key) for key in processes]


def _thread_names(raw: RawTables, words: Words, nvtx_names: list[tuple[int, int, str]]) -> dict[tuple[int, ...], str]:
    """The last name the program gave through NVTX, else the last one in the profiler's table."""
    found: dict[tuple[int, ...], str] = {}
    table = raw.read("ThreadNames")
    if table is not None:
        codes, distinct = words.places(table["nameId"])
        texts = distinct.to_pylist()
        for global_id, code in zip(ints(table["globalTid"]).tolist(), codes.tolist(), strict=True):
            if code >= 0 and texts[code]:
                found[_thread_key(global_id)] = texts[code]
    for global_id, _, name in sorted(nvtx_names, key=lambda n: (n[1], n[2])):
        found[_thread_key(global_id)] = name
    return found


def _thread_key(global_id: int) -> tuple[int, int, int]:
    value = global_id & 0xFFFF_FFFF_FFFF_FFFF
    return (*process_of(value), value & PROCESS_MASK)


def _devices(raw: RawTables, ids: Identities) -> tuple[Codes, pa.Table, tuple[QualityItem, ...]]:
    """Physical GPUs: CUDA ordinals go through TARGET_INFO_CUDA_DEVICE, else cuDevice, else stand for themselves."""
    boards = _boards(raw)
    visible = _visible(raw)
    by_ordinal = {b["cuDevice"]: b["id"] for b in boards.values() if b["cuDevice"] is not None}
    processes = {code: key for key, code in ids.processes.codes.items()}
    physical: dict[int, int] = {}
    assumed: dict[int, set[int]] = {}
    for (process, ordinal), code in ids.devices.codes.items():
        if process < 0:
            physical[code] = ordinal
            continue
        pid = processes[process][0]
        mapped = visible.get((pid, ordinal))
        if mapped is None:
            assumed.setdefault(ordinal, set()).add(process)
            mapped = by_ordinal.get(ordinal, ordinal)
        physical[code] = mapped if mapped is not None else ordinal
    numbers = sorted({*boards, *physical.values()})
    row = {number: i for i, number in enumerate(numbers)}
    final = np.zeros(max(len(physical), 1), np.int32)
    for code, number in physical.items():
        final[code] = row[number]
    empty: dict[str, object] = dict.fromkeys(_BOARD_COLUMNS)
    rows = [boards.get(number, empty) for number in numbers]
    table = _table(
        "devices",
        device=np.arange(len(rows), dtype=np.int32),
        name=[r.get("name") for r in rows],
        sm_count=[r["smCount"] for r in rows],
        memory_bytes=[r["totalMemory"] for r in rows],
        memory_bandwidth=[r["memoryBandwidth"] for r in rows],
        clock_hz=[r["clockRate"] for r in rows],
        max_warps_per_sm=[r["maxWarpsPerSm"] for r in rows],
        compute_capability=[
            None if r["computeMajor"] is None else f"{r['computeMajor']}.{r['computeMinor'] or 0}" for r in rows
        ],
    )
    shared = sorted(ordinal for ordinal, users in assumed.items() if len(users) > 1)
    if not shared:
        return final, table, ()
    return (
        final,
        table,
        (
            QualityItem(
                "device-mapping-assumed",
                Severity.NOTICE,
                len(shared),
                f"several processes use CUDA device {shared[0]} and the export does not say which GPU each means: "
                "one GPU is assumed",
                "export with nsys 2025.3 or later",
            ),
        ),
    )


_BOARD_COLUMNS = (
    "id", "cuDevice", "smCount", "totalMemory", "memoryBandwidth", "clockRate", "maxWarpsPerSm", "computeMajor",
    "computeMinor",
)  # fmt: skip


def _boards(raw: RawTables) -> dict[int, dict[str, object]]:
    table = raw.read("TARGET_INFO_GPU")
    if table is None:
        return {}
    columns = {
        name: [v if ok else None for v, ok in zip(ints(table[name]).tolist(), validity(table[name]), strict=True)]
        for name in _BOARD_COLUMNS
    }
    columns["name"] = flat(table["name"]).to_pylist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    found: dict[int, dict[str, object]] = {}
    for row in rows:
        if isinstance(row["id"], int):
            found.setdefault(row["id"], row)
    return found


def _visible(raw: RawTables) -> dict[tuple[int, int], int]:
    """(pid, CUDA ordinal) → physical GPU."""
    table = raw.read("TARGET_INFO_CUDA_DEVICE")
    if table is None:
        return {}
    rows = zip(
        ints(table["pid"]).tolist(), ints(table["cudaId"]).tolist(), ints(table["gpuId"]).tolist(), validity(table["gpuId"]), strict=True
    )
    return {(pid, ordinal): gpu for pid, ordinal, gpu, given in rows if given}
