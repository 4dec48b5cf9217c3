"""What profiling itself costs: plain and profiled runs of one command, in turn."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvprof_tools.attribution.log_summary import summarise
from nvprof_tools.errors import ToolError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources.timeline_log import read_log

FIGURES = ("process_ms", "window_ms", "partition_ms")
_WORDS = {
    "process_ms": "the whole process",
    "window_ms": "the log's first GPU_START to its last GPU_END",
    "partition_ms": "a partition's GPU time, as the log has it",
}


@dataclass(frozen=True)
class Measured:
    """One run. Milliseconds; null: the log does not say."""

    profiled: bool
    process_ms: float | None
    window_ms: float | None
    partition_ms: float | None


@dataclass(frozen=True)
class Effect:
    """One figure of all runs: medians, their difference, and its spread.

    ``spread_ms`` is the larger of the two groups' ranges: a difference below it may be noise.
    """

    figure: str
    plain_ms: float
    profiled_ms: float
    effect_ms: float
    spread_ms: float

    @property
    def resolution_ms(self) -> float:
        """What a figure must exceed to be more than the measurement's own doing."""
        return max(abs(self.effect_ms), self.spread_ms)


def measure(folder: Path, pipeline: Pipeline, wall_ns: int | None, profiled: bool) -> Measured:
    """The figures of the run whose output lies in ``folder``; without a TIMELINE log only the process' length."""
    process = None if wall_ns is None else wall_ns / 1e6
    try:
        summary = summarise(read_log(folder / "app.log", pipeline, DEFAULT_LIMITS), pipeline)
    except ToolError:
        return Measured(profiled, process, None, None)
    total = summary.totals
    sum_ms, count = total.gpu_sum_ms, total.partitions
    window = None if total.wall_ms is None else float(total.wall_ms)
    return Measured(profiled, process, window, None if sum_ms is None or not count else sum_ms / count)


def effects(runs: Sequence[Measured]) -> list[Effect]:
    """One row a figure that every run has."""
    out = []
    for figure in FIGURES:
        groups: dict[bool, list[float]] = {True: [], False: []}
        for run in runs:
            value = getattr(run, figure)
            if value is not None:
                groups[run.profiled].append(value)
        if not groups[True] or not groups[False] or sum(map(len, groups.values())) < len(runs):
            continue
        plain, profiled = statistics.median(groups[False]), statistics.median(groups[True])
        spread = max(max(group) - min(group) for group in groups.values())
        out.append(Effect(figure, plain, profiled, profiled - plain, spread))
    return out


def quality(found: Sequence[Effect], pairs: int, answer: Attribution) -> list[QualityItem]:
    """The effect as an item, and the categories too small to be told from it."""
    items = []
    for effect in found:
        share = effect.effect_ms / effect.plain_ms if effect.plain_ms else 0.0
        sure = abs(effect.effect_ms) > effect.spread_ms
        items.append(
            QualityItem(
                "observer-effect",
                Severity.NOTICE if sure else Severity.INFO,
                pairs,
                f"profiling changed {_WORDS[effect.figure]} by {effect.effect_ms:+,.1f} ms ({share:+.1%}): "
                f"{effect.plain_ms:,.1f} → {effect.profiled_ms:,.1f} ms, medians of {pairs} runs each; runs of one "
                f"kind differ by up to {effect.spread_ms:,.1f} ms"
                + ("" if sure else ", so this is no more than noise"),
                "",
            )
        )
    own = next((effect for effect in found if effect.figure == "partition_ms"), None)
    small = [] if own is None else below(own, answer)
    if own is not None and small:
        items.append(
            QualityItem(
                "below-observer-effect",
                Severity.NOTICE,
                len(small),
                f"smaller than what profiling changes or runs differ by ({own.resolution_ms:,.1f} ms a partition): "
                + ", ".join(small),
                "do not read anything into these categories",
            )
        )
    return items


def below(effect: Effect, answer: Attribution) -> list[str]:
    """Categories whose mean time a partition is below the effect."""
    count = sum(1 for partition in answer.partitions if partition.section is not None)
    if count == 0:
        return []
    return [
        overhead.category for overhead in answer.overheads if 0 < overhead.total_ns / count / 1e6 < effect.resolution_ms
    ]


def document(runs: Sequence[Measured], found: Sequence[Effect]) -> Mapping[str, Any]:
    """For ``observer.json``."""
    return {
        "schema": "nvprof-tools/observer/1",
        "runs": [
            {"profiled": run.profiled, **{figure: _rounded(getattr(run, figure)) for figure in FIGURES}} for run in runs
        ],
        "effects": [
            {
                "figure": effect.figure,
                "plain_ms": _rounded(effect.plain_ms),
                "profiled_ms": _rounded(effect.profiled_ms),
                "effect_ms": _rounded(effect.effect_ms),
                "spread_ms": _rounded(effect.spread_ms),
            }
            for effect in found
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
