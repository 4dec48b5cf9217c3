"""Where the tool's answer and the oracle's differ, in words; and the smallest capture on which they still do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from nvprof_tools.model.attribution import Attribution
from oracle.oracle import Answer, Stretch, measure, merged
from oracle.rows import World

BUSY = ("kernel", "upload", "download", "copy", "memset")
STAGES = {"cuzk": {"_GS_NTT": "ntt", "coeff_wise_mult": "pointwise"}, "generic": {"_GS_NTT": "ntt"}}
"""Stages of the kernels that the random captures launch; a kernel that is not here may be of any other stage."""
ROWS = ("overheads", "ranges", "os", "gpu", "calls")


def differences(got: Attribution, want: Answer) -> list[str]:
    """Every difference; empty: the two agree to the nanosecond."""
    return [*_sections(got, want), *_devices(got, want), *_ladder(got, want), *_overheads(got, want)]


def _sections(got: Attribution, want: Answer) -> Iterator[str]:
    seen = {p.section: (p.start_ns, p.end_ns) for p in got.partitions}
    expected = [(s[0].start, s[-1].end) for s in want.of_section if s]
    if sorted(seen.values()) != expected:
        yield f"sections: got {sorted(seen.values())}, want {expected}"
        return
    for i, number in _numbers(got, want).items():
        stretches = want.of_section[i]
        view = next(p for p in got.partitions if p.section == number)
        name = f"section {view.start_ns}..{view.end_ns}"
        yield from _differ(f"{name} device", view.device, want.sections[i].device)
        rows = [r for r in got.section_segments.to_pylist() if r["section"] == number]
        yield from _gapless(name, rows, view.start_ns, view.end_ns)
        yield from _differ(
            name,
            _short(Stretch(r["start_ns"], r["end_ns"], r["category"], blocker=r["blocker"]) for r in rows),
            _short(s._replace(details=frozenset(), who=None, held=False) for s in stretches),
        )
        yield from _differ(f"{name} totals", dict(view.categories), _totals(stretches))
        yield from _details(name, view.details, stretches, got.pipeline)
        stuck = [s for s in stretches if s.blocker is not None]
        yield from _differ(f"{name} driver locks", dict(view.driver_locks or {}), _totals(stuck))
        by_whom = Counter[str]()
        for s in stuck:
            by_whom[str(s.blocker)] += s.end - s.start
        yield from _differ(f"{name} blockers", dict(view.blockers or {}), dict(by_whom))


def _numbers(got: Attribution, want: Answer) -> dict[int, int | None]:
    """The tool's number of each of the oracle's sections in the window, which are told apart by their walls."""
    shown = [i for i, stretches in enumerate(want.of_section) if stretches]
    numbers = sorted((p.start_ns, p.end_ns, p.section) for p in got.partitions)
    return {i: number for i, (*_, number) in zip(shown, numbers, strict=True)}


def _devices(got: Attribution, want: Answer) -> Iterator[str]:
    low, high = got.window.start_ns, got.window.end_ns
    numbers = _numbers(got, want) if len(got.partitions) == sum(map(bool, want.of_section)) else {}
    for view in got.devices:
        stretches = want.of_device[view.device]
        name = f"device {view.device}"
        rows = [r for r in got.device_segments.to_pylist() if r["device"] == view.device]
        yield from _gapless(name, rows, low, high)
        yield from _differ(
            name,
            _short(Stretch(r["start_ns"], r["end_ns"], r["category"]) for r in rows),
            _short(s._replace(details=frozenset(), who=None, held=False) for s in stretches),
        )
        yield from _differ(f"{name} totals", dict(view.categories), _totals(stretches))
        yield from _differ(f"{name} wall", view.wall_ns, high - low)
        yield from _details(name, view.details, stretches, got.pipeline)
        yield from _bounded(f"{name} stages", view.stages, stretches, "kernel", STAGES[got.pipeline].get)
        for s in stretches:
            if s.who not in numbers:
                continue
            charged = {r["section"] for r in rows if r["start_ns"] < s.end and s.start < r["end_ns"]}
            yield from _differ(f"{name} in charge {s.start}..{s.end}", charged, {numbers[s.who]})
        idle = [s for s in stretches if s.category not in BUSY]
        gaps = sorted((g.start_ns, g.end_ns, tuple(g.categories.items())) for g in got.gaps if g.device == view.device)
        yield from _differ(f"{name} gaps", [g[:2] for g in gaps], [(s.start, s.end) for s in _joined(idle)])
        for start, end, categories in gaps:
            within = [s for s in stretches if start <= s.start and s.end <= end]
            yield from _differ(f"{name} gap {start}", dict(categories), _totals(within))
    missing = [d for d in want.of_device if d not in {v.device for v in got.devices}]
    if any(s.device in missing for s in want.sections):
        yield f"no view of devices {missing}"


def _joined(idle: Iterable[Stretch]) -> list[Stretch]:
    out: list[Stretch] = []
    for s in idle:
        if out and out[-1].end == s.start:
            out[-1] = out[-1]._replace(end=s.end)
        else:
            out.append(s)
    return out


def _ladder(got: Attribution, want: Answer) -> Iterator[str]:
    for view in got.devices:
        stretches = want.of_device[view.device]
        rungs = {r.rung: r for r in got.ladder if r.device == view.device}
        kernel = measure(stretches, lambda s: s.category == "kernel")
        yield from _differ("kernel_busy", rungs["kernel_busy"].busy_ns, kernel)
        yield from _differ(
            "device_busy", rungs["device_busy"].busy_ns, measure(stretches, lambda s: s.category in BUSY)
        )
        yield from _differ(
            "drop to kernel_busy",
            dict(rungs["kernel_busy"].drop),
            _totals(s for s in stretches if s.category in BUSY and s.category != "kernel"),
        )
        held = [s for s in stretches if s.held]
        if rungs["mutex_held"].busy_ns is None:
            yield from _differ("mutex_held, not measured", sum(s.end - s.start for s in held), 0)
            continue
        yield from _differ("mutex_held", rungs["mutex_held"].busy_ns, sum(s.end - s.start for s in held))
        if not any(s.category in BUSY and not s.held for s in stretches):  # else the rungs are not nested
            lost = _totals(s for s in held if s.category not in BUSY)
            yield from _differ("drop to device_busy", dict(rungs["device_busy"].drop), lost)


def _overheads(got: Attribution, want: Answer) -> Iterator[str]:
    in_sections = _totals(s for stretches in want.of_section for s in stretches)
    on_devices = _totals(s for v in got.devices for s in want.of_device[v.device] if s.category not in BUSY)
    for overhead in got.overheads:
        yield from _differ(f"overhead {overhead.category}", overhead.total_ns, in_sections.get(overhead.category, 0))
        yield from _differ(
            f"overhead {overhead.category} idle", overhead.device_idle_ns, on_devices.get(overhead.category, 0)
        )
    named = {o.category for o in got.overheads}
    lacking = {c for c in in_sections if _of_calls(c) and c not in named}
    if lacking:
        yield f"no overhead row for {sorted(lacking)}"


def _of_calls(category: str) -> bool:
    """Whether a category stands for CUDA calls."""
    return category not in {"kernel", "upload", "download", "copy", "memset", "cpu", "unattributed"}


def _details(
    name: str, details: Mapping[str, Mapping[str, int]], stretches: tuple[Stretch, ...], stages: str
) -> Iterator[str]:
    yield from _bounded(f"{name} stages", details.get("kernel", {}), stretches, "kernel", STAGES[stages].get)
    for category in ("upload", "download"):
        yield from _bounded(f"{name} {category}", details.get(category, {}), stretches, category, lambda d: d)


def _bounded(
    name: str,
    got: Mapping[str, int],
    stretches: Iterable[Stretch],
    category: str,
    key: Callable[[str], str | None],
) -> Iterator[str]:
    """A sub-key's time is at least what it has alone and at most what it may have; together they are all there is."""
    mine = [(s.end - s.start, {key(d) for d in s.details}) for s in stretches if s.category == category]
    for detail in sorted({d for _, options in mine for d in options if d is not None}):
        least = sum(length for length, options in mine if options == {detail})
        most = sum(length for length, options in mine if detail in options)
        if not least <= got.get(detail, 0) <= most:
            yield f"{name}: {detail} got {got.get(detail, 0)}, want {least}..{most}"
    if sum(got.values()) > sum(length for length, _ in mine):
        yield f"{name}: {dict(got)} is more than there is"


def _totals(stretches: Iterable[Stretch]) -> dict[str, int]:
    total = Counter[str]()
    for s in stretches:
        total[s.category] += s.end - s.start
    return dict(total)


def _short(stretches: Iterable[Stretch]) -> list[tuple[int, int, str, str | None]]:
    return [(s.start, s.end, s.category, s.blocker) for s in merged(stretches)]


def _gapless(name: str, rows: list[Mapping[str, int]], low: int | None, high: int | None) -> Iterator[str]:
    edges = [(r["start_ns"], r["end_ns"]) for r in rows]
    if [low, *(e for _, e in edges)] != [*(s for s, _ in edges), high] or any(a >= b for a, b in edges):
        yield f"{name}: segments are not a partition of {low}..{high}: {edges}"


def _differ(name: str, got: object, want: object) -> Iterator[str]:
    if got != want:
        yield f"{name}: got {got}, want {want}"


def smallest(world: World, fails: Callable[[World], bool]) -> World:
    """A capture from which no row can be taken away without the failure going away."""
    shrunk = True
    while shrunk:
        shrunk = False
        for kind in ROWS:
            row = 0
            while row < len(getattr(world, kind)):
                less = without(world, kind, row)
                if fails(less):
                    world, shrunk = less, True
                else:
                    row += 1
    return world


def without(world: World, kind: str, row: int) -> World:
    """The capture without one row; work keeps its call, or has none if that is the row."""
    rows = getattr(world, kind)
    world = replace(world, **{kind: (*rows[:row], *rows[row + 1 :])})
    if kind != "calls":
        return world
    moved = tuple(
        g if g.call is None or g.call < row else g._replace(call=None if g.call == row else g.call - 1)
        for g in world.gpu
    )
    return replace(world, gpu=moved)
