"""Physical GPUs, and which of them a process means by its CUDA ordinal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import flat, from_numpy, strings
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.tables import TABLES
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.ids import Codes, Identities

Values = Sequence[int | None] | Sequence[str | None]


@dataclass(frozen=True)
class Board:
    """What an export says of one physical GPU; null: it does not."""

    ordinal: int | None = None
    name: str | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None
    memory_bandwidth: int | None = None
    clock_hz: int | None = None
    max_warps_per_sm: int | None = None
    major: int | None = None
    minor: int | None = None

    @property
    def compute_capability(self) -> str | None:
        """As ``9.0``."""
        return None if self.major is None else f"{self.major}.{self.minor or 0}"


_BOARD_COLUMNS = (
    "cuDevice", "name", "smCount", "totalMemory", "memoryBandwidth", "clockRate", "maxWarpsPerSm", "computeMajor",
    "computeMinor",
)  # fmt: skip
"""Of TARGET_INFO_GPU, in the order of Board's fields."""


def physical_devices(raw: RawTables, ids: Identities) -> tuple[Codes, pa.Table, tuple[QualityItem, ...]]:
    """Provisional device code → row, the table of devices, and what had to be assumed.

    An ordinal goes through TARGET_INFO_CUDA_DEVICE by (pid, ordinal), else cuDevice, else stands for itself.
    """
    boards = _boards(raw)
    visible = _visible(raw)
    by_ordinal = {board.ordinal: number for number, board in boards.items() if board.ordinal is not None}
    processes = {code: key for key, code in ids.processes.codes.items()}
    physical: dict[int, int] = {}
    assumed: dict[int, set[int]] = {}
    for (process, ordinal), code in ids.devices.codes.items():
        if process < 0:
            physical[code] = ordinal
            continue
        known = visible.get((processes[process][0], ordinal))
        if known is None:
            assumed.setdefault(ordinal, set()).add(process)
            known = by_ordinal.get(ordinal, ordinal)
        physical[code] = known
    numbers = sorted({*boards, *physical.values()})
    row = {number: i for i, number in enumerate(numbers)}
    final = np.zeros(max(len(physical), 1), np.int32)
    for code, number in physical.items():
        final[code] = row[number]
    shared = sorted(ordinal for ordinal, users in assumed.items() if len(users) > 1)
    return final, _table([boards.get(number, Board()) for number in numbers]), _assumed(shared)


def _table(boards: list[Board]) -> pa.Table:
    return spec_table(
        "devices",
        device=range(len(boards)),
        name=[b.name for b in boards],
        sm_count=[b.sm_count for b in boards],
        memory_bytes=[b.memory_bytes for b in boards],
        memory_bandwidth=[b.memory_bandwidth for b in boards],
        clock_hz=[b.clock_hz for b in boards],
        max_warps_per_sm=[b.max_warps_per_sm for b in boards],
        compute_capability=[b.compute_capability for b in boards],
    )


def _assumed(shared: list[int]) -> tuple[QualityItem, ...]:
    if not shared:
        return ()
    message = (
        f"several processes use CUDA device {shared[0]} and the export does not say which GPU each means: "
        "one GPU is assumed"
    )
    hint = "export with nsys 2025.3 or later"
    return (QualityItem("device-mapping-assumed", Severity.NOTICE, len(shared), message, hint),)


def _boards(raw: RawTables) -> dict[int, Board]:
    """Physical number → board; of repeats the first."""
    table = raw.read("TARGET_INFO_GPU")
    if table is None:
        return {}
    columns = [flat(table[name]).to_pylist() for name in ("id", *_BOARD_COLUMNS)]
    found: dict[int, Board] = {}
    for number, *facts in zip(*columns, strict=True):
        if number is not None:
            found.setdefault(number, Board(*facts))
    return found


def _visible(raw: RawTables) -> dict[tuple[int, int], int]:
    """(pid, CUDA ordinal) → physical number."""
    table = raw.read("TARGET_INFO_CUDA_DEVICE")
    if table is None:
        return {}
    rows = zip(*(flat(table[name]).to_pylist() for name in ("pid", "cudaId", "gpuId")), strict=True)
    return {(pid, ordinal): gpu for pid, ordinal, gpu in rows if None not in {pid, ordinal, gpu}}


def spec_table(table: str, /, **columns: Values) -> pa.Table:
    """A small table from Python values, by its spec."""
    spec = TABLES[table]
    arrays = [
        strings([None if v is None else str(v) for v in columns[c.name]])
        if pa.types.is_string(c.type)
        else _integers(columns[c.name], c.type)
        for c in spec.columns
    ]
    return pa.Table.from_arrays(arrays, schema=spec.schema)


def _integers(values: Values, kind: pa.DataType) -> pa.Array:
    dtype = kind.to_pandas_dtype()
    given = np.array([v is not None for v in values], np.bool_)
    return from_numpy(np.array([0 if v is None else v for v in values], np.int64).astype(dtype), given)
