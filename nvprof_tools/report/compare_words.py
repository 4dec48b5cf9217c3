"""How a comparison is said, once for every format: the finding, the facts, the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nvprof_tools.model.comparison import Change, Comparison, Pair, RunFacts
from nvprof_tools.report.words import MISSING, count, percent, plural

VERDICT_WORDS: Final = {
    "faster": "faster",
    "slower": "slower",
    "no-evidence": "no evidence of a change",
    "inconclusive": "inconclusive",
}
HEADLINE_WORDS: Final = {"proof": "ms a proof", "partition": "ms a partition"}
WALL_NAMES: Final = {
    "wall": "whole run",
    "section": "sections, added up",
    "gpu_bracket": "GPU brackets, added up",
    "synthesis": "synthesis, added up",
}
HEADS: Final = (
    "measure",
    "A ms",
    "B ms",
    "change ms",
    "change",
    "95 % interval",
    "p",
    "detectable",
    "share A",
    "share B",
    "verdict",
)
SIDES: Final = "lrrrrrrrrrl"
PAIR_HEADS: Final = ("", "A", "B", "change")


def signed_ms(ns: float) -> str:
    """``+12.3``: a change in milliseconds, two digits after the point where it is small."""
    value = ns / 1e6
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    return f"{value:+,.{digits}f}"


def plain_ms(ns: float | None) -> str:
    """``1,188.0``, ``4.26``: milliseconds with as many digits as small figures need."""
    if ns is None:
        return MISSING
    value = ns / 1e6
    digits = 1 if abs(value) >= 10 or value == 0 else 2 if abs(value) >= 0.1 else 3
    return f"{value:,.{digits}f}"


def signed_percent(fraction: float | None) -> str:
    """``+16.4 %``."""
    return MISSING if fraction is None else f"{fraction * 100:+.1f} %"


def finding(c: Comparison) -> str:
    """The verdict in one sentence."""
    head = c.headline
    unit = HEADLINE_WORDS[c.unit]
    walls = f"{plain_ms(head.a_ns)} -> {plain_ms(head.b_ns)} {unit} ({signed_percent(head.fraction)})"
    if c.verdict in {"faster", "slower"} and c.grounds == "headline":
        return f"B is {c.verdict} by {abs(c.size or 0) * 100:.1f} %: {walls}"
    if c.verdict in {"faster", "slower"}:
        return f"B is {c.verdict} by {abs(c.size or 0) * 100:.1f} % of the sections: {c.reason}; whole run {walls}"
    return f"{VERDICT_WORDS[c.verdict].capitalize()}: {walls}; {c.reason}"


def sentences(c: Comparison) -> Iterator[str]:
    """What stands under the finding: what moved, what these data can show, the steady part."""
    if c.moved:
        parts = [
            f"{m.measure} {signed_ms(m.change_ns)} ms ({signed_percent(m.own_fraction)} of itself)" for m in c.moved[:6]
        ]
        more = f", and {len(c.moved) - 6} more" if len(c.moved) > 6 else ""
        yield "Moved: " + ", ".join(parts) + more + f", in {HEADLINE_WORDS[c.unit]}."
    elif c.changes:
        yield "No single category moved beyond noise."
    detectable = percent(c.headline.detectable_fraction) if c.headline.detectable_ns < float("inf") else "none at all"
    yield f"Smallest change of the whole that these data would have shown (4 times in 5): {detectable}."
    if c.runs_as_units:
        yield "The spread between runs was measured: runs, not partitions, are what is compared."
    else:
        yield (
            f"One run a side shows no spread between runs: {c.assumed_spread * 100:g} % is assumed "
            "(--run-spread); several runs a side measure it."
        )
    if c.runs_needed is not None:
        yield f"About {c.runs_needed} runs a side would show a change of {c.resolve * 100:g} %."
    if c.steady_a_ns and c.steady_b_ns:
        moved = signed_percent(c.steady_b_ns / c.steady_a_ns - 1)
        yield f"Without the cold start: {plain_ms(c.steady_a_ns)} -> {plain_ms(c.steady_b_ns)} ({moved})."


def describe(run: RunFacts) -> str:
    """One run in a line."""
    parts = [run.kind]
    if run.pipeline:
        parts.append(run.pipeline)
    if run.proofs is not None and run.partitions_per_proof is not None:
        parts.append(f"{run.proofs:g} proofs of {plural(run.partitions_per_proof, 'partition')}")
    parts.append(f"{count(run.partitions)} steady, {count(run.cold)} cold")
    if run.workers is not None:
        parts.append(plural(run.workers, "worker"))
    parts.extend(run.devices)
    return f"{run.label}: " + ", ".join(parts)


def notes(c: Comparison) -> Iterator[str]:
    """Where the sides are not the same set-up."""
    for d in c.differences:
        word = "NOT COMPARABLE" if d.weight == "refuses" else "note"
        yield f"{word}: {d.message}: {d.a} against {d.b}"


def name(change: Change) -> str:
    """How a table names the measure."""
    return WALL_NAMES.get(change.measure, change.measure)


def row(c: Change) -> tuple[str, ...]:
    """The cells of one measure, as ``HEADS``."""
    low, high = (x / c.reference_ns if c.reference_ns > 0 else None for x in (c.low_ns, c.high_ns))
    interval = (
        MISSING if low is None or abs(c.low_ns) == float("inf") else f"{low * 100:+.1f} .. {signed_percent(high)}"
    )
    return (
        name(c),
        plain_ms(c.a_ns),
        plain_ms(c.b_ns),
        signed_ms(c.change_ns),
        signed_percent(c.fraction),
        interval,
        _p_value(c.p_adjusted) if c.tested else MISSING,
        percent(c.detectable_fraction) if c.detectable_ns < float("inf") else "none",
        percent(c.share_a),
        percent(c.share_b),
        c.verdict if c.tested else "too small",
    )


def cold_rows(c: Comparison) -> list[tuple[str, ...]]:
    """Cold partitions apart: measure, A, B, change, in ms scaled as the rest; not tested."""
    return [
        (name(x), plain_ms(x.cold_a_ns), plain_ms(x.cold_b_ns), signed_ms(x.cold_b_ns - x.cold_a_ns))
        for x in c.changes
        if x.cold_a_ns is not None and x.cold_b_ns is not None and max(x.cold_a_ns, x.cold_b_ns) > 0
    ]


def ladder_rows(c: Comparison) -> list[tuple[str, ...]]:
    """The ladder side by side."""
    return [(p.name, percent(p.a), percent(p.b), _points(p)) for p in c.ladder]


def device_rows(c: Comparison) -> list[tuple[str, ...]]:
    """The device view side by side, the largest first."""
    ordered = sorted(c.device, key=lambda p: (-max(p.a or 0, p.b or 0), p.name))
    return [
        (p.name, plain_ms(p.a), plain_ms(p.b), MISSING if p.a is None or p.b is None else signed_ms(p.b - p.a))
        for p in ordered
    ]


def _points(p: Pair) -> str:
    return MISSING if p.a is None or p.b is None else f"{(p.b - p.a) * 100:+.1f} pp"


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
