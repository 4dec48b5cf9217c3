"""Small random captures of a pipeline that keeps its own rules: a few hundred ns, up to three workers, real mutexes.

What is random: how many processes, devices, workers and sections, whether waits and holds are seen as ranges, as lock
calls or only by the calls made under the lock, what every thread does and when, and everything that touches, nests,
overlaps, has no length or lies outside all sections. What is not: a mutex has one holder a device, a thread that works
for a section is its caller or makes all its calls while that section holds the mutex.
"""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from oracle.oracle import CALL_CATEGORIES, LOCKS, UNCLASSIFIED_CALLS, InLockRules
from oracle.rows import Call, Gpu, Os, Overhead, Range, World

FIRST = ("cudaDeviceSynchronize", "cudaMemPoolTrimTo", "cudaMalloc", "cudaMallocAsync")
LAST = ("cudaStreamDestroy", "cudaEventDestroy", "cudaFree", "cudaFreeAsync")
CALLS_BY_KIND = (*(tuple(sorted(names)) for names in CALL_CATEGORIES.values()), UNCLASSIFIED_CALLS)
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cudaGraphLaunch")
COPIES = ("cudaMemcpyAsync", "cudaMemcpy", "cudaMemcpy2DAsync")
OTHER_WAITS = ("pthread_cond_wait", "pthread_join")
KERNELS = ("_GS_NTT", "coeff_wise_mult", "somebody_elses_kernel")
COPY_KINDS = ("HtoD", "DtoH", "DtoD")
PINNING_CALLS = frozenset({"cudaHostRegister", "cudaHostUnregister", "cudaFreeHost", "cudaHostAlloc", "cudaMallocHost"})
NOT_INSIDE = PINNING_CALLS | {*FIRST, *LAST}
NOTHING: Set[str] = frozenset()
MEMORIES = ("pageable", "pinned")
RULES = {
    "cuzk": InLockRules(False, frozenset(FIRST), frozenset(LAST), pinning_outside=True),
    "generic": InLockRules(to_section_end=True),
}

Item = TypeVar("Item")
Seen = Literal["range", "lock", "nothing"]


@dataclass(frozen=True)
class Case:
    """A capture, the pipeline that made it, and the window to ask about."""

    world: World
    pipeline: str
    window: tuple[int, int]

    @property
    def rules(self) -> InLockRules:
        """What that pipeline says of its mutex."""
        return RULES[self.pipeline]


class Worker(NamedTuple):
    """A caller thread and the device it feeds."""

    thread: int
    process: int
    device: int


class Stay(NamedTuple):
    """When a worker's section begins, waits, holds the mutex and ends."""

    worker: Worker
    start: int
    wait_from: int
    wait_to: int
    hold_from: int
    hold_to: int
    end: int


@dataclass
class Maker:
    """Collects rows."""

    rng: random.Random
    threads: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    gpu: list[Gpu] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    os: list[Os] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)

    def pick(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return self.rng.randint(low, high)

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of these."""
        return items[self.pick(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """True that often."""
        return self.pick(0, 99) >= 100 - percent

    def call(self, but: Set[str] = NOTHING) -> str:
        """The name of a call: any kind, then any name of that kind that is not in ``but``."""
        while True:
            name = self.one_of(self.one_of(CALLS_BY_KIND))
            if name not in but:
                return name

    def thread(self, process: int) -> int:
        """A new thread."""
        self.threads.append(process)
        return len(self.threads) - 1

    def pieces(self, low: int, high: int, most: int) -> list[tuple[int, int]]:
        """Up to ``most`` disjoint pieces of a stretch: some touch, some are empty."""
        cuts = sorted(self.pick(low, high) for _ in range(2 * self.pick(0, most)))
        return list(zip(cuts[::2], cuts[1::2], strict=True))

    def fill(
        self,
        thread: int,
        stretch: tuple[int, int],
        but: Set[str],
        waits: Sequence[str],
        ranges: Sequence[str] = ("prep_join", "upload"),
        depth: int = 0,
    ) -> None:
        """Calls (none of ``but``), waits and ranges on a thread, one inside the other as a real thread's are."""
        for a, b in self.pieces(*stretch, 3 if depth == 0 else 1):
            kind = self.pick(0, 9)
            if kind <= 6 or (kind <= 8 and not waits):
                self.calls.append(Call(a, b, thread, self.call(but)))
                if depth < 2:
                    self.fill(thread, (a, b), but, (*LOCKS, *OTHER_WAITS), (), depth + 1)
            elif kind <= 8 or not ranges:
                if a < b:
                    self.os.append(Os(a, b, thread, self.one_of(waits or OTHER_WAITS)))
            else:
                self.ranges.append(Range(a, b, thread, self.one_of(ranges)))
                if depth < 2:
                    self.fill(thread, (a, b), but, waits, ranges, depth + 1)

    def run_on_device(self, worker: Worker, since: int) -> bool:
        """GPU work for the calls made since row ``since``; whether there is any."""
        before = len(self.gpu)
        for row in range(since, len(self.calls)):
            call = self.calls[row]
            kind, name = self.effect(call.name)
            if kind is None:
                continue
            for _ in range(2 if self.chance(10) else 1):
                start = call.start + self.pick(0, 20)
                end = start + self.pick(0, 25)
                stream = self.pick(1, 3)
                self.gpu.append(Gpu(start, end, worker.device, stream, worker.process, kind, name, row))
        return any(g.end > g.start for g in self.gpu[before:])

    def effect(self, call: str) -> tuple[str | None, str]:
        """What a call makes the device do."""
        if call in LAUNCHES and self.chance(85):
            graph = call == "cudaGraphLaunch" and self.chance(50)
            return ("graph", "graph") if graph else ("kernel", self.one_of(KERNELS))
        if call in COPIES and self.chance(85):
            return self.one_of(COPY_KINDS), self.one_of(MEMORIES)
        if call in UNCLASSIFIED_CALLS and self.chance(20):
            return "memset", "memset"
        return None, ""

    def world(self, devices: int, end: int | None) -> World:
        """The capture."""
        rows = (self.calls, self.gpu, self.ranges, self.os, self.overheads)
        return World(tuple(self.threads), devices, end, *(tuple(r) for r in rows))


def case(seed: int, processes: int | None = None) -> Case:
    """A capture with sections, often in a window that holds all of them. The same seed gives the same case."""
    make = Maker(random.Random(seed))
    pipeline = make.one_of(("cuzk", "generic"))
    seen: Seen = make.one_of(("range", "lock", "nothing"))
    hold_range = make.chance(40)
    if seen == "nothing" and (pipeline == "generic" or hold_range):
        seen = "range"
    processes = make.pick(1, 2) if processes is None else processes
    devices = make.pick(1, 2)
    workers = [
        Worker(make.thread(p), p, d)
        for p, d in ((make.pick(0, processes - 1), make.pick(0, devices - 1)) for _ in range(make.pick(1, 3)))
    ]
    make.threads += [p for p in range(processes) if p not in make.threads]  # every process has a thread
    stays = [s for group in independent(workers) for s in schedule(make, group, pipeline)]
    for stay in stays:
        run_section(make, stay, pipeline, seen, hold_range)
    between_sections(make, workers, stays)
    bystanders(make, stays, processes, devices)
    world = make.world(devices, None)
    low, high = min(world.times()), max(world.times())
    end = high + make.pick(0, 5)
    world = make.world(devices, end)
    if make.chance(70):
        return Case(world, pipeline, (low, end))
    since = make.pick(low, end - 1)
    return Case(world, pipeline, (since, make.pick(since + 1, end)))


def independent(workers: Sequence[Worker]) -> list[list[Worker]]:
    """Workers by device, whose mutexes know nothing of each other; all together where a process feeds two devices:
    there a thread that works while both mutexes are held could be either section's."""
    if len({(w.process, w.device) for w in workers}) > len({w.process for w in workers}):
        return [list(workers)]
    return [[w for w in workers if w.device == d] for d in sorted({w.device for w in workers})]


def schedule(make: Maker, workers: Sequence[Worker], pipeline: str, pause: int = 0) -> list[Stay]:
    """Sections of workers that share a mutex: one holder at a time, one section a worker at a time, ``pause`` apart."""
    stays: list[Stay] = []
    free = dict.fromkeys(workers, 0)
    begun: set[int] = set()
    now = make.pick(0, 10)
    for _ in range(make.pick(1, 3)):
        worker = make.one_of(workers)
        hold_from = max(now + make.pick(0, 15), free[worker])
        start = hold_from - make.pick(0, min(40, hold_from - free[worker]))
        if start == hold_from:
            hold_from += 1
        while start in begun:  # "the oldest" must be one
            start, hold_from = start + 1, hold_from + 1
        begun.add(start)
        hold_to = hold_from + make.pick(1, 40)
        end = hold_to if pipeline == "generic" else hold_to + make.pick(0, 30)
        wait_from = make.pick(start, hold_from - 1)
        wait_to = hold_from if pipeline == "generic" else make.pick(wait_from + 1, hold_from)
        stays.append(Stay(worker, start, wait_from, wait_to, hold_from, hold_to, end))
        free[worker], now = end + pause, hold_to
    return stays


def run_section(make: Maker, stay: Stay, pipeline: str, seen: Seen, hold_range: bool) -> None:
    """Everything one section does."""
    caller = stay.worker.thread
    since = len(make.calls)
    by_calls = pipeline == "cuzk" and not hold_range
    in_lock = frozenset((*FIRST, *LAST)) if by_calls else NOTHING
    # Where a lock call says that a section waits, no other lock call may stand outside CUDA calls.
    waits = (*OTHER_WAITS, *LOCKS[1:], *(LOCKS[:1] if seen == "range" else ()))
    make.ranges.append(Range(stay.start, stay.end, caller, make.one_of(("gpu_prove", "gpu_section"))))
    make.fill(caller, (stay.start, stay.wait_from), in_lock, waits)
    wait_for_mutex(make, stay, seen, in_lock, waits)
    if stay.wait_to < stay.hold_from:
        make.fill(caller, (stay.wait_to, stay.hold_from - 1), in_lock, waits)
    low, high = stay.hold_from, stay.hold_to
    if hold_range:
        make.ranges.append(Range(low, high, caller, "gpu_mutex_held"))
    elif by_calls:
        cuts = sorted((make.pick(low + 1, high), make.pick(low + 1, high)))
        make.calls.append(Call(low, cuts[0], caller, make.one_of(FIRST)))
        make.calls.append(Call(cuts[1], high, caller, make.one_of(LAST)))
        low, high = cuts[0], cuts[1]
    make.fill(caller, (low, high), NOTHING, waits)
    make.fill(caller, (stay.hold_to, stay.end), in_lock, waits)
    for _ in range(make.pick(0, 2)):
        launching_thread(make, stay)
    if not make.run_on_device(stay.worker, since):
        thread = make.thread(stay.worker.process)
        make.calls.append(Call(stay.hold_from, stay.hold_from + 1, thread, LAUNCHES[0]))
        make.gpu.append(
            Gpu(
                stay.hold_from,
                stay.hold_from + make.pick(1, 9),
                stay.worker.device,
                1,
                stay.worker.process,
                "kernel",
                KERNELS[0],
                len(make.calls) - 1,
            )
        )


def bare_case(seed: int) -> tuple[Case, list[tuple[int, int, int]]]:
    """A capture with no ranges at all, and (first call, last call, caller) of every section: pages are pinned, the
    mutex is taken, worked under and given back, pages are unpinned."""
    make = Maker(random.Random(seed))
    workers = [Worker(make.thread(0), 0, 0) for _ in range(make.pick(1, 2))]
    stays = schedule(make, workers, "cuzk", pause=20)
    spans = []
    for stay in stays:
        caller, since = stay.worker.thread, len(make.calls)
        pinned = make.pick(stay.start, stay.wait_from)
        make.calls.append(Call(stay.start, pinned, caller, "cudaHostRegister"))
        make.calls.append(Call(pinned, stay.wait_from, caller, "cudaHostRegister"))
        if make.chance(70):
            make.os.append(Os(stay.wait_from, stay.wait_to, caller, LOCKS[0]))
        low, high = stay.hold_from, stay.hold_to
        cuts = sorted((make.pick(low + 1, high), make.pick(low + 1, high)))
        make.calls.append(Call(low, cuts[0], caller, make.one_of(FIRST)))
        make.calls.append(Call(cuts[1], high, caller, make.one_of(LAST)))
        make.fill(caller, (cuts[0], cuts[1]), NOT_INSIDE, (*OTHER_WAITS, *LOCKS[1:]), ())
        if high < stay.end:
            make.calls.append(Call(make.pick(high, stay.end - 1), stay.end, caller, "cudaHostUnregister"))
        thread = make.thread(0)
        make.calls.append(Call(low, low + 1, thread, "cudaLaunchKernel"))
        make.fill(thread, (low + 1, high), PINNING_CALLS, (*OTHER_WAITS, *LOCKS), ())
        make.run_on_device(stay.worker, since)
        mine = make.calls[since:]
        spans.append((min(c.start for c in mine), max(c.end for c in mine), caller))
    world = make.world(1, None)
    end = max(world.times()) + 20
    return Case(make.world(1, end), "cuzk", (0, end)), spans


def wait_for_mutex(make: Maker, stay: Stay, seen: Seen, but: Set[str], waits: Sequence[str]) -> None:
    """The wait, as far as it is seen."""
    caller, a, b = stay.worker.thread, stay.wait_from, stay.wait_to
    if seen == "range":
        make.ranges.append(Range(a, b, caller, make.one_of(("mutex_acquire", "mutex_wait"))))
        make.fill(caller, (a, b), but, waits, ())
    elif seen == "nothing" and make.chance(80):
        make.calls.append(Call(a, make.pick(a, b), caller, "cudaHostRegister"))
    elif seen == "lock":
        make.os.append(Os(a, b, caller, LOCKS[0]))


def launching_thread(make: Maker, stay: Stay) -> None:
    """A fresh thread that works while its section holds the mutex."""
    thread = make.thread(stay.worker.process)
    low, high = stay.hold_from, stay.hold_to - 1
    make.calls.append(Call(low, low + 1, thread, make.call()))
    if make.chance(80):
        make.fill(thread, (min(low + 1, high), high), NOTHING, (*OTHER_WAITS, *LOCKS), ("barrier_wait", "ntt"))
    else:  # calls that overlap as no real thread's do
        for _ in range(make.pick(1, 3)):
            start = make.pick(low, high)
            make.calls.append(Call(start, make.pick(start, high), thread, make.call()))


def pool_thread(make: Maker, stays: Sequence[Stay]) -> None:
    """A thread that works now under one section's hold, now under another's."""
    one = make.one_of(stays)
    thread = make.thread(one.worker.process)
    for stay in stays:
        if (stay.worker.process, stay.worker.device) == (one.worker.process, one.worker.device) and make.chance(70):
            since = len(make.calls)
            make.fill(thread, (stay.hold_from, stay.hold_to - 1), NOTHING, (*OTHER_WAITS, *LOCKS), ("barrier_wait",))
            make.run_on_device(stay.worker, since)


def between_sections(make: Maker, workers: Sequence[Worker], stays: Sequence[Stay]) -> None:
    """What workers do while no section of theirs is open."""
    for worker in workers:
        since = len(make.calls)
        last = 0
        for stay in sorted((s for s in stays if s.worker == worker), key=lambda s: s.start):
            if make.chance(30) and last < stay.start:
                make.fill(worker.thread, (last, stay.start - 1), NOTHING, (*OTHER_WAITS, *LOCKS))
            last = stay.end
        make.run_on_device(worker, since)


def bystanders(make: Maker, stays: Sequence[Stay], processes: int, devices: int) -> None:
    """Threads of no section, work that no call explains, synthesis, and the profiler's own overhead."""
    high = max((s.end for s in stays), default=0) + 20
    for _ in range(make.pick(0, 2)):
        process = make.pick(0, processes - 1)
        thread = make.thread(process)
        since = len(make.calls)
        make.fill(thread, (0, high), NOTHING, (*OTHER_WAITS, *LOCKS))
        held = [(s.hold_from, s.hold_to) for s in stays if s.worker.process == process]
        make.calls[since:] = [c for c in make.calls[since:] if not any(a <= c.start < b for a, b in held)]
        make.run_on_device(Worker(thread, process, make.pick(0, devices - 1)), since)
    if make.chance(30):
        pool_thread(make, stays)
    for _ in range(make.pick(0, 3)):
        start = make.pick(0, high)
        kind = make.one_of(("kernel", *COPY_KINDS, "memset"))
        name = KERNELS[-1] if kind == "kernel" else MEMORIES[0]
        end = start + make.pick(0, 30)
        make.gpu.append(Gpu(start, end, make.pick(0, devices - 1), 9, make.pick(0, processes - 1), kind, name, None))
    if make.chance(40):
        thread = make.thread(0)
        for a, b in make.pieces(0, high, 3):
            make.ranges.append(Range(a, b, thread, "synthesis"))
    for _ in range(make.pick(0, 3)):
        call = make.one_of(make.calls)
        start, end = max(0, call.start - make.pick(0, 15)), call.end + make.pick(0, 15)
        make.overheads.append(Overhead(start, end, call.thread, profiler=make.chance(70)))
