"""Small traces of kernels and small counter tables, from a few Python rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from nvprof_tools.model.counters import LAUNCHES, VALUES, CounterTable
from nvprof_tools.model.tables import SPECS, TABLES
from nvprof_tools.model.trace import Session, SourceInfo, Trace

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
ISSUE_ELAPSED = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"
TIME = "gpu__time_duration.sum"


@dataclass(frozen=True)
class Kernel:
    """One launch of a trace: launched at ``launch`` by ``thread``, −1: no call in the capture."""

    start: int
    end: int
    signature: str | None = "k(int)"
    mangled: str | None = None
    name: str = "k"
    grid: tuple[int, int, int] | None = (1, 1, 1)
    block: tuple[int, int, int] | None = (32, 1, 1)
    process: int = 0
    device: int = 0
    thread: int = 0
    launch: int | None = None


@dataclass(frozen=True)
class Profiled:
    """One profiled launch with its metrics."""

    metrics: Mapping[str, float]
    signature: str | None = "k(int)"
    mangled: str | None = None
    name: str | None = "k"
    grid: tuple[int, int, int] | None = (1, 1, 1)
    block: tuple[int, int, int] | None = (32, 1, 1)
    report: int = 0
    process: int | None = 100
    nvtx: str | None = None


@dataclass
class Ranges:
    """NVTX push/pop ranges: (start, end, thread, name)."""

    rows: Sequence[tuple[int, int, int, str]] = field(default_factory=tuple)


def trace(kernels: Sequence[Kernel], ranges: Sequence[tuple[int, int, int, str]] = ()) -> Trace:
    """A trace of these kernels in start order, each with an API call of its own where it has a launch."""
    ordered = sorted(kernels, key=lambda k: (k.start, k.end))
    calls = [k for k in ordered if k.launch is not None]
    rows: dict[str, list[dict[str, object]]] = {spec.name: [] for spec in SPECS}
    for number, k in enumerate(ordered):
        call = calls.index(k) if k.launch is not None else None
        rows["kernels"].append(
            {
                "start_ns": k.start, "end_ns": k.end, "process": k.process, "device": k.device, "context": 1,
                "stream": 7, "correlation_id": number + 1, "api_call": call, "name": k.name, "signature": k.signature,
                "mangled": k.mangled, **_shape(k.grid, k.block),
            }
        )  # fmt: skip
    for number, k in enumerate(calls):
        assert k.launch is not None
        rows["api_calls"].append(
            {
                "start_ns": k.launch, "end_ns": k.launch + 1, "process": k.process, "thread": k.thread,
                "correlation_id": number, "name": "cudaLaunchKernel", "driver_api": False,
            }
        )  # fmt: skip
    for start, end, thread, name in ranges:
        rows["nvtx_ranges"].append(
            {
                "start_ns": start, "end_ns": end, "process": 0, "thread": thread, "domain": "", "name": name,
                "push_pop": True, "open": False,
            }
        )  # fmt: skip
    tables = {name: _table(rows[name], TABLES[name].schema) for name in rows}
    return Trace(SourceInfo("test", None, "0" * 64), Session(0, None), tables, frozenset(tables))


def counters(profiled: Sequence[Profiled]) -> CounterTable:
    """Counters of these launches."""
    launches: list[dict[str, object]] = []
    values: list[dict[str, object]] = []
    seen: dict[int, int] = {}
    for number, p in enumerate(profiled):
        index = seen[p.report] = seen.get(p.report, -1) + 1
        launches.append(
            {
                "launch": number, "report": p.report, "launch_index": index, "process": p.process, "device": 0,
                "kernel": p.name, "signature": p.signature, "mangled": p.mangled, "nvtx": p.nvtx,
                **_shape(p.grid, p.block),
            }
        )  # fmt: skip
        values += [{"launch": number, "metric": m, "unit": "%", "value": float(v)} for m, v in p.metrics.items()]
    return CounterTable(
        _table(launches, LAUNCHES.schema), _table(values, VALUES.schema), SourceInfo("t", None, "0" * 64)
    )


def _shape(grid: tuple[int, int, int] | None, block: tuple[int, int, int] | None) -> dict[str, object]:
    out: dict[str, object] = {}
    for side, size in (("grid", grid), ("block", block)):
        out |= {f"{side}_{axis}": None if size is None else size[i] for i, axis in enumerate("xyz")}
    return out


def _table(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    columns = []
    for column in schema:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        array = pa.array([row.get(column.name) for row in rows], kind)
        columns.append(array.dictionary_encode().cast(column.type) if pa.types.is_dictionary(column.type) else array)
    return pa.Table.from_arrays(columns, schema=schema)
