"""Attributions and traces made by hand: a rich one with known figures, and the awkward ones every renderer must bear.

``rich()`` is drawn from round totals a reader can check: one GPU, two workers, ten partitions of two proofs. The
segment tables are built first and the aggregates are summed from them, except where a test states its own totals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from nvprof_tools.model.attribution import (
    DEVICE_SEGMENTS,
    SECTION_SEGMENTS,
    Attribution,
    Clock,
    DeviceView,
    Gap,
    Inputs,
    JobView,
    KernelCounters,
    Latency,
    MemoryUse,
    Overhead,
    PartitionView,
    Rung,
    Window,
)
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.tables import TABLES
from nvprof_tools.model.trace import Session, SourceInfo, Trace

MS = 1_000_000
BUSY = ("kernel", "upload", "download", "copy", "memset")

DEVICE_MS = {
    "kernel": 735.6,
    "cpu": 193.7,
    "launch": 81.1,
    "upload": 43.3,
    "mem_info": 26.6,
    "upload_issue": 19.4,
    "alloc": 16.5,
    "profiler": 12.0,
    "host_register": 10.7,
    "free": 6.8,
    "host_unregister": 4.6,
    "download": 4.2,
    "mutex_handover": 0.6,
}
SECTION_MS = {
    "mutex_wait": 752.2,
    "kernel": 735.6,
    "cpu": 195.0,
    "host_register": 107.4,
    "launch": 81.1,
    "upload": 43.3,
    "host_unregister": 42.5,
    "mem_info": 26.6,
    "upload_issue": 19.4,
    "alloc": 16.5,
    "profiler": 12.0,
    "free": 6.8,
    "download": 4.2,
    "sync_wait": 1.6,
    "device_sync": 0.24,
}
STAGES = {"msm": 0.86, "ntt": 0.12, "batch_add": 0.02}
KERNELS = {"msm": ("accumulate", "sort", "integrate"), "ntt": ("_CT_NTT", "_GS_NTT"), "batch_add": ("batch_addition",)}
DRIVER_LOCK_MS = {"launch": 71.7, "mem_info": 24.6, "alloc": 10.8, "free": 5.5, "upload_issue": 6.2}
BLOCKED_SHARE = {"host_register": 0.68, "host_unregister": 0.2434, "none": 0.0766}
CALLS = {"launch": 1798, "mem_info": 10, "alloc": 68, "host_register": 30, "host_unregister": 30, "free": 61}
PARTITIONS = 10


def ns(milliseconds: float) -> int:
    """Milliseconds as written by hand, exact in ns."""
    return round(milliseconds * 1_000) * 1_000


def split(total: int, parts: int) -> list[int]:
    """``total`` in ``parts`` integers that add up to it."""
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def names(values: Sequence[str | None]) -> pa.Array:
    return pa.array(list(values), pa.string()).dictionary_encode()


def device_table(rows: Sequence[tuple[int, int, int, str, str | None, int | None]]) -> pa.Table:
    device, start, end, category, detail, section = zip(*rows, strict=True) if rows else ((),) * 6
    columns = [device, start, end, names(category), names(detail), section]
    return pa.table(
        [
            pa.array(c, f.type) if not isinstance(c, pa.Array) else c
            for c, f in zip(columns, DEVICE_SEGMENTS, strict=True)
        ],
        schema=DEVICE_SEGMENTS,
    )


def section_table(rows: Sequence[tuple[int, int, int, str, str | None, str | None]]) -> pa.Table:
    section, start, end, category, detail, blocker = zip(*rows, strict=True) if rows else ((),) * 6
    columns = [section, start, end, names(category), names(detail), names(blocker)]
    return pa.table(
        [
            pa.array(c, f.type) if not isinstance(c, pa.Array) else c
            for c, f in zip(columns, SECTION_SEGMENTS, strict=True)
        ],
        schema=SECTION_SEGMENTS,
    )


def sums(categories: Sequence[str], lengths: Sequence[int]) -> dict[str, int]:
    out: dict[str, int] = {}
    for category, length in zip(categories, lengths, strict=True):
        out[category] = out.get(category, 0) + length
    return out


def make_trace(
    rows: Mapping[str, Sequence[Mapping[str, object]]], measured: Sequence[str] | None = None, end_ns: int | None = None
) -> Trace:
    """A trace whose tables hold these rows; columns left out are null, 0, false or empty."""
    tables = {}
    for name, spec in TABLES.items():
        given = rows.get(name, ())
        arrays = []
        for column in spec.columns:
            blank: object = None
            if not column.nullable:
                blank = False if pa.types.is_boolean(column.type) else 0 if pa.types.is_integer(column.type) else ""
            values = [row.get(column.name, blank) for row in given]
            is_name = pa.types.is_dictionary(column.type)
            arrays.append(
                pa.array(values, pa.string()).dictionary_encode() if is_name else pa.array(values, column.type)
            )
        tables[name] = pa.table(arrays, schema=spec.schema)
    return Trace(
        SourceInfo("nsys-sqlite", "2025.3.2.0", "ab" * 32, "3.20.7"),
        Session(1_796_062_915_000_000_000, end_ns, {}),
        tables,
        frozenset(measured if measured is not None else [name for name in rows if rows[name]]),
    )


def _hold_rows(
    section: int, start: int, shares: Mapping[str, int]
) -> list[tuple[int, int, int, str, str | None, int | None]]:
    """One hold of the lock on device 0: calls first, then uploads, then kernels with launches and CPU between them."""
    rows: list[tuple[int, int, int, str, str | None, int | None]] = []
    at = start

    def put(category: str, length: int, detail: str | None = None) -> None:
        nonlocal at
        if length:
            rows.append((0, at, at + length, category, detail, section))
            at += length

    for category in ("host_register", "mem_info", "alloc", "upload_issue", "upload"):
        put(category, shares[category])
    rounds = 12
    pieces = {c: split(shares[c], rounds) for c in ("kernel", "launch", "cpu", "profiler")}
    for i in range(rounds):
        stage = "ntt" if i < 3 else "batch_add" if i == 3 else "msm"
        put("launch", pieces["launch"][i])
        put("kernel", pieces["kernel"][i], stage)
        put("cpu", pieces["cpu"][i], "prep_join" if i % 2 else "pthread_cond_wait")
        put("profiler", pieces["profiler"][i])
    for category in ("download", "free", "host_unregister"):
        put(category, shares[category])
    return rows


def rich() -> Attribution:
    """One H200, two workers, ten partitions: the totals of DEVICE_MS and SECTION_MS, to the nanosecond."""
    device_rows: list[tuple[int, int, int, str, str | None, int | None]] = []
    section_rows: list[tuple[int, int, int, str, str | None, str | None]] = []
    partitions: list[PartitionView] = []
    at = 1_900 * MS
    start = at
    per_device = {c: split(ns(v), PARTITIONS) for c, v in DEVICE_MS.items()}
    per_section = {c: split(ns(v), PARTITIONS) for c, v in SECTION_MS.items()}
    locks = {c: split(ns(v), PARTITIONS) for c, v in DRIVER_LOCK_MS.items()}
    blocked_total = dict.fromkeys(BLOCKED_SHARE, 0)
    for i in range(PARTITIONS):
        device_rows.append((0, at, at + per_device["mutex_handover"][i], "mutex_handover", None, None))
        at += per_device["mutex_handover"][i]
        hold = _hold_rows(i, at, {c: v[i] for c, v in per_device.items()})
        device_rows += hold
        before = per_section["host_register"][i] + per_section["mutex_wait"][i]
        t = at - before
        section_start = t
        blockers: dict[str, int] = {}
        order = ["host_register", "mutex_wait", "device_sync", "mem_info", "alloc", "upload_issue", "upload"]
        order += ["launch", "kernel", "cpu", "profiler", "sync_wait", "download", "free", "host_unregister"]
        for category in order:
            length = per_section[category][i]
            locked = locks.get(category, [0] * PARTITIONS)[i]
            for blocker, share in BLOCKED_SHARE.items():
                part = round(locked * share)
                if part and part < length:
                    section_rows.append((i, t, t + part, category, None, blocker))
                    blockers[blocker] = blockers.get(blocker, 0) + part
                    t += part
                    length -= part
            detail = "msm" if category == "kernel" else "prep_join" if category == "cpu" else None
            section_rows.append((i, t, t + length, category, detail, None))
            t += length
        for blocker, length in blockers.items():
            blocked_total[blocker] += length
        partitions.append(
            PartitionView(
                section=i,
                job=f"job-{i // 5 + 1}",
                partition=i % 5,
                worker=i % 2,
                device=0,
                start_ns=section_start,
                end_ns=t,
                bracket_start_ns=section_start,
                bracket_end_ns=t,
                categories={c: v[i] for c, v in per_section.items()},
                details={"kernel": {"msm": per_section["kernel"][i]}, "cpu": {"prep_join": per_section["cpu"][i]}},
                driver_locks={c: sum(1 for _ in ()) + v[i] for c, v in locks.items()},
                blockers=blockers,
                open=False,
                cold=i < 5,
            )
        )
        at = hold[-1][2]
    window = Window(start, at, "log")
    wall = window.wall_ns
    device = device_table(device_rows)
    categories = {c: ns(v) for c, v in DEVICE_MS.items()}
    stages = sums(
        [r[4] or "" for r in device_rows if r[3] == "kernel"], [r[2] - r[1] for r in device_rows if r[3] == "kernel"]
    )
    idle_not_held = categories["mutex_handover"]
    busy = sum(categories.get(c, 0) for c in BUSY)

    def rung(name: str, busy_ns: int | None, evidence: str, drop: Mapping[str, int] | None = None) -> Rung:
        return Rung(0, name, busy_ns, None if busy_ns is None else busy_ns / wall, evidence, drop or {})

    def sampled(name: str, fraction: float) -> Rung:
        return Rung(0, name, None, fraction, "GPU_METRICS")

    held = wall - idle_not_held
    ladder = (
        rung("timeline_sum", sum(p.wall_ns or 0 for p in partitions), "LOG"),
        rung("timeline_bracket", wall, "LOG"),
        rung("mutex_held", held, "NVTX", {"mutex_handover": idle_not_held}),
        Rung(0, "nvml_utilisation", None, None, "NVML"),
        rung(
            "device_busy",
            busy,
            "KERNEL, MEMCPY, MEMSET",
            {c: v for c, v in categories.items() if c not in BUSY and c != "mutex_handover"},
        ),
        sampled("gr_active", 0.641),
        rung(
            "kernel_busy",
            categories["kernel"],
            "KERNEL",
            {"upload": categories["upload"], "download": categories["download"]},
        ),
        sampled("sm_active", 0.564),
        sampled("warps_in_flight", 0.182),
        sampled("sm_issue", 0.146),
        sampled("dram_read", 0.071),
        sampled("dram_write", 0.033),
        sampled("pcie_rx", 0.052),
        sampled("pcie_tx", 0.004),
    )
    section_wall = sum(ns(v) for v in SECTION_MS.values())
    overheads = []
    for category, total_ms in SECTION_MS.items():
        total = ns(total_ms)
        calls = CALLS.get(category, PARTITIONS if category in {"mutex_wait", "device_sync"} else None)
        locked = DRIVER_LOCK_MS.get(category)
        overheads.append(
            Overhead(
                category=category,
                calls=calls,
                total_ns=total,
                mean_ns=None if calls is None else total / calls,
                p50_ns=None if calls is None else total // calls // 2,
                p95_ns=None if calls is None else total // calls * 2,
                max_ns=None if calls is None else total // calls * 3,
                section_fraction=total / section_wall,
                device_idle_ns=0 if category in BUSY else categories.get(category, 0),
                driver_lock_ns=None
                if category in {"kernel", "cpu", "mutex_wait"}
                else 0
                if locked is None
                else ns(locked),
                blockers={} if locked is None else {b: round(ns(locked) * s) for b, s in BLOCKED_SHARE.items()},
                evidence="NVTX" if category == "mutex_wait" else "RUNTIME",
            )
        )
    gaps = [
        Gap(0, r[1], r[2], r[3], {r[3]: r[2] - r[1]}, "accumulate", "sort")
        for r in sorted(device_rows, key=lambda r: r[1] - r[2])
        if r[3] not in BUSY
    ][:20]
    jobs = tuple(
        JobView(
            job=f"job-{j + 1}",
            partitions=5,
            wall_ns=600 * MS,
            synthesis_ns=1_600 * MS,
            queue_ns=120 * MS,
            gpu_ns=sum(p.wall_ns or 0 for p in partitions[5 * j : 5 * j + 5]),
            slack_ns=37 * MS,
            categories={c: sum(v[5 * j : 5 * j + 5]) for c, v in per_section.items()},
            cold=j == 0,
        )
        for j in range(2)
    )
    times = tuple(range(start, at, 5 * MS))
    in_use = tuple(int(2e9 + 3e9 * abs(np.sin(k / 9))) for k in range(len(times)))
    return Attribution(
        inputs=Inputs(
            SourceInfo("nsys-sqlite", "2025.3.2.0", "ab" * 32, "3.20.7"),
            SourceInfo("timeline-log", None, "cd" * 32),
            SourceInfo("ncu-csv", "2025.3.1", "ef" * 32),
            1,
        ),
        pipeline="cuzk",
        window=window,
        clock=Clock("anchor", ns(1_929.3), ns(0.25), 0.4, ns(1_928.92), ns(1_929.42), ns(1_929.3), False),
        ladder=ladder,
        devices=(
            DeviceView(
                0,
                "NVIDIA H200",
                wall,
                categories,
                {
                    "kernel": stages,
                    "cpu": sums(
                        [r[4] or "" for r in device_rows if r[3] == "cpu"],
                        [r[2] - r[1] for r in device_rows if r[3] == "cpu"],
                    ),
                },
                stages,
                {
                    "kernel:msm": {"sm_active": 88.1, "sm_issue": 23.4, "dram_read": 9.2},
                    "kernel:ntt": {"sm_active": 91.0, "sm_issue": 31.7, "dram_read": 41.5},
                    "upload": {"sm_active": 0.0, "pcie_rx": 71.3},
                    "cpu": {"sm_active": 0.0},
                },
            ),
        ),
        partitions=tuple(partitions),
        jobs=jobs,
        overheads=tuple(overheads),
        latency=(
            Latency("msm", 1400, 6_200, 80_000, 9 * MS, 1_100, 60_000, 8 * MS),
            Latency("ntt", 250, 7_100, 41_000, 2 * MS, None, None, None),
        ),
        memory=(
            MemoryUse(0, max(in_use), times[in_use.index(max(in_use))], "CUDA_GPU_MEMORY_USAGE_EVENTS", times, in_use),
        ),
        gaps=tuple(gaps),
        counters=(
            KernelCounters(
                "accumulate",
                "msm",
                1100,
                ns(556.2),
                1090,
                ns(551.0),
                62.1,
                11.4,
                24.8,
                25.0,
                23.1,
                {"long_scoreboard": 41.0, "math_pipe": 22.0},
                "compute",
                "name",
            ),
            KernelCounters(
                "_CT_NTT", "ntt", 120, ns(20.5), 120, ns(20.5), 38.0, 71.5, 48.9, 50.0, 30.0, {}, "memory", "signature"
            ),
            KernelCounters(None, "batch_add", 10, ns(10.8), 0, 0, None, None, None, None, None, {}, None, "none"),
        ),
        device_segments=device,
        section_segments=section_table(section_rows),
        quality=ordered(
            [
                QualityItem("log-embedded", Severity.INFO, 1, "The log was found inside the trace", ""),
                QualityItem(
                    "dropped-records",
                    Severity.DATA_LOSS,
                    12,
                    "The profiler dropped 12 records",
                    "Profile a shorter run",
                ),
            ]
        ),
    )


def rich_trace(attribution: Attribution | None = None, copies: int = 8) -> Trace:
    """What a profiler would have recorded of ``rich()``: each kernel segment is ``copies`` launches back to back."""
    a = rich() if attribution is None else attribution
    kernels: list[dict[str, object]] = []
    calls: list[dict[str, object]] = []
    transfers: list[dict[str, object]] = []
    ranges: list[dict[str, object]] = []
    for row in a.device_segments.to_pylist():
        length = row["end_ns"] - row["start_ns"]
        thread = 1 + (row["section"] or 0) % 2
        if row["category"] == "kernel":
            for k in range(copies):
                start = row["start_ns"] + length * k // copies
                stage = row["detail"] or "msm"
                name = KERNELS.get(stage, ("kernel",))[k % len(KERNELS.get(stage, ("kernel",)))]
                call = {
                    "start_ns": start - 9_000,
                    "end_ns": start - 4_000,
                    "thread": thread,
                    "name": "cudaLaunchKernel",
                    "correlation_id": len(calls) + 1,
                }
                calls.append(call)
                kernels.append(
                    {
                        "start_ns": start,
                        "end_ns": row["start_ns"] + length * (k + 1) // copies,
                        "device": row["device"],
                        "stream": 7,
                        "context": 1,
                        "name": name,
                        "signature": f"void {name}<fr_t>(fr_t*)",
                        "grid_x": 132,
                        "block_x": 256,
                        "correlation_id": len(calls),
                        "api_call": len(calls) - 1,
                    }
                )
        elif row["category"] in {"upload", "download"}:
            transfers.append(
                {
                    "start_ns": row["start_ns"],
                    "end_ns": row["end_ns"],
                    "device": row["device"],
                    "stream": 9,
                    "kind": "HtoD" if row["category"] == "upload" else "DtoH",
                    "bytes": length * 40,
                    "source_memory": "pinned",
                }
            )
    for p in a.partitions:
        if p.start_ns is not None and p.end_ns is not None:
            ranges.append(
                {
                    "start_ns": p.start_ns,
                    "end_ns": p.end_ns,
                    "thread": 1 + (p.worker or 0),
                    "name": "gpu_prove",
                    "push_pop": True,
                }
            )
            ranges.append(
                {
                    "start_ns": p.start_ns - 380 * MS,
                    "end_ns": p.start_ns - 40 * MS,
                    "thread": 3 + (p.partition or 0),
                    "name": "synthesis",
                    "push_pop": True,
                }
            )
    metrics: list[dict[str, object]] = []
    for t in range(a.window.start_ns, a.window.end_ns, MS // 2):
        for metric, scale in (
            ("SMs Active [Throughput %]", 90.0),
            ("DRAM Read Bandwidth [Throughput %]", 20.0),
            ("DRAM Write Bandwidth [Throughput %]", 8.0),
        ):
            metrics.append(
                {"time_ns": t, "device": 0, "metric": metric, "value": float(round(scale * abs(np.sin(t / 4e7))))}
            )
    threads = sorted({r["thread"] for r in (*calls, *ranges)} | {0})
    order = sorted(range(len(calls)), key=lambda i: calls[i]["start_ns"])  # type: ignore[arg-type, return-value]
    place = {old: new for new, old in enumerate(order)}
    for kernel in kernels:
        kernel["api_call"] = place[kernel["api_call"]]  # type: ignore[index]
    return make_trace(
        {
            "kernels": kernels,
            "copies": transfers,
            "api_calls": [calls[i] for i in order],
            "nvtx_ranges": sorted(ranges, key=lambda r: r["start_ns"]),  # type: ignore[arg-type, return-value]
            "gpu_metrics": metrics,
            "threads": [{"thread": t, "tid": 1000 + t, "name": f"worker-{t}"} for t in threads],
            "processes": [{"pid": 4242, "name": "prover"}],
            "devices": [{"name": "NVIDIA H200", "sm_count": 132}],
        },
        end_ns=a.window.end_ns + 50 * MS,
    )


def empty() -> Attribution:
    """A capture with nothing in it that could be attributed."""
    return Attribution(
        Inputs(SourceInfo("nsys-sqlite", None, "00" * 32), None, None),
        "generic",
        Window(0, 0, "trace"),
        Clock("none"),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        DEVICE_SEGMENTS.empty_table(),
        SECTION_SEGMENTS.empty_table(),
        (),
    )


def one_event() -> Attribution:
    """A single kernel of one nanosecond."""
    return replace(
        empty(),
        window=Window(-5, -4, "trace"),
        ladder=(
            Rung(0, "device_busy", 1, 1.0, "KERNEL"),
            Rung(0, "kernel_busy", 1, 1.0, "KERNEL"),
            Rung(0, "sm_active", None, None, "GPU_METRICS"),
        ),
        devices=(DeviceView(0, None, 1, {"kernel": 1}, {}, {"other": 1}),),
        device_segments=device_table([(0, -5, -4, "kernel", "other", None)]),
    )


def no_cuda() -> Attribution:
    """Ranges only: no device, no GPU rung measured."""
    rungs = tuple(Rung(None, r, None, None, "KERNEL") for r in ("device_busy", "kernel_busy", "sm_active"))
    item = QualityItem("no-gpu-work", Severity.NOTICE, 1, "The capture holds no GPU work", "Trace with --trace=cuda")
    return replace(empty(), window=Window(0, 10**9, "trace"), ladder=rungs, quality=(item,))


def no_log() -> Attribution:
    """The rich one without a log: no partitions, no bracket rungs."""
    a = rich()
    log_rungs = {"timeline_sum", "timeline_bracket", "mutex_held"}
    ladder = tuple(replace(r, busy_ns=None, fraction=None, drop={}) if r.rung in log_rungs else r for r in a.ladder)
    return replace(
        a,
        inputs=replace(a.inputs, log=None, log_run=None),
        clock=Clock("none"),
        ladder=ladder,
        partitions=(),
        jobs=(),
        overheads=(),
        section_segments=SECTION_SEGMENTS.empty_table(),
        window=replace(a.window, source="trace"),
    )


def no_metrics() -> Attribution:
    """The rich one with no samples, no counters, no memory events, no OS calls."""
    a = rich()
    sampled = {"GPU_METRICS", "NVML"}
    return replace(
        a,
        ladder=tuple(replace(r, busy_ns=None, fraction=None) if r.evidence in sampled else r for r in a.ladder),
        devices=tuple(replace(d, metrics={}) for d in a.devices),
        counters=(),
        memory=tuple(MemoryUse(0, None, None, "none") for _ in a.memory),
        overheads=tuple(replace(o, driver_lock_ns=None, blockers={}) for o in a.overheads),
        partitions=tuple(replace(p, driver_locks=None, blockers=None) for p in a.partitions),
    )


def ten_devices() -> Attribution:
    """Ten GPUs, each with its own worker and its own share of kernels."""
    rows: list[tuple[int, int, int, str, str | None, int | None]] = []
    sections: list[tuple[int, int, int, str, str | None, str | None]] = []
    devices, partitions, ladder = [], [], []
    wall = 1000 * MS
    for d in range(10):
        busy = (d + 1) * 90 * MS
        rows += [(d, 0, busy, "kernel", "msm", d), (d, busy, wall, "cpu", None, d)]
        sections += [(d, 0, busy, "kernel", "msm", None), (d, busy, wall, "cpu", None, None)]
        categories = {"kernel": busy, "cpu": wall - busy}
        devices.append(DeviceView(d, f"NVIDIA H{d}", wall, categories, {}, {"msm": busy}))
        partitions.append(PartitionView(d, "job", d, d, d, 0, wall, 0, wall, categories, {}, None, None, False))
        ladder += [
            Rung(d, "timeline_bracket", wall, 1.0, "LOG"),
            Rung(d, "device_busy", busy, busy / wall, "KERNEL", {"cpu": wall - busy}),
            Rung(d, "kernel_busy", busy, busy / wall, "KERNEL"),
        ]
    return replace(
        empty(),
        window=Window(0, wall, "log"),
        clock=Clock("constraints", 0, 400_000),
        ladder=tuple(ladder),
        devices=tuple(devices),
        partitions=tuple(partitions),
        device_segments=device_table(rows),
        section_segments=section_table(sections),
    )


def many_segments(count: int = 200_000) -> Attribution:
    """``count`` device segments in one second, alternating kernel and launch; one section over all."""
    edges = np.arange(count + 1, dtype=np.int64) * (1000 * MS) // count
    category = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(count, dtype=np.int32) % 2, pa.int32()), pa.array(["kernel", "launch"])
    )
    table = pa.table(
        [
            pa.array(np.zeros(count, np.int32)),
            pa.array(edges[:-1]),
            pa.array(edges[1:]),
            category,
            pa.nulls(count, DEVICE_SEGMENTS.field("detail").type),
            pa.nulls(count, pa.int32()),
        ],
        schema=DEVICE_SEGMENTS,
    )
    lengths = np.diff(edges)
    categories = {"kernel": int(lengths[::2].sum()), "launch": int(lengths[1::2].sum())}
    return replace(
        empty(),
        window=Window(0, int(edges[-1]), "trace"),
        ladder=(Rung(0, "kernel_busy", categories["kernel"], categories["kernel"] / int(edges[-1]), "KERNEL"),),
        devices=(DeviceView(0, "NVIDIA H200", int(edges[-1]), categories, {}, {}),),
        device_segments=table,
    )


def many_kernels_trace(count: int = 200_000) -> Trace:
    """``count // 2`` kernels with a launch each, on the segments of ``many_segments``."""
    n = count // 2
    edges = np.arange(count + 1, dtype=np.int64) * (1000 * MS) // count
    trace = make_trace({"processes": [{"pid": 1}], "threads": [{"tid": 1}], "devices": [{"name": "NVIDIA H200"}]})
    spec = TABLES["kernels"]

    def filled(table: str, values: Mapping[str, pa.Array]) -> pa.Table:
        arrays = []
        for column in TABLES[table].columns:
            if column.name in values:
                arrays.append(values[column.name])
            elif column.nullable:
                arrays.append(pa.nulls(n, column.type))
            elif pa.types.is_boolean(column.type):
                arrays.append(pa.array(np.zeros(n, bool)))
            else:
                arrays.append(pa.array(np.zeros(n, np.int64)).cast(column.type))
        return pa.table(arrays, schema=TABLES[table].schema)

    index = pa.array(np.arange(n, dtype=np.int64))
    kernel_name = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(n, dtype=np.int32) % 40, pa.int32()), pa.array([f"kernel_{i}" for i in range(40)])
    )
    call_name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["cudaLaunchKernel"]))
    kernels = filled(
        spec.name,
        {
            "start_ns": pa.array(edges[:-1:2]),
            "end_ns": pa.array(edges[1::2]),
            "name": kernel_name,
            "api_call": index,
            "correlation_id": index,
        },
    )
    calls = filled(
        "api_calls",
        {
            "start_ns": pa.array(edges[:-1:2] - 3_000),
            "end_ns": pa.array(edges[:-1:2] - 1_000),
            "name": call_name,
            "correlation_id": index,
        },
    )
    return replace(
        trace,
        tables={**trace.tables, "kernels": kernels, "api_calls": calls},
        measured=trace.measured | {"kernels", "api_calls"},
    )


HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[x]]>",
    "&lt;b&gt;&amp;",
    "&#60;script&#62;",
    "<iframe src=http://example.invalid>",
    "<style>*{display:none}</style>",
    "<base href=//example.invalid>",
    "<meta http-equiv=refresh content=0>",
    "{{7*7}}${7*7}#{7*7}<%= 7*7 %>",
    "`${alert(1)}`",
    "\u2028\u2029",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\u202eevil\u2066",
    "\x00\x01\x08\x7f\x9b",
    "line\nbreak\r\ttab",
    '=HYPERLINK("http://example.invalid")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "|pipe|`code`|*bold*|[a](javascript:alert(1))",
    "```\n# heading\n```",
    "\ud800lone",
    "é\u0301漢字🚀",
    "__proto__",
    "constructor",
    "x" * 10_000,
)
"""Strings that a trace or a log may hold; none may change the meaning of any report."""


def hostile(payload: str) -> Attribution:
    """The rich one with ``payload`` in every field a file could fill."""
    a = rich()

    def renamed(table: pa.Table, column: str) -> pa.Table:
        at = table.schema.get_field_index(column)
        safe = payload.encode("utf-8", "replace").decode("utf-8")
        values = names([None if v is None else safe for v in table.column(column).to_pylist()])
        return table.set_column(at, table.schema.field(column), values)

    stage = {payload: a.devices[0].categories["kernel"]}
    return replace(
        a,
        inputs=Inputs(
            SourceInfo(payload, payload, payload, payload),
            SourceInfo(payload, payload, payload),
            SourceInfo(payload, payload, payload),
        ),
        pipeline=payload,
        ladder=(
            *tuple(replace(r, evidence=payload) for r in a.ladder),
            Rung(0, payload, 1, 0.5, payload, {payload: 5}),
        ),
        devices=tuple(
            replace(
                d,
                name=payload,
                stages=stage,
                details={"cpu": {payload: d.categories["cpu"]}},
                metrics={f"kernel:{payload}": {payload: 1.0}},
            )
            for d in a.devices
        ),
        partitions=tuple(
            replace(
                p,
                job=payload,
                details={"cpu": {payload: p.categories["cpu"]}},
                blockers={payload: 3},
                driver_locks={payload: 3},
            )
            for p in a.partitions
        ),
        jobs=tuple(replace(j, job=payload) for j in a.jobs),
        overheads=(
            *tuple(replace(o, blockers={payload: 5 * MS}, evidence=payload) for o in a.overheads),
            Overhead(payload, 1, 5, 5.0, 5, 5, 5, 0.1, 5, 5, {payload: 5}, payload),
        ),
        latency=tuple(replace(x, stage=payload) for x in a.latency),
        memory=tuple(replace(m, evidence=payload) for m in a.memory),
        gaps=tuple(replace(g, category=payload, before=payload, after=payload) for g in a.gaps),
        counters=tuple(
            replace(k, kernel=payload, stage=payload, stalls={payload: 1.0}, match=payload) for k in a.counters
        ),
        device_segments=renamed(a.device_segments, "detail"),
        section_segments=renamed(a.section_segments, "detail"),
        quality=(QualityItem(payload, Severity.DATA_LOSS, 3, payload, payload),),
    )


@cache
def _hostile_base() -> Trace:
    return rich_trace(copies=1)


def hostile_trace(payload: str) -> Trace:
    """The rich trace with ``payload`` for every name."""
    trace = _hostile_base()
    safe = payload.encode("utf-8", "replace").decode("utf-8")
    tables = dict(trace.tables)
    for name in ("kernels", "copies", "api_calls", "nvtx_ranges", "gpu_metrics", "threads", "processes", "devices"):
        table = tables[name]
        for i, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type):
                values = [None if v is None else safe for v in table.column(i).to_pylist()]
                column = pa.array(values, pa.string())
                table = table.set_column(
                    i, field, column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
                )
        tables[name] = table
    return replace(trace, tables=tables)


def outside_capture() -> Attribution:
    """Partitions the log knows and the capture does not."""
    a = rich()
    gone = replace(
        a.partitions[0],
        section=None,
        start_ns=None,
        end_ns=None,
        categories={},
        details={},
        driver_locks=None,
        blockers=None,
        worker=None,
        device=None,
    )
    return replace(a, partitions=(*a.partitions[:-1], gone, replace(a.partitions[-1], open=True)))


def far(start: int) -> tuple[Attribution, Trace]:
    """One kernel at the edge of what 64 bits hold."""
    a = replace(
        one_event(),
        window=Window(start, start + 1, "trace"),
        device_segments=device_table([(0, start, start + 1, "kernel", "other", None)]),
    )
    return a, make_trace({"kernels": [{"start_ns": start, "end_ns": start + 1, "name": "k"}]})


AWKWARD: Mapping[str, Callable[[], tuple[Attribution, Trace | None]]] = {
    "rich": lambda: (rich(), rich_trace()),
    "no_trace": lambda: (rich(), None),
    "empty": lambda: (empty(), make_trace({})),
    "one_event": lambda: (one_event(), make_trace({"kernels": [{"start_ns": -5, "end_ns": -4, "name": "k"}]})),
    "ten_devices": lambda: (ten_devices(), None),
    "many_segments": lambda: (many_segments(), many_kernels_trace()),
    "no_metrics": lambda: (no_metrics(), rich_trace()),
    "no_log": lambda: (no_log(), rich_trace()),
    "no_cuda": lambda: (no_cuda(), make_trace({"nvtx_ranges": [{"start_ns": 0, "end_ns": 10**9, "name": "step"}]})),
    "far_future": lambda: far(2**63 - 3),
    "far_past": lambda: far(-(2**62)),
    "outside_capture": lambda: (outside_capture(), rich_trace()),
    "hostile": lambda: (hostile(HOSTILE[1]), hostile_trace(HOSTILE[1])),
}
"""Name → the run; every renderer is tested over all of them."""
