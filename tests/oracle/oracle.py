"""Attribution once more, as slowly and as plainly as its definition reads.

For every elementary stretch of time (between two neighbouring begins or ends of anything) each question of the
definition is asked of plain rows: is a kernel running, who holds the mutex, who waits, in which call is this thread.
Nothing is swept, sorted by key or cached. Where the definition leaves a sub-key open (two kernels of different stages
at once), the answer is the set of those that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from oracle.rows import Call, Gpu, Overhead, World

CALL_CATEGORIES = {
    "device_sync": {"cudaDeviceSynchronize", "cuCtxSynchronize"},
    "pool_trim": {
        "cudaMemPoolTrimTo",
        "cudaDeviceGetDefaultMemPool",
        "cudaMemPoolSetAttribute",
        "cudaMemPoolGetAttribute",
    },
    "mem_info": {"cudaMemGetInfo"},
    "alloc": {"cudaMalloc", "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaHostAlloc", "cudaMallocHost"},
    "host_register": {"cudaHostRegister"},
    "host_unregister": {"cudaHostUnregister", "cudaFreeHost"},
    "free": {"cudaFree", "cudaFreeAsync", "cudaEventDestroy", "cudaStreamDestroy"},
    "launch": {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cudaGraphLaunch"},
    "sync_wait": {"cudaStreamSynchronize", "cudaEventSynchronize"},
    "upload_issue": {"cudaMemcpy", "cudaMemcpyAsync", "cudaMemcpy2DAsync"},
}
"""The order is the precedence."""

UNCLASSIFIED_CALLS = ("cudaEventRecord", "cudaStreamWaitEvent", "cuModuleLoadData")
PINNING = ("host_register", "host_unregister")
BLOCKERS = (*PINNING, *(c for c in CALL_CATEGORIES if c not in PINNING))
LOCKS = ("pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock")
WAIT_NAMES = ("mutex_acquire", "mutex_wait")
SECTION_NAMES = ("gpu_prove", "gpu_section")
HOLD_NAMES = ("gpu_mutex_held",)
BARRIER_NAMES = ("barrier_wait",)
SYNTHESIS_NAMES = ("synthesis",)
INFERRED_WAIT_BELOW = 50_000

Interval = tuple[int, int]
Work = tuple[int, int, int]


class Timed(Protocol):
    """Anything with a begin and an end."""

    @property
    def start(self) -> int:
        """Begin, ns."""

    @property
    def end(self) -> int:
        """End, ns, exclusive."""


Row = TypeVar("Row", bound=Timed)


@dataclass(frozen=True)
class InLockRules:
    """What a pipeline says of its mutex, where no range does."""

    to_section_end: bool
    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    pinning_outside: bool = False


@dataclass(frozen=True)
class Background:
    """What is known of the time when no section is open; null: nothing is known."""

    queued: tuple[Interval, ...] | None = None
    synthesis: tuple[Interval, ...] | None = None


@dataclass(frozen=True)
class Section:
    """A partition's stay, its GPU work, and when it waits for the mutex and holds it. ``works``: (thread, from, to);
    ``seen_to``: where records end of a section that the capture cut off; null: it was not."""

    start: int
    end: int
    caller: int
    process: int
    waits: tuple[Interval, ...] = ()
    holds: tuple[Interval, ...] = ()
    works: tuple[tuple[int, int, int], ...] = ()
    own: tuple[Gpu, ...] = ()
    device: int | None = None
    seen_to: int | None = None


class Stretch(NamedTuple):
    """Time in one category; ``details``: every sub-key that would be right; ``who``: the section in charge; ``held``:
    the device's mutex is held."""

    start: int
    end: int
    category: str
    details: frozenset[str] = frozenset()
    who: int | None = None
    blocker: str | None = None
    held: bool = False


@dataclass(frozen=True)
class Answer:
    """Sections by start, what each does, and what each device does."""

    sections: tuple[Section, ...]
    of_section: tuple[tuple[Stretch, ...], ...]
    of_device: dict[int, tuple[Stretch, ...]] = field(default_factory=dict)


def answer(
    world: World,
    rules: InLockRules,
    window: Interval,
    background: Background | None = None,
    stays: Sequence[tuple[int, int, int]] | None = None,
    lossy: bool = False,
) -> Answer:
    """The whole answer. ``stays``: (start, end, caller) of every section, where no ranges say it;
    ``lossy``: records were lost, or the log goes on past the capture.

    A section keeps its whole stay whatever the window; one that lies outside it has no stretches.
    """
    low, high = window
    sections = sections_of(world, rules, stays)
    if lossy:
        sections = tuple(replace(s, seen_to=last_call(world, s)) if s.end == world.end else s for s in sections)
    if background is None:
        ranges = [r for r in world.ranges if r.name in SYNTHESIS_NAMES]
        background = Background(None, tuple((r.start, r.end) for r in ranges) if ranges else None)
    cuts = set(world.times()) | {low, high}
    for s in sections:
        cuts |= {s.start, s.end, s.seen_to or s.end, *(t for span in (*s.waits, *s.holds) for t in span)}
    cuts |= {t for span in (*(background.queued or ()), *(background.synthesis or ())) for t in span}
    edges = sorted(cuts)
    return Answer(
        sections,
        tuple(
            merged(section_stretch(world, s, a, b) for a, b in between(edges, s.start, s.end))
            if s.start < high and low < s.end
            else ()
            for s in sections
        ),
        {
            d: merged(device_stretch(world, sections, background, d, a, b) for a, b in between(edges, low, high))
            for d in range(world.devices)
        },
    )


# --- sections -----------------------------------------------------------------------------------------------------


def sections_of(
    world: World, rules: InLockRules, stays: Sequence[tuple[int, int, int]] | None = None
) -> tuple[Section, ...]:
    """Every section with its threads and work."""
    if stays is None:
        stays = [(r.start, r.end, r.thread) for r in world.ranges if r.name in SECTION_NAMES]
    sections = [Section(a, b, caller, world.threads[caller]) for a, b, caller in sorted(stays)]
    sections = [with_mutex(world, s, rules) for s in sections]
    works = started_threads(world, sections)
    return tuple(with_work(world, with_threads(s, works.get(i, []))) for i, s in enumerate(sections))


def with_mutex(world: World, s: Section, rules: InLockRules) -> Section:
    """When the section waits for the mutex and when it holds it."""
    waits = mutex_waits(world, s, rules)
    return replace(s, waits=tuple(waits), holds=tuple(mutex_holds(world, s, rules, waits)))


def mutex_waits(world: World, s: Section, rules: InLockRules) -> list[Interval]:
    """The wait range, else the lock call outside CUDA calls, else a short gap before the first call in the lock."""
    ranges = [r for r in world.ranges if r.thread == s.caller and r.name in WAIT_NAMES and inside(s, r)]
    if ranges:
        return [cut(s, r) for r in ranges]
    locks = [
        o
        for o in world.os
        if o.thread == s.caller
        and o.name == "pthread_mutex_lock"
        and inside(s, o)
        and not any(c.thread == s.caller and c.start <= o.start and o.end <= c.end for c in world.calls)
    ]
    if locks:
        return [cut(s, o) for o in locks]
    if not rules.pinning_outside:
        return []
    calls = [c for c in world.calls if c.thread == s.caller and inside(s, c)]
    first = min((c.start for c in calls if c.name in rules.first), default=None)
    if first is None:
        return []
    before = [c for c in calls if c.start < first]
    gap_from = max((c.end for c in before), default=first)
    pinned = any(call_category(c.name) == "host_register" for c in before)
    return [(gap_from, first)] if pinned and 0 < first - gap_from < INFERRED_WAIT_BELOW else []


def mutex_holds(world: World, s: Section, rules: InLockRules, waits: Sequence[Interval]) -> list[Interval]:
    """The hold range, else what the pipeline says of its calls."""
    ranges = [r for r in world.ranges if r.thread == s.caller and r.name in HOLD_NAMES and inside(s, r)]
    if ranges:
        return [cut(s, r) for r in ranges]
    if rules.to_section_end:
        return [(max(end for _, end in waits), s.end)] if waits else []
    calls = [c for c in world.calls if c.thread == s.caller and inside(s, c)]
    first = min((c.start for c in calls if c.name in rules.first), default=None)
    last = max((c.end for c in calls if c.name in rules.last), default=None)
    return [(first, last)] if first is not None and last is not None and first < last else []


def started_threads(world: World, sections: Sequence[Section]) -> dict[int, list[Work]]:
    """Threads that are no section's caller, and when they work for which section.

    A thread all of whose CUDA calls lie in one section's hold works for that section; where several holds contain them
    all (several devices), for the one that began last. Any other thread works for each section in whose hold it makes
    calls, during that hold. A section of which no hold is known counts as held while no other of its process is open.
    """
    works: dict[int, list[Work]] = {}
    callers = {s.caller for s in sections}
    for thread, process in enumerate(world.threads):
        calls = [c for c in world.calls if c.thread == thread]
        if thread in callers or not calls:
            continue
        mine = [i for i, s in enumerate(sections) if s.process == process]
        whole = [i for i in mine if all(within(sections[i].holds, c.start) for c in calls)]
        if whole:
            last = max(whole, key=lambda i: sections[i].holds)
            works.setdefault(last, []).append((thread, sections[last].start, sections[last].end))
        else:
            for i in mine:
                held = sections[i].holds or alone(sections, i)
                served = [(a, b) for a, b in held if any(a <= c.start < b for c in calls)]
                works.setdefault(i, []).extend((thread, a, b) for a, b in served)
    return works


def alone(sections: Sequence[Section], i: int) -> tuple[Interval, ...]:
    """When no other section of its process is open."""
    s = sections[i]
    others = [o for j, o in enumerate(sections) if j != i and o.process == s.process]
    edges = sorted({s.start, s.end, *(t for o in others for t in (o.start, o.end) if s.start < t < s.end)})
    return tuple((a, b) for a, b in pairwise(edges) if not any(o.start <= a < o.end for o in others))


def with_threads(s: Section, works: Sequence[Work]) -> Section:
    """The section with its caller and its other threads at work."""
    return replace(s, works=((s.caller, s.start, s.end), *works))


def with_work(world: World, s: Section) -> Section:
    """The GPU work that its threads began while it was open, and the device it ran on."""
    own = tuple(g for g in world.gpu if g.call is not None and begun_by(s, world.calls[g.call]))
    devices = [g.device for g in own]
    device = max(set(devices), key=devices.count) if devices else 0 if world.devices == 1 else None
    return replace(s, own=own, device=device)


def begun_by(s: Section, call: Call) -> bool:
    """Whether the call is one of the section's threads', made while it was open."""
    return call.thread in at_work(s, call.start)


def last_call(world: World, s: Section) -> int:
    """The end of the last recorded call of its threads; its begin when there is none."""
    return max((min(c.end, s.end) for c in world.calls if begun_by(s, c)), default=s.start)


def at_work(s: Section, t: int) -> frozenset[int]:
    """Threads that work for the section at an instant."""
    return frozenset(thread for thread, a, b in s.works if a <= t < b)


def lawful(world: World, sections: Sequence[Section]) -> bool:
    """Whether the capture keeps the rules the definition takes for granted: one holder at a time, and every thread
    works for one section in its hold or for none."""
    holds = sorted(span for s in sections for span in s.holds if s.device is not None)
    callers = {s.caller for s in sections}
    for thread, process in enumerate(world.threads):
        calls = [c for c in world.calls if c.thread == thread]
        mine = [s.holds for s in sections if s.process == process]
        serves = {h for h in mine if any(within(h, c.start) for c in calls)}
        if thread not in callers and len(serves) > 1:
            return False
    return all(a[1] <= b[0] for a, b in pairwise(holds))


# --- one stretch of one section -------------------------------------------------------------------------------------


def section_stretch(world: World, s: Section, a: int, b: int) -> Stretch:
    """What the section does: its own GPU work first, then what its threads do."""
    category, details = busy(s.own, a)
    if category is not None:
        return Stretch(a, b, category, details)
    category = threads_do(world, s, a)
    return Stretch(a, b, category, blocker=blocker(world, s, category, a))


def busy(work: Iterable[Gpu], t: int) -> tuple[str | None, frozenset[str]]:
    """Category of the device work that runs, and every sub-key it may have."""
    running = [g for g in work if g.start <= t < g.end]
    for category in ("kernel", "upload", "download", "copy", "memset"):
        found = [g for g in running if busy_category(g.kind) == category]
        if found:
            return category, frozenset(g.name for g in found)
    return None, frozenset()


def busy_category(kind: str) -> str:
    """Category of one piece of device work."""
    return {"kernel": "kernel", "graph": "kernel", "HtoD": "upload", "DtoH": "download", "memset": "memset"}.get(
        kind, "copy"
    )


def threads_do(world: World, s: Section, t: int) -> str:
    """What the section's threads do, GPU work aside."""
    if within(s.waits, t):
        return "mutex_wait"
    threads = at_work(s, t)
    if any(r.thread in threads and r.name in BARRIER_NAMES for r in at(world.ranges, t)):
        return "barrier_wait"
    for category in CALL_CATEGORIES:
        if calls_in(world, threads, category, t):
            return category
    overheads: list[Overhead] = at(world.overheads, t)
    if any(o.profiler and o.thread in threads for o in overheads):
        return "profiler"
    return "cpu" if s.seen_to is None or t < s.seen_to else "unattributed"


def blocker(world: World, s: Section, category: str, t: int) -> str | None:
    """Whose call holds up a thread that waits for a lock inside its own call of this category; null: none waits."""
    stuck = [
        c
        for c in calls_in(world, at_work(s, t), category, t)
        if any(o.thread == c.thread and o.name in LOCKS for o in at(world.os, t))
    ]
    if not stuck:
        return None
    for other in BLOCKERS:
        for mine in stuck:
            peers = {i for i, p in enumerate(world.threads) if p == s.process and i != mine.thread}
            if calls_in(world, frozenset(peers), other, t):
                return other
    return "none"


def calls_in(world: World, threads: frozenset[int], category: str, t: int) -> list[Call]:
    """Calls of a category that these threads are in."""
    return [c for c in at(world.calls, t) if c.thread in threads and call_category(c.name) == category]


def call_category(name: str) -> str | None:
    """Category of a CUDA call; null: it counts as CPU time."""
    return next((category for category, names in CALL_CATEGORIES.items() if name in names), None)


# --- one stretch of one device --------------------------------------------------------------------------------------


def device_stretch(
    world: World, sections: Sequence[Section], background: Background, device: int, a: int, b: int
) -> Stretch:
    """What the device does or why it idles."""
    category, details = busy([g for g in world.gpu if g.device == device], a)
    here = [i for i, s in enumerate(sections) if s.device == device and s.start <= a < s.end]
    holders = [i for i in here if within(sections[i].holds, a)]
    if category is not None:
        return Stretch(a, b, category, details, held=bool(holders))
    if holders:
        return Stretch(a, b, threads_do(world, sections[holders[0]], a), who=holders[0], held=True)
    if any(within(sections[i].waits, a) for i in here):
        return Stretch(a, b, "mutex_handover")
    calling = [i for i in here if any(c.thread in at_work(sections[i], a) for c in at(world.calls, a))]
    oldest = next(iter(calling or here), None)
    if oldest is not None:
        return Stretch(a, b, threads_do(world, sections[oldest], a), who=oldest)
    return Stretch(a, b, nobody_open(background, a))


def nobody_open(background: Background, t: int) -> str:
    """Why a device idles while no section is open."""
    if background.queued is not None and within(background.queued, t):
        return "dispatch"
    if background.synthesis is not None and within(background.synthesis, t):
        return "starved"
    # That nothing is queued must be known too.
    return "unattributed" if background.queued is None or background.synthesis is None else "drained"


# --- time -----------------------------------------------------------------------------------------------------------


def at(rows: Iterable[Row], t: int) -> list[Row]:
    """Rows that cover an instant."""
    return [row for row in rows if row.start <= t < row.end]


def within(spans: Iterable[Interval], t: int) -> bool:
    """Whether any span covers an instant."""
    return any(a <= t < b for a, b in spans)


def inside(s: Section, row: Timed) -> bool:
    """Whether something begins while the section is open."""
    return s.start <= row.start < s.end


def cut(s: Section, row: Timed) -> Interval:
    """The row's part in the section."""
    return max(s.start, row.start), min(s.end, row.end)


def between(edges: Sequence[int], low: int, high: int) -> Iterator[Interval]:
    """Neighbouring edges from ``low`` to ``high``, both of which are edges."""
    return ((a, b) for a, b in pairwise(edges) if low <= a and b <= high)


def merged(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Neighbours that say the same, joined."""
    out: list[Stretch] = []
    for s in stretches:
        if out and out[-1][2:] == s[2:]:
            out[-1] = out[-1]._replace(end=s.end)
        else:
            out.append(s)
    return tuple(out)


def measure(stretches: Iterable[Stretch], keep: Callable[[Stretch], bool]) -> int:
    """Time in the stretches that ``keep`` says yes to, ns."""
    return sum(s.end - s.start for s in stretches if keep(s))
