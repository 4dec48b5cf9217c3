"""How a comparison is said, once for every format: the finding, the facts, the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nvprof_tools.model.comparison import Change, Comparison, Pair, RunFacts
from nvprof_tools.report.words import MISSING, count, percent, plural

VERDICT_WORDS: Final = {
    "faster": "faster",
    "slower": "slower",
    "no-evidence": "no evidence of a change",
    "inconclusive": "inconclusive",
}
WALL_NAMES: Final = {
    "wall": "whole run",
    "section": "sections, added up",
    "gpu_bracket": "GPU brackets, added up",
    "synthesis": "synthesis, added up",
}
SIDES: Final = "lrrrrrrrrrl"
LEAST_SHOWN: Final = 0.001
"""Share of the whole run under which a row that is not tested is left out."""


@dataclass(frozen=True)
class Scale:
    """The unit in which a comparison's times are written, so that neither long proofs nor short steps lose digits."""

    unit: str
    ns: float

    @classmethod
    def of(cls, c: Comparison) -> Scale:
        """Microseconds where the whole is under 10 ms, else milliseconds."""
        return cls("us", 1e3) if c.headline.a_ns < 10e6 else cls("ms", 1e6)

    def plain(self, ns: float | None) -> str:
        """``1,188.0``, ``4.26``: more digits for small figures."""
        if ns is None:
            return MISSING
        value = ns / self.ns
        return f"{value:,.{_digits(value)}f}"

    def signed(self, ns: float) -> str:
        """``+12.3``."""
        value = ns / self.ns
        return f"{value:+,.{_digits(value)}f}"


def _digits(value: float) -> int:
    return 1 if abs(value) >= 10 or value == 0 else 2 if abs(value) >= 0.1 else 3


def heads(scale: Scale) -> tuple[str, ...]:
    """Heads of the table of measures."""
    unit = scale.unit
    times = (f"A {unit}", f"B {unit}", f"change {unit}")
    return ("measure", *times, "change", "95 % interval", "p", "detectable", "share A", "share B", "verdict")


def pair_heads(unit: str = "") -> tuple[str, ...]:
    """Heads of the tables that hold A against B."""
    return ("", *(f"{side} {unit}".strip() for side in ("A", "B", "change")))


def signed_percent(fraction: float | None) -> str:
    """``+16.4 %``."""
    return MISSING if fraction is None else f"{fraction * 100:+.1f} %"


def finding(c: Comparison) -> str:
    """The verdict in one sentence."""
    head = c.headline
    scale = Scale.of(c)
    both = f"{scale.plain(head.a_ns)} -> {scale.plain(head.b_ns)}"
    walls = f"{both} {scale.unit} a {c.unit} ({signed_percent(head.fraction)})"
    if c.verdict in {"faster", "slower"} and c.grounds == "headline":
        return f"B is {c.verdict} by {abs(c.size or 0) * 100:.1f} %: {walls}"
    if c.verdict in {"faster", "slower"}:
        return f"B is {c.verdict} by {abs(c.size or 0) * 100:.1f} % of the sections: {c.reason}; whole run {walls}"
    why = f"; {c.reason}" if c.verdict == "inconclusive" else ""
    return f"{VERDICT_WORDS[c.verdict].capitalize()}: {walls}{why}"


def sentences(c: Comparison) -> Iterator[str]:
    """What stands under the finding: what moved, what these data can show, the steady part."""
    scale = Scale.of(c)
    if c.moved:
        parts = [f"{m.measure} {scale.signed(m.change_ns)} ({signed_percent(m.own_fraction)})" for m in c.moved[:6]]
        more = f", and {len(c.moved) - 6} more" if len(c.moved) > 6 else ""
        yield f"Moved, in {scale.unit} a {c.unit} (and of itself): " + ", ".join(parts) + more + "."
    elif any(x.level == "categories" for x in c.changes):
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
        both = f"{scale.plain(c.steady_a_ns)} -> {scale.plain(c.steady_b_ns)}"
        yield f"Without the cold start: {both} {scale.unit} ({moved})."


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


def rows(c: Comparison) -> list[tuple[str, ...]]:
    """The table of measures: the whole first, then all that was tested."""
    scale = Scale.of(c)
    return [row(x, scale) for x in (c.headline, *c.changes) if x.tested or x.level != "categories"]


def untested(c: Comparison) -> str | None:
    """The categories too small to be tested, in a sentence; null without any."""
    small = [x.measure for x in c.changes if not x.tested and x.level == "categories"]
    return f"Too small on both sides to be tested: {', '.join(small)}." if small else None


def row(c: Change, scale: Scale) -> tuple[str, ...]:
    """The cells of one measure."""
    low, high = (x / c.reference_ns if c.reference_ns > 0 else None for x in (c.low_ns, c.high_ns))
    interval = (
        MISSING if low is None or abs(c.low_ns) == float("inf") else f"{low * 100:+.1f} .. {signed_percent(high)}"
    )
    return (
        name(c),
        scale.plain(c.a_ns),
        scale.plain(c.b_ns),
        scale.signed(c.change_ns),
        signed_percent(c.fraction),
        interval,
        _p_value(c.p_adjusted),
        percent(c.detectable_fraction) if c.detectable_ns < float("inf") else "none",
        percent(c.share_a),
        percent(c.share_b),
        c.verdict,
    )


def cold_rows(c: Comparison) -> list[tuple[str, ...]]:
    """Cold partitions apart: measure, A, B, change, scaled as the rest; not tested."""
    scale = Scale.of(c)
    return [
        (name(x), scale.plain(x.cold_a_ns), scale.plain(x.cold_b_ns), scale.signed(x.cold_b_ns - x.cold_a_ns))
        for x in c.changes
        if x.cold_a_ns is not None and x.cold_b_ns is not None and (x.tested or x.level != "categories")
    ]


def ladder_rows(c: Comparison) -> list[tuple[str, ...]]:
    """The ladder side by side."""
    return [(p.name, percent(p.a), percent(p.b), _points(p)) for p in c.ladder]


def device_rows(c: Comparison) -> list[tuple[str, ...]]:
    """The device view side by side, the largest first; what is next to nothing on both sides is left out."""
    scale = Scale.of(c)
    least = LEAST_SHOWN * c.headline.a_ns
    ordered = sorted(c.device, key=lambda p: (-max(p.a or 0, p.b or 0), p.name))
    return [
        (p.name, scale.plain(p.a), scale.plain(p.b), MISSING if p.a is None or p.b is None else scale.signed(p.b - p.a))
        for p in ordered
        if max(p.a or 0, p.b or 0) >= least
    ]


def _points(p: Pair) -> str:
    return MISSING if p.a is None or p.b is None else f"{(p.b - p.a) * 100:+.1f} pp"


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
