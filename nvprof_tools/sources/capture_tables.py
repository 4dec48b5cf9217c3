"""A capture as the tables of an nsys export, so that everything behind the readers is shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB, Limits
from nvprof_tools.model.arrays import Bools, Ints, from_numpy
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import capture_columns as kinds
from nvprof_tools.sources.capture_blocks import AGAIN
from nvprof_tools.sources.capture_clock import since
from nvprof_tools.sources.capture_columns import ABSENT, NVTX_TABLE, PARTS, From, Part
from nvprof_tools.sources.capture_process import BASE, SIGNATURE, Process, Rows

SPARE_BYTES, BYTES_A_FILE_BYTE = 256 * MIB, 200
"""What a table may grow to in memory: rows may be of one byte, and columns are of eight."""
METRIC_TYPE = (1 << 56) + (1 << 40)
METRIC_BITS = 32

_KERNELS, _SYNCS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_OVERHEAD, _MEMORY = "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUDA_GPU_MEMORY_USAGE_EVENTS"
_CALLS, _METRICS = "CUPTI_ACTIVITY_KIND_RUNTIME", "GPU_METRICS"
_DERIVED = {_KERNELS: ("shortName", "demangledName"), _SYNCS: ("deviceId",)}
_NEEDED = {_OVERHEAD: "globalTid", _MEMORY: "memoryOperationType"}
"""Tables whose rows mean nothing without this value; such rows are left out and counted."""
_PAYLOADS, _UNSIGNED_32, _SIGNED_32 = (1, 2, 4, 5), 4, 5
"""NVTX' numbers of integer payloads."""
_DOMAIN, _CATEGORY = 75, 33
"""nsys' event types of names."""


class Columns:
    """Columns in the making: values, and where they are given; what is not wanted is not kept."""

    def __init__(self, names: Sequence[str], rows: int) -> None:
        self.values: dict[str, Ints] = {name: np.zeros(rows, np.int64) for name in names}
        self.given: dict[str, Bools] = {name: np.zeros(rows, np.bool_) for name in names}

    def put(self, name: str, at: int, values: np.ndarray | int, given: Bools | bool = True, rows: int = 0) -> None:
        """Some rows of a column; ``rows`` where the value is the same in each."""
        if name in self.values:
            place = slice(at, at + (rows or np.size(values)))
            self.values[name][place] = values
            self.given[name][place] = given

    def keep(self, rows: Bools) -> None:
        """Leave other rows out."""
        self.values = {name: column[rows] for name, column in self.values.items()}
        self.given = {name: column[rows] for name, column in self.given.items()}


@dataclass(frozen=True)
class _Place:
    """A block of rows and where it goes."""

    process: Process
    part: Part
    rows: Rows
    at: int

    def has(self, name: str) -> bool:
        return name in (self.rows.dtype.names or ())


class CaptureTables:
    """Reads tables of all files of a capture.

    :param small: tables that are made of facts, complete.
    :param origin: where the session begins; ``end``: where it ends, or null; both ns of CLOCK_MONOTONIC.
    :param quality: gets what reading shows.
    """

    def __init__(
        self,
        processes: Sequence[Process],
        small: Mapping[str, pa.Table],
        origin: int,
        end: int | None,
        limits: Limits,
        quality: list[QualityItem],
    ) -> None:
        self.processes, self.small, self.origin, self.end = processes, small, origin, end
        self.limits, self.quality = limits, quality
        self._devices = {p.number: p.small(kinds.CONTEXT, "contextId", "deviceId") for p in processes}
        self.columns: dict[str, Sequence[str]] = {name: table.column_names for name, table in small.items()}
        self.columns |= {table: self._present(table, parts) for table, parts in PARTS.items() if self._rows(parts)}

    def _rows(self, parts: Sequence[Part]) -> int:
        return sum(process.count(part.kind) for process in self.processes for part in parts)

    def _present(self, table: str, parts: Sequence[Part]) -> list[str]:
        found = [
            column
            for part in parts
            for column, source in part.columns.items()
            if any(process.has(part.kind, source.name) for process in self.processes)
        ]
        constant = [name for part in parts for name in part.constant]
        process = ["globalPid"] if any(part.process for part in parts) else []
        return list(dict.fromkeys([*found, *constant, *process, *_DERIVED.get(table, ())]))

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`."""
        if table in self.small:
            return self.small[table].select(list(columns))
        needed = _NEEDED.get(table)
        total = self._rows(PARTS[table])
        names = [*columns, *([needed] if needed is not None and needed not in columns else [])]
        self._afford(table, total, len(names))
        made, at = Columns(names, total), 0
        for process in self.processes:
            for part in PARTS[table]:
                for rows in process.rows(part.kind):
                    self._fill(made, table, _Place(process, part, rows, at))
                    at += len(rows)
        if needed is not None:
            self._left_out(table, made, needed)
        labels = _labels(self.processes) if table == NVTX_TABLE else []
        arrays = []
        for column in columns:
            array = from_numpy(made.values.pop(column), made.given.pop(column))
            if labels:
                array = pa.concat_arrays([array, integers([row.get(column) for row in labels])])
            arrays.append(array)
        return pa.Table.from_arrays(arrays, names=list(columns))

    def close(self) -> None:
        """Nothing is held."""

    def _afford(self, table: str, rows: int, columns: int) -> None:
        if rows > self.limits.table_rows:
            raise SourceError("limit-rows", f"table {table} has {rows:,} rows, more than allowed", AGAIN)
        size = sum(process.contents.size for process in self.processes)
        if rows * columns * 9 > SPARE_BYTES + BYTES_A_FILE_BYTE * size:
            raise SourceError("limit-memory", f"table {table} needs more memory than its file may ask for", AGAIN)

    def _fill(self, made: Columns, table: str, place: _Place) -> None:
        for column, source in place.part.columns.items():
            if column in made.values and place.has(source.name):
                made.put(column, place.at, *self._take(place.process, source, place.rows[source.name]))
        for column, value in place.part.constant.items():
            made.put(column, place.at, value, rows=len(place.rows))
        if place.part.process:
            made.put("globalPid", place.at, place.process.global_pid, rows=len(place.rows))
        if table == _KERNELS:
            _kernel_names(made, place)
        elif table == _SYNCS:
            self._sync_devices(made, place)
        elif table == NVTX_TABLE:
            _payload(made, place)
        elif table == _CALLS:
            self._open_calls(made, place)
        elif table == _METRICS:
            _metric_ids(made, place)

    def _take(self, process: Process, source: From, raw: np.ndarray) -> tuple[Ints, Bools]:
        """A field as a column: values, and where they are given."""
        if source.how == "time":
            return since(self.origin, raw.astype(np.uint64, copy=False))
        values = raw.astype(np.int64)  # of 64 unsigned bits the bits are kept, as SQLite would
        given = np.ones(len(values), np.bool_)
        for absent in source.absent:
            given &= values != absent
        if source.how == "word":
            return values + process.word_base, values != ABSENT
        if source.how == "thread":
            return values & 0xFF_FFFF | process.global_pid, (values != ABSENT) & (values != 0)
        if source.mapped is not None:
            values = _translated(values, source.mapped, source.other)
        return values, given

    def _sync_devices(self, made: Columns, place: _Place) -> None:
        """A wait's row names no device; its context does."""
        context, device = self._devices[place.process.number]
        if len(context) == 0 or not place.has("contextId"):
            return
        order = np.argsort(context, kind="stable")
        wanted = place.rows["contextId"].astype(np.int64)
        at = np.minimum(np.searchsorted(context[order], wanted), len(order) - 1)
        found = (context[order][at] == wanted) & (device[order][at] != ABSENT)
        made.put("deviceId", place.at, device[order][at], found)

    def _open_calls(self, made: Columns, place: _Place) -> None:
        """A call that had not returned lasts to the end of the capture."""
        if not (place.has("start") and place.has("end")) or "end" not in made.values:
            return
        still = (place.rows["end"] == 0) & (place.rows["start"] != 0)
        count = int(np.count_nonzero(still))
        if count == 0 or self.end is None:
            return
        where = place.at + np.flatnonzero(still)
        made.values["end"][where] = self.end - self.origin
        made.given["end"][where] = True
        message = f"{count:,} CUDA calls had not returned when the capture ended and are closed there"
        self.quality.append(QualityItem("api-calls-open", Severity.NOTICE, count, message))

    def _left_out(self, table: str, made: Columns, needed: str) -> None:
        keep = made.given[needed].copy()
        if table == _MEMORY:
            keep &= made.values[needed] != kinds.NO_OPERATION
        lost = len(keep) - int(np.count_nonzero(keep))
        if lost:
            made.keep(keep)
            what = "overhead that is of no thread" if table == _OVERHEAD else "memory events that neither give nor take"
            self.quality.append(QualityItem("capture-rows-unused", Severity.INFO, lost, f"{lost:,} rows of {what}"))


def _translated(values: Ints, mapped: Mapping[int, int], other: int) -> Ints:
    """Each value's translation; ``other`` where there is none."""
    known = np.array(sorted(mapped), np.int64)
    to = np.array([mapped[k] for k in sorted(mapped)], np.int64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, to[at], other)


def _kernel_names(made: Columns, place: _Place) -> None:
    """``shortName`` and ``demangledName``: of a name that is no C++ symbol, the name itself."""
    if not place.has("name"):
        return
    word = place.rows["name"].astype(np.int64)
    known = np.array(sorted(place.process.readable), np.int64)
    at = np.minimum(np.searchsorted(known, word), max(len(known) - 1, 0))
    plain = known[at] != word if len(known) else np.ones(len(word), np.bool_)
    base = word + place.process.word_base
    for column, offset in (("shortName", BASE), ("demangledName", SIGNATURE)):
        made.put(column, place.at, np.where(plain, base, base + offset), word != ABSENT)


def _payload(made: Columns, place: _Place) -> None:
    """Only integer payloads are kept."""
    if "int64Value" not in made.values or not (place.has("payload") and place.has("payloadType")):
        return
    kind, bits = place.rows["payloadType"], place.rows["payload"].astype(np.int64)
    low = bits & 0xFFFF_FFFF
    signed = low - ((low & 0x8000_0000) << 1)
    values = np.where(kind == _SIGNED_32, signed, np.where(kind == _UNSIGNED_32, low, bits))
    made.put("int64Value", place.at, values, np.isin(kind, _PAYLOADS))


def _metric_ids(made: Columns, place: _Place) -> None:
    if place.has("deviceId"):
        made.put("typeId", place.at, METRIC_TYPE + (place.rows["deviceId"].astype(np.int64) & 0xFF))
    if place.has("metricId"):
        made.put("metricId", place.at, metric_ids(place.process, place.rows["metricId"].astype(np.int64)))


def metric_ids(process: Process, metric: Ints) -> Ints:
    """Numbers of metrics that are unique in a capture."""
    return metric + (process.number << METRIC_BITS)


def _labels(processes: Sequence[Process]) -> list[dict[str, int]]:
    """Rows of NVTX_EVENTS that name domains and categories."""
    rows: list[dict[str, int]] = []
    for process in processes:
        domains: set[int] = set()
        categories: dict[tuple[int, int], int] = {}
        for kind in (kinds.NVTX_RANGE, kinds.NVTX_MARK):
            if not process.has(kind, "domain"):
                continue
            for part in process.rows(kind):
                domains.update(np.unique(part["domain"]).tolist())
                if process.has(kind, "category") and process.has(kind, "categoryName"):
                    _note_categories(part, categories)
        base, tid = process.word_base, process.global_pid
        rows += [
            {"start": 0, "eventType": _DOMAIN, "globalTid": tid, "domainId": base + d, "textId": base + d}
            for d in sorted(domains - {ABSENT})
        ]
        rows += [
            {
                "start": 0,
                "eventType": _CATEGORY,
                "globalTid": tid,
                "domainId": 0 if domain == ABSENT else base + domain,
                "category": category,
                "textId": base + name,
            }
            for (domain, category), name in sorted(categories.items())
        ]
    return rows


def _note_categories(rows: Rows, known: dict[tuple[int, int], int]) -> None:
    """(domain, category) → the name's id, of every pair that has a name."""
    domain, category, name = (rows[field].astype(np.uint64) for field in ("domain", "category", "categoryName"))
    named = np.flatnonzero((category != 0) & (name != ABSENT))
    key, first = np.unique(domain[named] << np.uint64(32) | category[named] & np.uint64(ABSENT), return_index=True)
    for pair, word in zip(key.tolist(), name[named][first].tolist(), strict=True):
        known.setdefault((pair >> 32, pair & ABSENT), word)


def integers(values: Sequence[int | None]) -> pa.Array:
    """A small column; null where there is none."""
    given = np.array([value is not None for value in values], np.bool_)
    return from_numpy(np.array([value or 0 for value in values], np.int64), given)
