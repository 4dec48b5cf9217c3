"""The tables of threads, processes and devices, and final row numbers for every other table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nvprof_tools.model.arrays import flat, ints
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.devices import physical_devices, spec_table
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
    device, devices, quality = physical_devices(raw, ids)
    tables = {
        "processes": spec_table(
            "processes",
            process=range(len(processes)),
            pid=[pid for pid, _ in processes],
            name=_process_names(raw, processes),
        ),
        "threads": spec_table(
            "threads",
            thread=range(len(threads)),
            process=[row_of[(pid, machine)] for pid, machine, _ in threads],
            tid=[tid for _, _, tid in threads],
            name=[names.get(key) for key in threads],
        ),
        "devices": devices,
    }
    return Numbering(ids.processes.final(), ids.threads.final(), device, tables, quality)


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
