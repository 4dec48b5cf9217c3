"""Are two runs the same set-up? Asked before anything is compared, because a change of set-up explains a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nvprof_tools.model.comparison import Difference, RunFacts, Weight

WORK_TOLERANCE = 0.02
"""Work a partition (kernels, bytes uploaded) that differs by more is said to differ."""


def differences(runs: Sequence[RunFacts]) -> tuple[Difference, ...]:
    """Every respect in which a run differs from the first one; each aspect and pair of values once."""
    found: dict[tuple[str, str, str], Difference] = {}
    for other in runs[1:]:
        for item in _between(runs[0], other):
            found.setdefault((item.aspect, item.a, item.b), item)
    return tuple(sorted(found.values(), key=lambda d: (d.weight != "refuses", d.aspect, d.a, d.b)))


def _between(a: RunFacts, b: RunFacts) -> Iterator[Difference]:
    yield from _differ("pipeline", "refuses", a.pipeline, b.pipeline, "the runs are of different pipelines")
    yield from _differ(
        "partitions a proof",
        "refuses",
        a.partitions_per_proof,
        b.partitions_per_proof,
        "the proofs are cut into a different number of partitions",
    )
    yield from _differ("GPU", "refuses", ", ".join(a.devices), ", ".join(b.devices), "the runs used different GPUs")
    yield from _differ("kind", "notes", a.kind, b.kind, "one side was profiled and the other was not", _is_log)
    yield from _differ("workers", "notes", a.workers, b.workers, "the runs had a different number of GPU workers")
    yield from _differ(
        "proofs", "notes", _count(a.proofs), _count(b.proofs), "the runs are of different length: the shorter decides"
    )
    yield from _work("kernels a partition", a.kernels_per_partition, b.kernels_per_partition)
    yield from _work("bytes uploaded a partition", a.upload_bytes_per_partition, b.upload_bytes_per_partition)
    if a.measured is not None and b.measured is not None and a.measured != b.measured:
        only_a, only_b = sorted(a.measured - b.measured), sorted(b.measured - a.measured)
        yield Difference(
            "recorded events",
            "notes",
            ", ".join(only_a) or "-",
            ", ".join(only_b) or "-",
            "the captures recorded different kinds of events: categories made of them may move by that alone",
        )
    for name in sorted(a.setup.keys() | b.setup.keys()):
        yield from _differ(name, "notes", a.setup.get(name), b.setup.get(name), f"{name} differs")


def _differ(
    aspect: str,
    weight: Weight,
    a: object,
    b: object,
    message: str,
    key: Callable[[object], object] = lambda value: value,
) -> Iterator[Difference]:
    """What is not known on either side differs from nothing."""
    if a in (None, "") or b in (None, "") or key(a) == key(b):
        return
    yield Difference(aspect, weight, str(a), str(b), message)


def _work(aspect: str, a: float | None, b: float | None) -> Iterator[Difference]:
    if a is None or b is None or abs(a - b) <= WORK_TOLERANCE * max(a, b):
        return
    yield Difference(aspect, "notes", f"{a:,.1f}", f"{b:,.1f}", f"the work differs: {aspect}")


def _is_log(kind: object) -> bool:
    return kind == "log"


def _count(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"
