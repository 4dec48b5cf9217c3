"""Traces made by a model with known costs: threads that run steps of calls and kernels, so that a cost can be planted.

Each step of a thread: lock a mutex, ask for free memory, allocate, pin, launch kernels, synchronise, unpin, free. Call
lengths vary about a mean by a gamma law; nothing else depends on anything. Truth is what the model was told.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from nvprof_tools.model.tables import TABLES
from nvprof_tools.model.trace import Session, SourceInfo, Trace

MEANS_US = {
    "pthread_mutex_lock": 72.0,
    "cudaMemGetInfo": 90.0,
    "cudaMalloc": 60.0,
    "cudaHostRegister": 120.0,
    "cudaLaunchKernel": 20.0,
    "cudaDeviceSynchronize": 2.0,
    "cudaHostUnregister": 70.0,
    "cudaFree": 80.0,
}
"""Mean length of each call, one a step."""
KERNEL_US = 1_300.0


def generated(
    seed: int, slow: Mapping[str, float] | None = None, *, steps: int = 150, threads: int = 2, launches: int = 1
) -> Trace:
    """A trace of ``threads`` × ``steps`` steps of ``launches`` kernels; ``slow`` multiplies a call's mean length."""
    rng = np.random.default_rng(seed)
    slow = slow or {}
    calls: list[tuple[int, int, int, str]] = []
    kernels: list[tuple[int, int, int, int]] = []
    ranges: list[tuple[int, int, int, str]] = []
    locks: list[tuple[int, int, int]] = []
    for thread in range(threads):
        now = 1_000_000 + 10_000 * thread
        for step in range(steps):
            begin = now
            now += 500
            for name, mean in _calls(launches):
                length = int(1_000 * mean * slow.get(name, 1.0) * (0.5 + rng.gamma(2.0, 0.25)))
                if name == "pthread_mutex_lock":
                    locks.append((now, now + length, thread))
                elif name == "cudaDeviceSynchronize":
                    length = max(length, kernels[-1][1] + 2_000 - now)
                    calls.append((now, now + length, thread, name))
                else:
                    calls.append((now, now + length, thread, name))
                if name == "cudaLaunchKernel":
                    start = max(now + length + 1_500, kernels[-1][1] if kernels and kernels[-1][2] == thread else 0)
                    kernel = int(1_000 * KERNEL_US / launches * (0.7 + rng.gamma(2.0, 0.15)))
                    kernels.append((start, start + kernel, thread, len(calls) - 1))
                now += length + 300 + int(rng.gamma(2.0, 300))
            ranges.append((begin, now, thread, f"step:{thread}:{step}"))
            now += 1_000 + int(rng.gamma(2.0, 2_000))
    return _trace(calls, kernels, ranges, locks, threads)


def _calls(launches: int) -> list[tuple[str, float]]:
    return [
        (name, mean) for name, mean in MEANS_US.items() for _ in range(launches if name == "cudaLaunchKernel" else 1)
    ]


def _trace(
    calls: list[tuple[int, int, int, str]],
    kernels: list[tuple[int, int, int, int]],
    ranges: list[tuple[int, int, int, str]],
    locks: list[tuple[int, int, int]],
    threads: int,
) -> Trace:
    order = sorted(range(len(calls)), key=lambda i: calls[i][:3])
    place = {old: new for new, old in enumerate(order)}
    calls = [calls[i] for i in order]
    kernels = sorted((a, b, t, place[c]) for a, b, t, c in kernels)
    tables = {name: spec.empty() for name, spec in TABLES.items()}
    tables["api_calls"] = table(
        "api_calls",
        [
            {"start_ns": a, "end_ns": b, "process": 0, "thread": t, "correlation_id": i, "name": n, "driver_api": False}
            for i, (a, b, t, n) in enumerate(calls)
        ],
    )
    tables["kernels"] = table(
        "kernels",
        [
            {
                "start_ns": a, "end_ns": b, "process": 0, "device": 0, "context": 1, "stream": 7 + t,
                "correlation_id": c, "api_call": c, "name": "step_kernel",
            }
            for a, b, t, c in kernels
        ],
    )  # fmt: skip
    tables["nvtx_ranges"] = table(
        "nvtx_ranges",
        [
            {
                "start_ns": a,
                "end_ns": b,
                "process": 0,
                "thread": t,
                "domain": "",
                "name": n,
                "push_pop": True,
                "open": False,
            }
            for a, b, t, n in sorted(ranges)
        ],
    )
    tables["os_calls"] = table(
        "os_calls",
        [
            {"start_ns": a, "end_ns": b, "process": 0, "thread": t, "name": "pthread_mutex_lock", "nesting": 0}
            for a, b, t in sorted(locks)
        ],
    )
    tables["threads"] = table("threads", [{"thread": t, "process": 0, "tid": 100 + t} for t in range(threads)])
    tables["processes"] = table("processes", [{"process": 0, "pid": 42, "name": "model"}])
    tables["devices"] = table("devices", [{"device": 0, "name": "Model GPU", "clock_hz": 1_000_000_000}])
    end = max(b for _, b, *_ in ranges)
    measured = frozenset({"api_calls", "kernels", "nvtx_ranges", "os_calls", "threads", "processes", "devices"})
    return Trace(SourceInfo("model", "1", "0" * 64), Session(1_700_000_000_000_000_000, end + 1_000), tables, measured)


def table(name: str, rows: list[dict[str, object]]) -> pa.Table:
    """Rows as one of the normalised tables, nulls where nothing is given."""
    schema = TABLES[name].schema
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        words = pa.types.is_dictionary(field.type)
        columns.append(pa.array(values, pa.string()).dictionary_encode() if words else pa.array(values, field.type))
    return pa.Table.from_arrays(
        [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns], schema=schema
    )
