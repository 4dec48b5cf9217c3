"""Kernel counters, normalised: one row a profiled launch, one row a value, and both joined as one table on demand.

Values are in base units whatever the report printed: ns, bytes, hz, and plain counts. What is not measured, not a
number or without data has no row, never a 0; readers count it in quality items. A counter's time is that of a
*replayed* launch under the profiler's clock and cache control. It says nothing about the time of the launch in a trace,
so no time of this module may be added to or compared with a trace's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.arrays import flat, ints, to_numpy
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.model.tables import NAME, Column, TableSpec
from nvprof_tools.model.trace import SourceInfo

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

LAUNCHES = TableSpec(
    "counter_launches",
    "Kernel launches that the counter profiler replayed, in the order of the reports",
    (
        Column("launch", pa.int32(), "this row's number", "row"),
        Column("report", pa.int32(), "number of the report it is of, in the order they were read", "row"),
        Column("launch_index", pa.int64(), "the launch's number in its report, as the profiler counts"),
        Column("process", pa.int64(), "process id; null: the report form does not say", "", True),
        Column("device", pa.int32(), "CUDA device number in the process", "", True),
        Column("context", pa.int64(), "CUDA context id", "", True),
        Column("stream", pa.int64(), "CUDA stream id", "", True),
        Column("kernel", NAME, "base name without templates", "", True),
        Column("signature", NAME, "demangled name as the report spells it", "", True),
        Column("mangled", NAME, "raw symbol", "", True),
        Column("grid_x", pa.int64(), "grid size", "blocks", True),
        Column("grid_y", pa.int64(), "grid size", "blocks", True),
        Column("grid_z", pa.int64(), "grid size", "blocks", True),
        Column("block_x", pa.int64(), "block size", "threads", True),
        Column("block_y", pa.int64(), "block size", "threads", True),
        Column("block_z", pa.int64(), "block size", "threads", True),
        Column("nvtx", NAME, "open NVTX ranges, outermost first, joined by `/`; null: not recorded", "", True),
    ),
    ("launch",),
)

VALUES = TableSpec(
    "counter_values",
    "Counter values: the aggregate over the launch; values by instance are read on demand",
    (
        Column("launch", pa.int32(), "row of `counter_launches`", "row"),
        Column("metric", NAME, "metric name; a label the tool cannot name stands as `Section/Label`"),
        Column("unit", NAME, "base unit, empty for plain numbers"),
        Column("value", pa.float64(), "the value in that unit; null: text, no data, or not a number", "", True),
        Column("text", NAME, "the value where it is not a number", "", True),
        Column("instances", pa.int32(), "how many values by instance the report holds", "", True),
    ),
    ("launch", "metric"),
)

INSTANCES = TableSpec(
    "counter_instances",
    "Counter values by instance: per SM, per instruction, or over time",
    (
        Column("launch_index", pa.int64(), "the launch's number in its report, as the profiler counts"),
        Column("metric", NAME, "metric name"),
        Column("instance", pa.int32(), "number of the instance"),
        Column("id", pa.uint64(), "what the instance stands for: an address, or UTC ns; null: not said", "", True),
        Column("label", NAME, "the same where it is a name, as an opcode", "", True),
        Column("unit", NAME, "base unit, empty for plain numbers"),
        Column("value", pa.float64(), "the value in that unit; null: not a number", "", True),
    ),
    ("launch_index", "metric", "instance"),
)

COUNTER_SPECS: tuple[TableSpec, ...] = (LAUNCHES, VALUES, INSTANCES)

GRID = ("grid_x", "grid_y", "grid_z")
BLOCK = ("block_x", "block_y", "block_z")


@dataclass(frozen=True)
class CounterTable:
    """Counters of one or several reports.

    :param launches: as :data:`LAUNCHES`, row ``i`` has ``launch == i``.
    :param values: as :data:`VALUES`, sorted by launch.
    """

    launches: pa.Table
    values: pa.Table
    source: SourceInfo
    quality: tuple[QualityItem, ...] = ()

    def __len__(self) -> int:
        return int(self.launches.num_rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that some launch has, sorted."""
        return tuple(sorted(flat(self.values.column("metric")).dictionary.to_pylist()))

    def metric(self, name: str) -> Floats:
        """One metric, a float64 a launch; NaN where the launch has no number for it."""
        out = np.full(len(self), np.nan)
        codes = flat(self.values.column("metric"))
        words = codes.dictionary.to_pylist()
        if name not in words:
            return out
        mine = np.flatnonzero(to_numpy(codes.indices) == words.index(name))
        column = self.values.column("value")
        mine = mine[np.asarray(to_numpy(flat(column.is_valid())), np.bool_)[mine]]
        out[ints(self.values.column("launch"))[mine]] = np.asarray(to_numpy(column), np.float64)[mine]
        return out

    def first_metric(self, names: Sequence[str]) -> Floats:
        """A launch's first of several metrics that mean the same; NaN where it has none of them."""
        out = np.full(len(self), np.nan)
        for name in names:
            out = np.where(np.isnan(out), self.metric(name), out)
        return out

    def one_table(self) -> pa.Table:
        """Launches and values as one table: every column of :data:`LAUNCHES`, then those of :data:`VALUES`."""
        rows = ints(self.values.column("launch"))
        left = self.launches.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)]))
        for name in self.values.column_names[1:]:
            left = left.append_column(self.values.schema.field(name), self.values.column(name))
        return left
