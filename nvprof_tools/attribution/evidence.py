"""What a trace says about its threads, sorted into the roles a pipeline file names: calls, locks, ranges, overhead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution.categories import CALLS
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import classify, flags, ints, names
from nvprof_tools.timeline.intervals import Index, Ints
from nvprof_tools.timeline.lanes import by_key_and_start, locate
from nvtx_markers.conventions import DOMAIN, HELD_RANGE

LOCK_CALLS = ("pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_mutex_timedlock")
"""OS calls that wait for a lock; on an application's thread outside every CUDA call the first one is a mutex wait."""

RANGE_ROLES = ("section", "mutex_wait", "barrier_wait", "hold", "synthesis", "driver_lock")

Flags = npt.NDArray[np.bool_]


def _shim_role(word: str) -> int:
    kind = {HELD_RANGE: "hold"}.get(word, "section" if word.startswith("section ") else word)
    return RANGE_ROLES.index(kind) if kind in RANGE_ROLES else -1


@dataclass(frozen=True)
class Rows:
    """Intervals on threads: ``start``/``end`` in ns, ``thread``/``process`` as table rows, ``code`` of a kind."""

    start: Ints
    end: Ints
    thread: Ints
    process: Ints
    code: Ints

    def __len__(self) -> int:
        return len(self.start)

    def where(self, rows: Index) -> Rows:
        """The chosen rows, in the order given."""
        return Rows(self.start[rows], self.end[rows], self.thread[rows], self.process[rows], self.code[rows])


@dataclass(frozen=True)
class Evidence:
    """Every thread-side fact that attribution uses.

    ``calls.code`` indexes ``CALLS`` (−1: another traced call), ``call_name`` indexes ``call_names``; ``ranges.code``
    indexes ``RANGE_ROLES`` (−1: another range), ``range_name`` indexes ``range_names``; ``waits`` are lock waits
    outside every categorised CUDA call, ``driver_locks`` those inside one (``code``: that call's
    category, a row each);
    ``os_waits`` other OS waits (``code`` indexes ``os_names``); ``creations`` thread creations; ``overhead`` the
    profiler's own time.
    """

    calls: Rows
    call_name: Ints
    call_names: list[str]
    ranges: Rows
    range_name: Ints
    range_names: list[str]
    range_open: Ints
    waits: Rows
    driver_locks: Rows
    os_waits: Rows
    os_names: list[str]
    creations: Rows
    overhead: Rows
    has_os: bool
    has_ranges: bool


def gather(trace: Trace, pipeline: Pipeline) -> Evidence:
    """Read the thread-side tables of ``trace`` into roles. Vectorised; one rule application a distinct name."""
    calls, call_name, call_names = _calls(trace, pipeline)
    ranges, range_name, range_names, range_open = _ranges(trace, pipeline, calls)
    waits, driver_locks, os_waits, creations, os_names = _os(trace, calls)
    marked = ranges.where(np.flatnonzero(ranges.code == RANGE_ROLES.index("driver_lock")))
    has_os = "os_calls" in trace.measured or len(marked) > 0
    if "os_calls" not in trace.measured and len(marked):
        driver_locks = _inside_calls(marked, calls)
    return Evidence(
        calls,
        call_name,
        call_names,
        ranges,
        range_name,
        range_names,
        range_open,
        waits,
        driver_locks,
        os_waits,
        os_names,
        creations,
        _overhead(trace),
        has_os,
        "nvtx_ranges" in trace.measured,
    )


def _calls(trace: Trace, pipeline: Pipeline) -> tuple[Rows, Ints, list[str]]:
    table = trace["api_calls"]
    name, words = names(table, "name")
    rank = {category: i for i, category in enumerate(CALLS)}

    def category(word: str) -> int:
        found = pipeline.api_category(word)
        return -1 if found is None else rank.get(found, -1)

    rows = Rows(
        ints(table, "start_ns"),
        ints(table, "end_ns"),
        ints(table, "thread"),
        ints(table, "process"),
        classify(name, words, category),
    )
    return rows, name, words


def _ranges(trace: Trace, pipeline: Pipeline, calls: Rows) -> tuple[Rows, Ints, list[str], Ints]:
    table = trace["nvtx_ranges"]
    name, words = names(table, "name")

    domain, domains = names(table, "domain")
    shim = classify(domain, domains, lambda word: int(word == DOMAIN)) == 1
    role = {word: RANGE_ROLES.index(role) for role in RANGE_ROLES for word in getattr(pipeline.ranges, role, ())}
    code = classify(name, words, lambda word: role.get(word, -1))
    code = np.where(shim, classify(name, words, _shim_role), code)
    rows = Rows(
        ints(table, "start_ns"),
        ints(table, "end_ns"),
        ints(table, "thread"),
        ints(table, "process"),
        code,
    )
    if shim.any():
        rows = _told_apart(rows, shim, ints(table, "payload"), calls)
    return rows, name, words, flags(table, "open").astype(np.int64)


def _told_apart(ranges: Rows, shim: Flags, lock: Ints, calls: Rows) -> Rows:
    """The shim marks every contended lock: those inside a CUDA call are the driver's, and of the others only those that
    guard the GPU count as its mutex: CUDA calls are made under them, and they are held for long."""
    wait, hold, driver = (RANGE_ROLES.index(role) for role in ("mutex_wait", "hold", "driver_lock"))
    code = ranges.code.copy()
    waits = np.flatnonzero(shim & (code == wait))
    inside = locate(calls.thread, calls.start, calls.end, ranges.thread[waits], ranges.start[waits]) >= 0
    code[waits[inside]] = driver
    holds = np.flatnonzero(shim & (code == hold) & (lock >= 0))
    if len(holds):
        locks, number = np.unique(np.stack([ranges.process[holds], lock[holds]]), axis=1, return_inverse=True)
        number = number.reshape(-1)
        held = np.zeros(locks.shape[1], np.int64)
        np.add.at(held, number, ranges.end[holds] - ranges.start[holds])
        within = locate(ranges.thread[holds], ranges.start[holds], ranges.end[holds], calls.thread, calls.start)
        called = np.bincount(number[within[within >= 0]], minlength=len(held)) > 0
        # Of the locks that CUDA calls are made under (of all, if none is) those that are held for long: a pool's lock
        # around an allocation is no GPU mutex.
        guards = called if called.any() else np.ones(len(held), bool)
        guards &= held * 5 >= held[guards].max()
        code[holds[~guards[number]]] = -1
        others = {(int(p), int(k)) for (p, k), good in zip(locks.T.tolist(), guards.tolist(), strict=True) if not good}
        rest = np.flatnonzero(shim & (code == wait))
        idle = [(int(ranges.process[r]), int(lock[r])) in others for r in rest.tolist()]  # one step a contended wait
        code[rest[np.array(idle, bool)]] = -1
    return Rows(ranges.start, ranges.end, ranges.thread, ranges.process, code)


def _os(trace: Trace, calls: Rows) -> tuple[Rows, Rows, Rows, Rows, list[str]]:
    table = trace["os_calls"]
    name, words = names(table, "name")
    lock = classify(name, words, lambda word: LOCK_CALLS.index(word) if word in LOCK_CALLS else -1)
    every = Rows(ints(table, "start_ns"), ints(table, "end_ns"), ints(table, "thread"), ints(table, "process"), name)
    locks = np.flatnonzero(lock >= 0)
    rows = every.where(locks)
    free = locate(calls.thread, calls.start, calls.end, rows.thread, rows.start) < 0
    outside = locks[free & (lock[locks] == 0)]
    driver = _inside_calls(rows, calls)
    kind = classify(name, words, _os_kind)
    waiting, creating = every.where(np.flatnonzero(kind == 1)), every.where(np.flatnonzero(kind == 2))
    return every.where(outside), driver, waiting, creating, words


def _os_kind(word: str) -> int:
    if word.startswith(("pthread_join", "pthread_cond_", "sem_")):
        return 1
    return 2 if word == "pthread_create" else 0


def _inside_calls(rows: Rows, calls: Rows) -> Rows:
    """Rows that begin inside a call of their thread, once a category of such a call: calls nest, and which of them
    counts at an instant is for the view to say. ``code``: the category."""
    found = []
    if len(rows) == 0:
        return rows
    calls = calls.where(by_key_and_start(calls.thread, calls.start))  # once, not once a category
    for code in range(len(CALLS)):
        of_kind = calls.where(np.flatnonzero(calls.code == code))
        inside = np.flatnonzero(locate(of_kind.thread, of_kind.start, of_kind.end, rows.thread, rows.start) >= 0)
        mine = rows.where(inside)
        found.append(Rows(mine.start, mine.end, mine.thread, mine.process, np.full(len(inside), code, np.int64)))
    return Rows(
        np.concatenate([f.start for f in found]),
        np.concatenate([f.end for f in found]),
        np.concatenate([f.thread for f in found]),
        np.concatenate([f.process for f in found]),
        np.concatenate([f.code for f in found]),
    )


def _overhead(trace: Trace) -> Rows:
    table = trace["profiler_overhead"]
    rows = Rows(
        ints(table, "start_ns"),
        ints(table, "end_ns"),
        ints(table, "thread"),
        ints(table, "process"),
        flags(table, "is_profiler").astype(np.int64),
    )
    return rows.where(np.flatnonzero(rows.code == 1))
