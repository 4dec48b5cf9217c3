"""What a comparison of two sides finds: plain data that renderers print. Times are ns; a side may hold several runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nvprof_tools.model.quality import QualityItem

Verdict = Literal["faster", "slower", "no-evidence", "inconclusive"]
Level = Literal["walls", "categories", "log"]
Weight = Literal["refuses", "notes"]
Unit = Literal["proof", "partition"]


@dataclass(frozen=True)
class RunFacts:
    """What one run is, as far as its input tells; null or empty: not known.

    ``label`` names it in the output (``A1``); ``kind`` is ``trace``, ``log`` or ``golden``; ``partitions`` counts the
    whole ones that were compared, cold ones apart. ``setup`` holds versions, clocks and capture options by name.
    """

    label: str
    kind: str
    pipeline: str | None
    proofs: float | None
    partitions: int
    cold: int
    partitions_per_proof: int | None
    workers: int | None
    devices: tuple[str, ...] = ()
    kernels_per_partition: float | None = None
    upload_bytes_per_partition: float | None = None
    measured: frozenset[str] | None = None
    setup: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """One respect in which the sides are not the same set-up. ``refuses``: comparing them means nothing unless asked
    for; ``notes``: it may explain a change."""

    aspect: str
    weight: Weight
    a: str
    b: str
    message: str


@dataclass(frozen=True)
class Change:
    """One measure on both sides, ns a proof (or a partition, as ``Comparison.unit`` says), steady partitions only.

    ``level`` is ``walls`` (the whole, the sections), ``categories`` (parts of the sections) or ``log`` (what only a
    log tells). ``low_ns``/``high_ns`` bound the change with 95 % confidence. ``p_adjusted`` is Holm-corrected over all
    measures; ``p_permutation`` is null where there are too few units for it to speak. ``detectable_ns`` is the smallest
    change these data would have shown four times in five. ``reference_ns`` is what percentages are taken of: the wall
    itself, or the sections' wall of side a for a category. ``cold_a_ns``/``cold_b_ns``: the same of the cold
    partitions, null without any. ``tested`` is false where both sides are too small to matter.
    """

    measure: str
    level: Level
    a_ns: float
    b_ns: float
    low_ns: float
    high_ns: float
    p_value: float
    p_permutation: float | None
    p_adjusted: float
    detectable_ns: float
    reference_ns: float
    share_a: float | None
    share_b: float | None
    cold_a_ns: float | None
    cold_b_ns: float | None
    tested: bool
    verdict: Verdict

    @property
    def change_ns(self) -> float:
        """Side b less side a."""
        return self.b_ns - self.a_ns

    @property
    def fraction(self) -> float | None:
        """The change as a fraction of the reference; null when that is nothing."""
        return self.change_ns / self.reference_ns if self.reference_ns > 0 else None

    @property
    def own_fraction(self) -> float | None:
        """The change as a fraction of the measure's own size on side a; null when that is nothing."""
        return self.change_ns / self.a_ns if self.a_ns > 0 else None

    @property
    def detectable_fraction(self) -> float | None:
        """``detectable_ns`` as a fraction of the reference; null when that is nothing."""
        return self.detectable_ns / self.reference_ns if self.reference_ns > 0 else None


@dataclass(frozen=True)
class Pair:
    """One untested figure on both sides: a rung of the ladder (fractions), or a category of the device view (ns)."""

    name: str
    a: float | None
    b: float | None


@dataclass(frozen=True)
class Comparison:
    """The whole answer.

    ``headline`` is the wall a proof. ``verdict``/``size`` speak of the whole: ``size`` is the change as a fraction of
    side a's headline or, where ``grounds`` is ``categories``, of side a's sections. ``runs_as_units`` says that the
    spread between runs was seen, not assumed. ``runs_needed`` is how many runs a side would show the change asked for.
    ``quality``: what was lost in reading the inputs, each message beginning with the run's label.
    """

    unit: Unit
    sides: tuple[tuple[RunFacts, ...], tuple[RunFacts, ...]]
    differences: tuple[Difference, ...]
    headline: Change
    steady_a_ns: float | None
    steady_b_ns: float | None
    changes: tuple[Change, ...]
    ladder: tuple[Pair, ...]
    device: tuple[Pair, ...]
    verdict: Verdict
    size: float | None
    grounds: Literal["headline", "categories", "nothing"]
    reason: str
    runs_as_units: bool
    assumed_spread: float
    resolve: float
    runs_needed: int | None
    quality: tuple[QualityItem, ...] = ()

    @property
    def moved(self) -> tuple[Change, ...]:
        """Categories and log measures with a verdict of their own, the largest first."""
        told = [c for c in self.changes if c.verdict in {"faster", "slower"} and c.level != "walls"]
        return tuple(sorted(told, key=lambda c: (-abs(c.change_ns), c.measure)))
