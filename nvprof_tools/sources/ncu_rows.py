"""Collects launches and values from any report form into the normalised tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.arrays import Bools, from_numpy, names
from nvprof_tools.model.counters import BLOCK, GRID, LAUNCHES, VALUES
from nvprof_tools.model.kernel_names import base_name, is_mangled

Ints32 = npt.NDArray[np.int32]

DIMENSIONS: Mapping[str, str] = {
    f"launch__{side}_dim_{axis}": f"{side}_{axis}" for side in ("grid", "block") for axis in "xyz"
}
"""Metrics that state a launch's shape, where the page has no column for it."""


@dataclass
class Words:
    """Distinct strings in order of appearance."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, word: str) -> int:
        """The word's number, new or known."""
        return self.codes.setdefault(word, len(self.codes))

    def __len__(self) -> int:
        return len(self.codes)


@dataclass
class Launch:
    """One profiled launch as its report tells it; None: not told."""

    launch_index: int
    process: int | None = None
    device: int | None = None
    context: int | None = None
    stream: int | None = None
    kernel: str | None = None
    signature: str | None = None
    mangled: str | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    nvtx: str | None = None


@dataclass(frozen=True)
class Chunk:
    """Some values: equal-length arrays. ``text`` is −1 where the value is a number."""

    launch: Ints32
    metric: Ints32
    unit: Ints32
    value: npt.NDArray[np.float64]
    text: Ints32
    instances: Ints32


@dataclass
class Rows:
    """Launches and values of one report, in file order."""

    launches: list[Launch] = field(default_factory=list)
    metrics: Words = field(default_factory=Words)
    units: Words = field(default_factory=Words)
    texts: Words = field(default_factory=Words)
    chunks: list[Chunk] = field(default_factory=list)
    not_numbers: int = 0
    no_data: int = 0


def named(name: str | None, launch: Launch) -> Launch:
    """Give a launch the kernel name a report prints, whichever of the three kinds of name it is."""
    if not name:
        return launch
    if is_mangled(name):
        launch.mangled = name
    else:
        launch.signature = name
        launch.kernel = base_name(name)
    return launch


def launch_table(launches: Sequence[Launch], report: int) -> pa.Table:
    """As :data:`LAUNCHES`, rows numbered from 0."""
    rows = len(launches)
    columns: list[pa.Array] = [
        from_numpy(np.arange(rows, dtype=np.int32)),
        from_numpy(np.full(rows, report, np.int32)),
        from_numpy(np.array([x.launch_index for x in launches], np.int64)),
        _optional([x.process for x in launches], np.int64),
        _optional([x.device for x in launches], np.int32),
        _optional([x.context for x in launches], np.int64),
        _optional([x.stream for x in launches], np.int64),
        words([x.kernel for x in launches]),
        words([x.signature for x in launches]),
        words([x.mangled for x in launches]),
        *(_optional([None if x.grid is None else x.grid[i] for x in launches], np.int64) for i in range(len(GRID))),
        *(_optional([None if x.block is None else x.block[i] for x in launches], np.int64) for i in range(len(BLOCK))),
        words([x.nvtx for x in launches]),
    ]
    return pa.Table.from_arrays(columns, schema=LAUNCHES.schema)


def value_table(rows: Rows) -> pa.Table:
    """As :data:`VALUES`: sorted by launch, in the report's order within one; of repeats of a metric the first."""
    if not rows.chunks:
        return VALUES.empty()
    launch, metric, unit, text, instances = (
        np.concatenate([getattr(c, name) for c in rows.chunks]).astype(np.int32, copy=False)
        for name in ("launch", "metric", "unit", "text", "instances")
    )
    value = np.concatenate([c.value for c in rows.chunks])
    key = launch.astype(np.int64) * max(len(rows.metrics), 1) + metric
    _, first = np.unique(key, return_index=True)
    order = np.sort(first)
    order = order[np.argsort(launch[order], kind="stable")]
    launch, metric, unit, text, instances, value = (x[order] for x in (launch, metric, unit, text, instances, value))
    return pa.Table.from_arrays(
        [
            from_numpy(launch),
            names(metric, list(rows.metrics.codes)),
            names(unit, list(rows.units.codes)),
            from_numpy(value, text < 0),
            names(text, list(rows.texts.codes)),
            from_numpy(instances, instances > 0),
        ],
        schema=VALUES.schema,
    )


def fill_shapes(rows: Rows) -> None:
    """Give launches whose page has no shape columns the shape its metrics state."""
    lacking = {i for i, x in enumerate(rows.launches) if x.grid is None or x.block is None}
    if not lacking:
        return
    wanted = {code: DIMENSIONS[word] for word, code in rows.metrics.codes.items() if word in DIMENSIONS}
    found: dict[int, dict[str, int]] = {}
    for chunk in rows.chunks:
        for i in np.flatnonzero(np.isin(chunk.metric, list(wanted)) & np.isfinite(chunk.value)).tolist():
            if int(chunk.launch[i]) in lacking:
                found.setdefault(int(chunk.launch[i]), {})[wanted[int(chunk.metric[i])]] = int(chunk.value[i])
    for i, shape in found.items():
        launch = rows.launches[i]
        launch.grid = launch.grid or _triple([shape.get(name) for name in GRID])
        launch.block = launch.block or _triple([shape.get(name) for name in BLOCK])


def _triple(values: Sequence[int | None]) -> tuple[int, int, int] | None:
    x, y, z = values
    return None if x is None or y is None or z is None else (x, y, z)


def words(values: Sequence[str | None]) -> pa.DictionaryArray:
    """A dictionary column."""
    known = Words()
    codes = np.array([-1 if v is None else known.code(v) for v in values], np.int32)
    return names(codes, list(known.codes))


def _optional(values: Sequence[int | None], dtype: type[np.int64] | type[np.int32]) -> pa.Array:
    valid: Bools = np.array([v is not None for v in values], np.bool_)
    return from_numpy(np.array([v or 0 for v in values], dtype), valid)
