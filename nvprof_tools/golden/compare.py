"""Two sides, one or several runs each: what moved, by how much, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from nvprof_tools.errors import UsageError
from nvprof_tools.golden import comparable
from nvprof_tools.golden.measure import Floats, Measured
from nvprof_tools.golden.statistics import Estimates, Run, Settings, estimate, runs_for
from nvprof_tools.model.comparison import Change, Comparison, Difference, Level, Pair, Unit, Verdict

HEADLINE: Final = "wall"
WALLS: Final = (HEADLINE, "section", "gpu_bracket")
"""Measures that are whole walls."""

LOG_MEASURES: Final = ("synthesis",)
"""Measures that only a log tells."""
DEFAULT_SETTINGS: Final = Settings()
OWN: Final = (*WALLS, *LOG_MEASURES)
"""Measures whose percentages are of themselves; those of a category are of the sections."""

RESOLVE: Final = 0.25
"""A comparison whose interval does not rule out a change of this size is inconclusive."""


@dataclass(frozen=True)
class Sides:
    """Both sides as matrices with the same columns. ``names[0]`` is the headline."""

    names: tuple[str, ...]
    a: list[Run]
    b: list[Run]
    cold_a: Floats
    cold_b: Floats
    unit: Unit


def compare(
    side_a: Sequence[Measured],
    side_b: Sequence[Measured],
    settings: Settings = DEFAULT_SETTINGS,
    *,
    fail_over: float | None = None,
    force: bool = False,
) -> Comparison:
    """Compare runs already measured.

    :param fail_over: a slow-down of this fraction must be ruled out, else the verdict is ``inconclusive``; null: a
        change of a quarter, either way.
    :param force: compare runs that are not the same set-up.
    :raises UsageError: ``not-comparable``.
    """
    resolve = RESOLVE if fail_over is None else fail_over
    facts = [m.facts for m in (*side_a, *side_b)]
    differing = comparable.differences(facts)
    refused = [d for d in differing if d.weight == "refuses"]
    if refused and not force:
        raise _not_comparable(refused)
    sides = _matrices(side_a, side_b)
    names = sides.names
    level_a = np.mean([run.levels for run in sides.a], axis=0)
    reference = np.array([_reference(name, names, level_a) for name in names])
    spread = np.array([settings.run_spread if name in OWN else settings.category_spread for name in names])
    found = estimate(sides.a, sides.b, reference, spread, settings, pair=_same_structure(side_a, side_b))
    changes = [_change(i, sides, found, reference, resolve, fail_over is not None) for i in range(len(names))]
    steady_a, steady_b = (_steady(side) for side in (sides.a, sides.b))
    headline = _headline(changes[0], steady_a, steady_b, settings)
    several = len(side_a) + len(side_b) > 2
    verdict, size, grounds, reason = _verdict(headline, changes[1:])
    return Comparison(
        sides.unit,
        (tuple(m.facts for m in side_a), tuple(m.facts for m in side_b)),
        differing,
        headline,
        steady_a,
        steady_b,
        tuple(changes[1:]),
        _ladder(side_a, side_b),
        _device(side_a, side_b, sides.unit),
        verdict,
        size,
        grounds,
        reason,
        several,
        settings.run_spread,
        resolve,
        _runs_needed(sides, found, resolve, settings) if verdict == "inconclusive" else None,
    )


def _not_comparable(refused: Sequence[Difference]) -> UsageError:
    told = "; ".join(f"{d.message} ({d.a} against {d.b})" for d in refused)
    return UsageError("not-comparable", told, "compare runs of one set-up, or add --force to see them side by side")


def _matrices(side_a: Sequence[Measured], side_b: Sequence[Measured]) -> Sides:
    every = (*side_a, *side_b)
    unit: Unit = "proof" if all(m.facts.partitions_per_proof for m in every) else "partition"
    shared = [n for n in OWN if all(n in m.columns for m in every)]
    parts = list(dict.fromkeys(n for m in every for n in m.columns if n not in (*WALLS, *LOG_MEASURES)))
    if "section" not in shared:
        parts = []
    names = (HEADLINE, *shared, *parts)
    a, b = ([_run(m, names, unit) for m in side] for side in (side_a, side_b))
    cold_a, cold_b = (_cold(side, names, unit) for side in (side_a, side_b))
    return Sides(names, a, b, cold_a, cold_b, unit)


def _run(m: Measured, names: Sequence[str], unit: Unit) -> Run:
    scale = m.per_unit if unit == "proof" else 1
    steady = ~m.cold
    zero = np.zeros(int(steady.sum()))
    columns = [m.increments] + [m.columns[n][steady] if n in m.columns else zero for n in names[1:]]
    units = np.stack(columns, axis=1) * scale
    levels = units.mean(axis=0)
    levels[0] = m.wall_ns / m.size * (1 if unit == "proof" else 1 / m.per_unit)
    return Run(units, levels)


def _cold(side: Sequence[Measured], names: Sequence[str], unit: Unit) -> Floats:
    """Mean of the cold partitions by measure; NaN for the headline and without any."""
    rows = []
    for m in side:
        if m.cold.any():
            scale = m.per_unit if unit == "proof" else 1
            rows.append(
                [np.nan] + [float(m.columns[n][m.cold].mean()) * scale if n in m.columns else 0.0 for n in names[1:]]
            )
    return np.mean(rows, axis=0) if rows else np.full(len(names), np.nan)


def _reference(name: str, names: Sequence[str], level: Floats) -> float:
    """What the measure's percentages are taken of."""
    return float(level[names.index(name if name in OWN else "section")])


def _same_structure(side_a: Sequence[Measured], side_b: Sequence[Measured]) -> bool:
    """Runs of the same workers, proofs and partitions: unit i of one answers to unit i of the other."""
    a, b = side_a[0].facts, side_b[0].facts
    return (a.partitions, a.cold, a.partitions_per_proof, a.workers) == (
        b.partitions,
        b.cold,
        b.partitions_per_proof,
        b.workers,
    )


def _change(i: int, sides: Sides, found: Estimates, reference: Floats, resolve: float, one_sided: bool) -> Change:
    name = sides.names[i]
    level: Level = "walls" if name in WALLS else "log" if name in LOG_MEASURES else "categories"
    verdict: Verdict = "no-evidence"
    if found.significant[i]:
        verdict = "slower" if found.difference[i] > 0 else "faster"
    elif _open(found.low[i], found.high[i], resolve * reference[i], one_sided):
        verdict = "inconclusive"
    whole = reference if level == "categories" else None
    section_b = float(found.level_b[sides.names.index("section")]) if whole is not None else 0.0
    return Change(
        name,
        level,
        float(found.level_a[i]),
        float(found.level_b[i]),
        float(found.low[i]),
        float(found.high[i]),
        float(found.p_value[i]),
        None if found.p_permutation is None else float(found.p_permutation[i]),
        float(found.p_adjusted[i]),
        float(found.detectable[i]),
        float(reference[i]),
        float(found.level_a[i] / reference[i]) if whole is not None and reference[i] > 0 else None,
        float(found.level_b[i] / section_b) if section_b > 0 else None,
        _known(sides.cold_a[i]),
        _known(sides.cold_b[i]),
        bool(found.family[i]),
        verdict,
    )


def _open(low: float, high: float, bound: float, one_sided: bool) -> bool:
    """Whether the interval reaches past what was to be ruled out."""
    return not high < bound or (not one_sided and not low > -bound)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _steady(side: Sequence[Run]) -> float | None:
    """The headline without the cold part: time between completions."""
    means = [float(run.units[:, 0].mean()) for run in side if len(run.units)]
    return float(np.mean(means)) if means else None


def _headline(change: Change, steady_a: float | None, steady_b: float | None, settings: Settings) -> Change:
    """The headline counts only if the steady part moved the same way: a slow start is no slow prover."""
    if change.verdict not in {"faster", "slower"} or steady_a is None or steady_b is None:
        return change
    moved = (steady_b - steady_a) * (1 if change.verdict == "slower" else -1)
    return change if moved >= settings.min_effect * steady_a else replace(change, verdict="no-evidence")


Grounds = Literal["headline", "categories", "nothing"]


def _verdict(headline: Change, rest: Sequence[Change]) -> tuple[Verdict, float | None, Grounds, str]:
    """One verdict for the whole.

    The wall decides where it moved beyond noise. Where it shows nothing, the categories may: their net change counts
    if the sections as a whole moved with it and the wall's own interval leaves room for it.
    """
    if headline.verdict in {"faster", "slower"}:
        return headline.verdict, headline.fraction, "headline", "the whole moved by more than noise explains"
    told = "none" if headline.detectable_fraction is None else f"{headline.detectable_fraction:.1%}"
    moved = [c for c in rest if c.level == "categories" and c.verdict in {"faster", "slower"}]
    section = next((c for c in rest if c.measure == "section"), None)
    if moved and section is not None and section.a_ns > 0 and headline.reference_ns > 0:
        net = sum(c.change_ns for c in moved)
        room = headline.low_ns / headline.reference_ns <= net / section.a_ns <= headline.high_ns / headline.reference_ns
        most = max(abs(c.change_ns) for c in moved)
        if room and abs(net) >= most / 2 and section.change_ns * net >= net * net / 2:
            names = ", ".join(c.measure for c in sorted(moved, key=lambda c: -abs(c.change_ns)))
            verdict: Verdict = "slower" if net > 0 else "faster"
            reason = f"the whole run alone could not show it (below {told}), its parts do: {names}"
            return verdict, net / section.a_ns, "categories", reason
    if headline.verdict == "inconclusive":
        return "inconclusive", None, "nothing", "the interval leaves room for a change that should be ruled out"
    return "no-evidence", None, "nothing", f"a change of {told} or more would have shown"


def _runs_needed(sides: Sides, found: Estimates, wanted: float, settings: Settings) -> int | None:
    """Runs a side that would show a change of ``wanted`` of the headline, each as noisy as those at hand."""
    deviation = float(found.error[0]) / np.sqrt(1 / len(sides.a) + 1 / len(sides.b))
    return runs_for(wanted * float(found.level_a[0]), deviation, int(found.family.sum()), settings)


def _ladder(side_a: Sequence[Measured], side_b: Sequence[Measured]) -> tuple[Pair, ...]:
    names = dict.fromkeys(n for m in (*side_a, *side_b) for n in m.ladder)
    pairs = []
    for name in names:
        a, b = (_mean([m.ladder.get(name) for m in side]) for side in (side_a, side_b))
        if a is not None or b is not None:
            pairs.append(Pair(name, a, b))
    return tuple(pairs)


def _device(side_a: Sequence[Measured], side_b: Sequence[Measured], unit: Unit) -> tuple[Pair, ...]:
    """Device view (and the queue of a log), ns a unit: shown, not tested."""
    names = dict.fromkeys(n for m in (*side_a, *side_b) for n in m.device)

    def mean(side: Sequence[Measured], name: str) -> float | None:
        if not any(m.device for m in side):
            return None
        return _mean([m.device.get(name, 0) / (m.size if unit == "proof" else len(m.cold)) for m in side])

    return tuple(Pair(name, mean(side_a, name), mean(side_b, name)) for name in names)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
