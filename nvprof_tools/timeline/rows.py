"""Rows on the session's clock: which are kept, why others are not, and the one order they end up in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import Bools, Ints, flat, from_numpy, ints, to_numpy, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.tables import TableSpec
from nvprof_tools.timeline.parallel import at_once

FAR = 1 << 62
"""Times are kept within ± this, so that a difference of two never overflows 64 bits."""

REASONS: Mapping[str, tuple[Severity, str, str]] = {
    "rows-without-time": (
        Severity.DATA_LOSS,
        "have no timestamps and were set aside",
        "the profiler could not collect them; capture less at once",
    ),
    "rows-reversed": (
        Severity.DATA_LOSS,
        "end before they start and were set aside",
        "the export or the clock is faulty",
    ),
    "rows-time-out-of-range": (Severity.DATA_LOSS, "have impossible times and were set aside", "the export is faulty"),
    "rows-past-capture": (Severity.NOTICE, "begin at or after the capture's end and were set aside", ""),
    "rows-without-thread": (Severity.DATA_LOSS, "name no thread and were set aside", ""),
    "rows-duplicate": (Severity.INFO, "repeat another row of the same call and were dropped", ""),
    "rows-not-events": (Severity.INFO, "are metadata, not events", ""),
    "rows-clipped": (Severity.INFO, "reach past the capture's end and were clipped to it", ""),
}
"""Every way a row can be lost or changed: how grave it is, and what is said of it."""


SAMPLED = ("gpu_metrics",)
"""Tables that go on past the capture's end as a matter of course."""


@dataclass
class Account:
    """What became of the rows of one table: ``read == kept + sum(aside)``."""

    table: str
    read: int = 0
    aside: dict[str, int] = field(default_factory=dict)
    clipped: int = 0

    def set_aside(self, reason: str, rows: int) -> None:
        """Count rows that are not kept."""
        if rows:
            self.aside[reason] = self.aside.get(reason, 0) + int(rows)

    @property
    def kept(self) -> int:
        """Rows kept."""
        return self.read - sum(self.aside.values())

    def quality(self) -> list[QualityItem]:
        """The account as items; the sum first."""
        items = []
        if self.read:
            lost = self.read - self.kept
            items.append(
                QualityItem(
                    "rows-read",
                    Severity.INFO,
                    self.read,
                    f"{self.table}: {self.read:,} rows read, {self.kept:,} kept, {lost:,} set aside",
                )
            )
        for reason, rows in (*sorted(self.aside.items()), ("rows-clipped", self.clipped)):
            if rows:
                severity, what, hint = REASONS[reason]
                if reason == "rows-past-capture" and self.table in SAMPLED:
                    severity = Severity.INFO
                items.append(QualityItem(reason, severity, rows, f"{self.table}: {rows:,} rows {what}", hint))
        return items


@dataclass(frozen=True)
class SessionClock:
    """File time to session time: ``t = ts − shift_ns``. ``end_ns`` is the capture's end, null when unknown."""

    shift_ns: int
    end_ns: int | None

    def apply(self, times: Ints) -> tuple[Ints, Bools]:
        """Session times and where they are usable; elsewhere 0."""
        near = FAR - abs(self.shift_ns)
        if len(times) and near > 0 and int(times.min()) > -near and int(times.max()) < near:
            return times - np.int64(self.shift_ns), np.ones(len(times), np.bool_)
        usable = (times > -FAR) & (times < FAR)
        moved = np.where(usable, times, 0) - np.int64(self.shift_ns)
        usable &= (moved > -FAR) & (moved < FAR)
        return moved, usable


def select(table: pa.Table, keep: Bools) -> pa.Table:
    """The rows where ``keep`` holds; the table itself where all do."""
    return table if keep.all() else table.filter(from_numpy(keep))


def keep_intervals(
    table: pa.Table, clock: SessionClock, account: Account, also: Bools | None = None
) -> tuple[pa.Table, Ints, Ints]:
    """Rows of ``start``/``end`` that can be used, with their times on the session clock, clipped to the capture.

    :param also: rows already set aside by the caller where false (counted by the caller).
    """
    raw_start, raw_end = ints(table["start"]), ints(table["end"])
    start, fine_start = clock.apply(raw_start)
    end, fine_end = clock.apply(raw_end)
    # Both zero is the profiler's word for "not collected", before or after its own shift of all times.
    zero = ((raw_start == 0) & (raw_end == 0)) | ((start == 0) & (end == 0) & fine_start & fine_end)
    given = validity(table["start"]) & validity(table["end"]) & ~zero
    keep = np.ones(len(start), np.bool_) if also is None else also.copy()
    keep = _drop(keep, given, "rows-without-time", account)
    keep = _drop(keep, fine_start & fine_end, "rows-time-out-of-range", account)
    keep = _drop(keep, start <= end, "rows-reversed", account)
    if clock.end_ns is not None:
        keep = _drop(keep, start < clock.end_ns, "rows-past-capture", account)
    if not keep.all():
        start, end = start[keep], end[keep]
    if clock.end_ns is not None:
        account.clipped += int(np.count_nonzero(end > clock.end_ns))
        end = np.minimum(end, clock.end_ns)
    return select(table, keep), start, end


def keep_instants(
    table: pa.Table, column: str, clock: SessionClock, account: Account, also: Bools | None = None
) -> tuple[pa.Table, Ints]:
    """Rows of an instant that can be used, with their times on the session clock."""
    time, fine = clock.apply(ints(table[column]))
    keep = np.ones(len(time), np.bool_) if also is None else also.copy()
    keep = _drop(keep, validity(table[column]), "rows-without-time", account)
    keep = _drop(keep, fine, "rows-time-out-of-range", account)
    if clock.end_ns is not None:
        keep = _drop(keep, time < clock.end_ns, "rows-past-capture", account)
    return select(table, keep), time if keep.all() else time[keep]


def _drop(keep: Bools, fine: Bools, reason: str, account: Account) -> Bools:
    account.set_aside(reason, int(np.count_nonzero(keep & ~fine)))
    return keep & fine


def optional(table: pa.Table, column: str, to: pa.DataType) -> pa.Array:
    """An integer column as a narrower nullable type; a value that does not fit is null."""
    values, given = ints(table[column]), validity(table[column])
    info = np.iinfo(to.to_pandas_dtype())
    if given.all() and info.min <= int(values.min(initial=0)) and int(values.max(initial=0)) <= info.max:
        return from_numpy(values.astype(to.to_pandas_dtype()))
    fits = given & (values >= info.min) & (values <= info.max)
    return from_numpy(np.where(fits, values, 0).astype(to.to_pandas_dtype()), fits)


def conform(spec: TableSpec, columns: dict[str, pa.Array]) -> tuple[pa.Table, Ints]:
    """The table as its spec has it, in its spec's order, and where each row came from.

    Rows that tie on the sort columns are ordered by all others, so the order the file had them in never shows.

    :param columns: is empty afterwards: of each column only its old or its new order is held.
    """
    table = pa.Table.from_arrays([columns[c.name] for c in spec.columns], schema=spec.schema)
    order = _order(table, spec.sort_by)
    if order is None:
        columns.clear()
        return table.combine_chunks(), np.arange(table.num_rows)
    del table
    rows = from_numpy(order)
    taken = at_once([partial(_taken, columns, c.name, rows) for c in spec.columns])
    return pa.Table.from_arrays(taken, schema=spec.schema), order


def _taken(columns: dict[str, pa.Array], name: str, rows: pa.Array) -> pa.Array:
    return flat(columns.pop(name)).take(rows)


def _sort_key(column: pa.ChunkedArray) -> npt_any:
    array = flat(column)
    if pa.types.is_dictionary(array.type):
        array = array.indices  # words are sorted, so their codes sort as they do
    elif pa.types.is_string(array.type):
        ranks = pc.rank(array, tiebreaker="dense")
        return to_numpy(ranks)
    values = to_numpy(array)
    if array.null_count == 0:
        return values
    return np.where(validity(array), values, np.array(_lowest(values.dtype), values.dtype))


npt_any = np.ndarray


def _lowest(dtype: np.dtype) -> float | int | bool:
    if dtype == np.bool_:
        return False
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _order(table: pa.Table, sort_by: tuple[str, ...]) -> Ints | None:
    """Row numbers in the spec's order; None where they already are."""
    rows = table.num_rows
    if rows < 2:
        return None
    first = _sort_key(table[sort_by[0]])
    step = first[1:] > first[:-1]
    if step.all():
        return None
    # Most rows differ in the first column already, and profilers write them thread by thread in order: sorting runs.
    order = np.argsort(first, kind="stable")
    moved = first[order]
    tied = moved[1:] == moved[:-1]
    if tied.any():
        among = np.zeros(rows, np.bool_)
        among[1:] |= tied
        among[:-1] |= tied
        places = np.flatnonzero(among)
        block = order[places]
        rest = [n for n in table.column_names if n not in sort_by]
        few = table.take(from_numpy(block)) if len(block) < rows // 2 else None
        every = [_sort_key(table[n])[block] if few is None else _sort_key(few[n]) for n in (*sort_by, *rest)]
        order[places] = block[np.lexsort(every[::-1])]
    return order
