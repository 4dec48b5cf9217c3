"""Generated exports of any size, in the layout of ``nsys export --type sqlite``, each with its pipeline's log.

    python -m benchmarks.speed.generate OUT.sqlite --kernels 5000000

Two workers prove partitions of jobs on one GPU. A partition pins its memory, waits for the GPU's mutex, and under it
allocates, uploads, launches its kernels, downloads, synchronises and frees; after it, it unpins. Every launch lies in
an NVTX range, and five phase ranges lie around the calls. The log (OUT.log) brackets each partition in milliseconds.
Rows are written worker by worker, as profilers do, so they are not sorted by time. The same arguments give the same
rows.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

EPOCH_NS = 1_767_225_600_000_000_000
"""UTC of time zero."""
WORKERS, PARTITIONS_A_JOB = 2, 10
PROCESS = 4242 << 24
NAMES, LABELS = 200, 64
BLOCK = 500
"""Partitions written at once."""

BEFORE = (("cudaHostRegister_v4000", 120_000),)
INSIDE = (("cudaMemGetInfo_v3020", 30_000), ("cudaMalloc_v3020", 50_000), ("cudaMemcpyAsync_v3020", 6_000))
LAUNCH = ("cudaLaunchKernel_v7000", 3_500)
LAST = (("cudaMemcpyAsync_v3020", 6_000), ("cudaDeviceSynchronize_v3020", 2_000), ("cudaFree_v3020", 60_000))
AFTER = (("cudaHostUnregister_v4000", 70_000),)

COLUMNS = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "ANALYSIS_DETAILS": (
        "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL"
    ),
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": (
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, "
        "clockRate INTEGER, smCount INTEGER, cuDevice INTEGER, maxWarpsPerSm INTEGER, computeMajor INTEGER, "
        "computeMinor INTEGER"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId "
        "INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
        "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName "
        "INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, "
        "registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, "
        "blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT "
        "NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER "
        "NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, "
        "sharedMemoryLimitConfig INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId "
        "INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT "
        "NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER, copyCount INTEGER"
    ),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color "
        "INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value "
        "INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
        "jsonTextId INTEGER, jsonText TEXT, binaryData TEXT"
    ),
    "OSRT_API": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId "
        "INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER"
    ),
}


@dataclass
class Words:
    """The string table as it grows."""

    number: dict[str, int] = field(default_factory=dict)

    def id(self, word: str) -> int:
        return self.number.setdefault(word, len(self.number))


@dataclass
class Block:
    """Some partitions, times relative to the moment their mutex is theirs: one row a partition."""

    call_start: Ints
    call_end: Ints
    work_start: Ints
    work_end: Ints
    held: Ints
    before: Ints
    after: Ints
    name: Ints


def block(rng: np.random.Generator, count: int, kernels: int) -> Block:
    """Lengths of everything in ``count`` partitions: gamma and log-normal, as such lengths are."""
    calls = [*INSIDE, *[LAUNCH] * kernels, *LAST]
    mean = np.array([m for _, m in calls])
    length = (mean * (0.5 + rng.gamma(2.0, 0.25, (count, len(calls))))).astype(np.int64)
    gap = rng.gamma(2.0, 300, length.shape).astype(np.int64) + 100
    start = np.cumsum(gap + length, axis=1) - length
    copy_in, copy_out, sync = 2, 3 + kernels, 4 + kernels
    given = [copy_in, *range(3, 3 + kernels), copy_out]
    ready = start[:, given] + length[:, given] + rng.gamma(3.0, 700, (count, kernels + 2)).astype(np.int64)
    took = np.concatenate(
        [
            rng.gamma(2, 40_000, (count, 1)) + 5_000,
            rng.lognormal(9.0, 0.9, (count, kernels)) + 900,
            rng.gamma(2, 20_000, (count, 1)) + 4_000,
        ],
        axis=1,
    ).astype(np.int64)
    done = np.cumsum(took, axis=1)
    end = done + np.maximum.accumulate(ready - (done - took), axis=1)
    longer = np.maximum(0, end[:, -1] + 2_000 - (start[:, sync] + length[:, sync]))
    length[:, sync] += longer
    start[:, sync + 1 :] += longer[:, None]
    stop = start + length
    return Block(
        start,
        stop,
        end - took,
        end,
        stop[:, -1] + 500,
        (BEFORE[0][1] * (0.5 + rng.gamma(2.0, 0.25, count))).astype(np.int64),
        (AFTER[0][1] * (0.5 + rng.gamma(2.0, 0.25, count))).astype(np.int64),
        rng.integers(0, NAMES, (count, kernels)),
    )


@dataclass
class Schedule:
    """When each worker is free and when the mutex is; deals partitions in turn."""

    free: list[int] = field(default_factory=lambda: [1_000_000 + 50_000 * w for w in range(WORKERS)])
    mutex: int = 0
    log: list[tuple[int, str]] = field(default_factory=list)

    def place(self, first: int, made: Block) -> tuple[Ints, Ints, Ints]:
        """``(begin, ready, held)`` of each partition: it pins, waits, and has the mutex."""
        begin, ready, held = (np.empty(len(made.held), np.int64) for _ in range(3))
        for i in range(len(made.held)):
            worker = (first + i) % WORKERS
            begin[i] = self.free[worker] + 20_000
            ready[i] = begin[i] + made.before[i] + 2_000
            held[i] = max(int(ready[i]), self.mutex + 5_000)
            self.mutex = int(held[i] + made.held[i])
            self.free[worker] = self.mutex + int(made.after[i]) + 3_000
            self._say(first + i, worker, int(begin[i]), self.free[worker])
        return begin, ready, held

    def _say(self, number: int, worker: int, begin: int, end: int) -> None:
        job, partition = divmod(number, PARTITIONS_A_JOB)
        name = f"{job:08x}-0000-4000-8000-{job:012x}"
        ms = begin // 1_000_000
        for at, what in (
            (ms - 40, f"SYNTH_START,{name},partition={partition}"),
            (ms - 5, f"SYNTH_END,{name},partition={partition},synth_ms=35"),
            (ms - 5, f"CHAN_SEND,{name},partition={partition}"),
            (ms, f"GPU_PICKUP,{name},worker={worker},partition={partition}"),
            (ms, f"GPU_START,{name},worker={worker},partition={partition}"),
            (
                end // 1_000_000,
                f"GPU_END,{name},worker={worker},partition={partition},gpu_ms={(end - begin) // 1_000_000}",
            ),
        ):
            self.log.append((max(at, 0), what))


def _rows(columns: Sequence[Ints | int | str | None]) -> Iterator[tuple[object, ...]]:
    count = next(len(c) for c in columns if isinstance(c, np.ndarray))
    return zip(*[c.tolist() if isinstance(c, np.ndarray) else [c] * count for c in columns], strict=True)


def _insert(database: sqlite3.Connection, table: str, columns: dict[str, Ints | int | str | None]) -> None:
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO {table}({', '.join(columns)}) VALUES({marks})", _rows(list(columns.values())))


def write(path: Path, kernels: int, a_partition: int = 100, seed: int = 7) -> None:
    """The export at ``path`` and its log beside it."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in ("page_size=4096", "journal_mode=OFF", "synchronous=OFF", "cache_size=-100000"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("BEGIN")
    for table, columns in COLUMNS.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
    rng, words, schedule = np.random.default_rng(seed), Words(), Schedule()
    total = max(1, kernels // a_partition)
    for first in range(0, total, BLOCK):
        made = block(rng, min(BLOCK, total - first), a_partition)
        _events(database, words, made, first, a_partition, schedule.place(first, made), rng)
    _facts(database, words, max(schedule.free) + 1_000_000)
    database.execute("COMMIT")
    database.close()
    zero = datetime.fromtimestamp(EPOCH_NS // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    with path.with_suffix(".log").open("w") as log:
        log.write(f"{zero}  INFO cuzk_core::engine: starting cuzk engine pipeline_enabled=true\n")
        log.writelines(f"TIMELINE,{at},{what}\n" for at, what in sorted(schedule.log, key=lambda line: line[0]))


def _events(
    database: sqlite3.Connection,
    words: Words,
    made: Block,
    first: int,
    kernels: int,
    placed: tuple[Ints, Ints, Ints],
    rng: np.random.Generator,
) -> None:
    begin, ready, held = placed
    inside = [*INSIDE, *[LAUNCH] * kernels, *LAST]
    ids = np.array([words.id(n) for n, _ in [*BEFORE, *inside, *AFTER]])
    count = len(ids)
    mangled = np.array([words.id(f"_ZN5prove6kernelILi{i}EEEvPKmPmi") for i in range(NAMES)])
    plain = np.array([words.id(f"kernel_{i}") for i in range(NAMES)])
    full = np.array(
        [words.id(f"void prove::kernel_{i}<(int){i % 9}>(const unsigned long *, int)") for i in range(NAMES)]
    )
    labels = np.array([words.id(f"op.{i}") for i in range(LABELS)])
    phases = np.array([words.id(p) for p in ("pin", "alloc", "upload", "kernels", "free")])
    lock = words.id("pthread_mutex_lock")
    for worker in range(WORKERS):
        own = np.flatnonzero((first + np.arange(len(held))) % WORKERS == worker)
        tid = PROCESS | (4243 + worker)
        at = held[own, None]
        start = np.concatenate(
            [begin[own, None], made.call_start[own] + at, (held + made.held)[own, None] + 500], axis=1
        )
        end = np.concatenate(
            [(begin + made.before)[own, None], made.call_end[own] + at, start[:, -1:] + made.after[own, None]], axis=1
        )
        call = (first + own[:, None]) * count + np.arange(count) + 1
        launched = slice(1 + len(INSIDE), 1 + len(INSIDE) + kernels)
        _insert(
            database,
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            {
                "start": start.ravel(),
                "end": end.ravel(),
                "eventClass": 1,
                "globalTid": tid,
                "correlationId": call.ravel(),
                "nameId": np.tile(ids, len(own)),
                "returnValue": 0,
            },
        )
        work_start, work_end, name = made.work_start[own] + at, made.work_end[own] + at, made.name[own].ravel()
        device = {"deviceId": 0, "contextId": 1, "streamId": 13 + worker, "globalPid": PROCESS}
        _insert(
            database,
            "CUPTI_ACTIVITY_KIND_KERNEL",
            {
                "start": work_start[:, 1:-1].ravel(),
                "end": work_end[:, 1:-1].ravel(),
                **device,
                "correlationId": call[:, launched].ravel(),
                "demangledName": full[name],
                "shortName": plain[name],
                "mangledName": mangled[name],
                "launchType": 1,
                "cacheConfig": 0,
                "registersPerThread": 16 + name * 7 % 240,
                "gridX": 2 ** rng.integers(0, 12, len(name)),
                **{"gridY": 1, "gridZ": 1, "blockX": 32 * rng.integers(1, 33, len(name)), "blockY": 1, "blockZ": 1},
                "staticSharedMemory": name % 5 * 4096,
                **{"dynamicSharedMemory": 0, "localMemoryPerThread": 0, "localMemoryTotal": 0},
                "gridId": call[:, launched].ravel() + (1 << 20),
                "sharedMemoryExecuted": 102_400,
                "sharedMemoryLimitConfig": 0,
            },
        )
        for side, kind in ((0, 1), (-1, 2)):
            took = work_end[:, side] - work_start[:, side]
            copy = call[:, 1 + len(INSIDE) - 1] if side == 0 else call[:, launched.stop]
            _insert(
                database,
                "CUPTI_ACTIVITY_KIND_MEMCPY",
                {
                    "start": work_start[:, side],
                    "end": work_end[:, side],
                    **device,
                    "correlationId": copy,
                    **{"bytes": took * 20, "copyKind": kind, "srcKind": kind, "dstKind": 3 - kind, "copyCount": 1},
                },
            )
        waited = own[held[own] - ready[own] > 1_000]
        if len(waited):
            _insert(
                database,
                "OSRT_API",
                {
                    "start": ready[waited],
                    "end": held[waited],
                    **{"eventClass": 0, "globalTid": tid, "nameId": lock, "returnValue": 0, "callchainId": 0},
                },
            )
        ranges = {"eventType": 59, "globalTid": tid, "domainId": 0, "color": 0xFF00AA00}
        low, high = start[:, launched] - 90, end[:, launched] + 90
        _insert(
            database,
            "NVTX_EVENTS",
            {"start": low.ravel(), "end": high.ravel(), **ranges, "textId": labels[name % LABELS]},
        )
        spans = [(0, 0), (1, 2), (3, 3), (launched.start, launched.stop - 1), (launched.stop, count - 2)]
        for (a, b), phase in zip(spans, phases.tolist(), strict=True):
            around = {"start": start[:, a] - 95, "end": end[:, b] + 95}
            _insert(database, "NVTX_EVENTS", {**around, **ranges, "textId": phase})


def _facts(database: sqlite3.Connection, words: Words, end: int) -> None:
    workers = [(words.id(f"worker-{w}"), 20, PROCESS | (4243 + w)) for w in range(WORKERS)]
    for table, rows in (
        ("ThreadNames", workers),
        ("PROCESSES", [(PROCESS, 4242, "prover")]),
        ("TARGET_INFO_GPU", [(0, 0, "NVIDIA H200", 150 * 10**9, 48 * 10**11, 198 * 10**7, 132, 0, 64, 9, 0)]),
        ("TARGET_INFO_CUDA_DEVICE", [(0, 0, 4242)]),
        ("TARGET_INFO_SESSION_START_TIME", [(EPOCH_NS, None, None)]),
        ("ANALYSIS_DETAILS", [(0, end, 0, end)]),
        ("META_DATA_EXPORT", [("EXPORT_SCHEMA_VERSION", "3.22.0"), ("EXPORT_PRODUCT_NAME", "generated")]),
        ("StringIds", [(number, word) for word, number in words.number.items()]),
    ):
        database.executemany(f"INSERT INTO {table} VALUES({', '.join('?' * len(rows[0]))})", rows)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--a-partition", type=int, default=100, help="kernels of one partition")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    began = time.monotonic()
    write(options.out, options.kernels, options.a_partition, options.seed)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
