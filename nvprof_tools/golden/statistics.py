"""Is a difference between two sides more than noise? Estimates, intervals, corrected p-values, detectable changes.

The noise of a run's mean has two parts. *Within* the run it is read off the partitions, inflated where neighbours
resemble each other. *Between* runs it is read off the runs where a side has several; with one run a side nothing in
the data shows it, and the relative spread stated in :class:`Settings` stands in, worth ``assumed_df`` degrees of
freedom. A difference counts when it passes three gates: its p-value, Holm-corrected over the measures that could have
shown one; the smallest effect worth naming; and, where there are enough units for it to speak, a permutation test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.golden import permutation

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


FEW = 10
"""With fewer units on a side both share one estimate of their variance."""


@dataclass(frozen=True)
class Settings:
    """What counts as evidence.

    :param alpha: chance of any false alarm over all measures.
    :param min_effect: smallest change worth naming, as a fraction of the measure's reference.
    :param run_spread: relative standard deviation between repeats of one configuration, for whole walls.
    :param category_spread: the same for single categories.
    :param assumed_df: degrees of freedom those two stand for.
    :param power: chance with which the detectable change would be found.
    """

    alpha: float = 0.05
    min_effect: float = 0.02
    run_spread: float = 0.025
    category_spread: float = 0.05
    assumed_df: float = 8.0
    power: float = 0.8
    draws: int = 9_999
    seed: int = 0


@dataclass(frozen=True)
class Run:
    """One run: ``units`` (n, m) are its steady partitions in order; ``levels`` (m,) the figures that are compared,
    which is their mean unless the caller knows better (a wall a proof that includes the start)."""

    units: Floats
    levels: Floats

    @classmethod
    def of(cls, units: Floats) -> Run:
        """A run whose levels are the means of its units."""
        return cls(units, units.mean(axis=0))


@dataclass(frozen=True)
class Estimates:
    """One value a measure. ``p_permutation`` is null where too few units leave the permutation test mute."""

    level_a: Floats
    level_b: Floats
    error: Floats
    freedom: Floats
    low: Floats
    high: Floats
    p_value: Floats
    p_permutation: Floats | None
    p_adjusted: Floats
    family: Bools
    detectable: Floats
    significant: Bools

    @property
    def difference(self) -> Floats:
        """Side b less side a."""
        return self.level_b - self.level_a


def estimate(
    side_a: Sequence[Run], side_b: Sequence[Run], reference: Floats, spread: Floats, settings: Settings, *, pair: bool
) -> Estimates:
    """Compare two sides measure by measure.

    :param reference: (m,) what the minimum effect is a fraction of, in the measure's unit.
    :param spread: (m,) assumed relative spread between runs.
    :param pair: the runs have the same structure, so unit i of one answers to unit i of the other.
    """
    level_a, level_b = _mean_level(side_a), _mean_level(side_b)
    difference = level_b - level_a
    floor = settings.min_effect * reference
    family = np.maximum(level_a, level_b) >= floor
    tests = max(int(family.sum()), 1)
    if len(side_a) == len(side_b) == 1:
        paired = pair and len(side_a[0].units) == len(side_b[0].units)
        error, freedom = _single_error(side_a[0], side_b[0], spread, settings, paired)
        p_permutation = _single_permutation(side_a[0], side_b[0], settings, paired, tests)
    else:
        error, freedom = _several_error(side_a, side_b, spread, settings)
        p_permutation = _several_permutation(side_a, side_b, settings, tests)
    p_value = _two_sided(difference, error, freedom)
    worst = p_value if p_permutation is None else np.maximum(p_value, p_permutation)
    p_adjusted = np.where(family, holm(np.where(family, worst, np.inf)), 1.0)
    half = _quantile(freedom, 1 - settings.alpha / 2) * error
    margin = _quantile(freedom, settings.power) * error  # what chance may take away from a true change
    threshold = _quantile(freedom, 1 - settings.alpha / 2 / tests) * error
    return Estimates(
        level_a,
        level_b,
        error,
        freedom,
        difference - half,
        difference + half,
        p_value,
        p_permutation,
        p_adjusted,
        family,
        np.maximum(threshold, floor) + margin,
        family & (p_adjusted <= settings.alpha) & (np.abs(difference) >= floor),
    )


def holm(p_values: Floats) -> Floats:
    """Step-down corrected p-values, at most 1; infinite ones are no part of the family."""
    order = np.argsort(p_values, kind="stable")
    count = int(np.isfinite(p_values).sum())
    factors = np.maximum(count - np.arange(len(p_values)), 1)
    stepped = np.maximum.accumulate(np.minimum(p_values[order] * factors, 1.0))
    corrected = np.empty_like(stepped)
    corrected[order] = stepped
    return corrected


def inflation(units: Floats) -> Floats:
    """(m,) factor by which resemblance of neighbours raises the variance of the mean of ``units``; never below 1.

    The larger of two estimates: Bartlett-weighted autocorrelations up to a lag that grows with the length (Newey and
    West), which short series understate, and that of a first-order autoregression, which few partitions suffice for.
    """
    count = len(units)
    centred = units - units.mean(axis=0)
    power = (centred**2).sum(axis=0)
    safe = np.where(power > 0, power, 1.0)
    lags = min(int(4 * (count / 100) ** (2 / 9)), count - 1)
    windowed = np.ones(units.shape[1])
    regressed = np.ones(units.shape[1])
    for lag in range(1, lags + 1):
        correlation = (centred[lag:] * centred[:-lag]).sum(axis=0) / safe
        windowed += 2 * (1 - lag / (lags + 1)) * correlation
        if lag == 1:
            first = np.clip(correlation, 0.0, 0.9)
            regressed = (1 + first) / (1 - first)
    return np.asarray(np.maximum(windowed, regressed))


def _mean_level(side: Sequence[Run]) -> Floats:
    return np.asarray(np.mean([run.levels for run in side], axis=0))


def _mean_noise(units: Floats) -> tuple[Floats, Floats]:
    """Variance of the mean of serially correlated rows, and its degrees of freedom: those of as many independent rows
    as they are worth. Infinite for a single row, which shows no spread."""
    if len(units) < 2:
        return np.full(units.shape[1], np.inf), np.ones(units.shape[1])
    factor = inflation(units)
    variance = np.asarray(units.var(axis=0, ddof=1) * factor / len(units))
    return variance, np.maximum(len(units) / factor - 1, 1.0)


def _pooled_noise(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Variance of the difference of two means and its degrees of freedom, from a common variance: a handful of units
    cannot tell two apart."""
    count = len(a) + len(b)
    if count < 3:
        return np.full(a.shape[1], np.inf), np.ones(a.shape[1])
    squares = sum(((x - x.mean(axis=0)) ** 2).sum(axis=0) for x in (a, b))
    factor = np.asarray(sum(len(x) * inflation(x) for x in (a, b)) / count)
    variance = np.asarray(squares / (count - 2) * (1 / len(a) + 1 / len(b)) * factor)
    return variance, np.maximum(count / factor - 2, 1.0)


def _single_error(a: Run, b: Run, spread: Floats, settings: Settings, paired: bool) -> tuple[Floats, Floats]:
    """Standard error and degrees of freedom with one run a side (Welch and Satterthwaite)."""
    between = spread**2 * (a.levels**2 + b.levels**2)
    if paired:
        within = [_mean_noise(b.units - a.units)]
    elif min(len(a.units), len(b.units)) < FEW:
        within = [_pooled_noise(a.units, b.units)]
    else:
        within = [_mean_noise(run.units) for run in (a, b)]
    parts = [(between, np.full_like(between, settings.assumed_df)), *within]
    total = np.asarray(sum(variance for variance, _ in parts))
    weight = np.asarray(sum(variance**2 / freedom for variance, freedom in parts))
    known = np.isfinite(total) & (weight > 0)
    freedom = np.where(known, np.where(known, total, 1.0) ** 2 / np.where(known, weight, 1.0), 1.0)
    return np.sqrt(total), freedom


def _several_error(
    side_a: Sequence[Run], side_b: Sequence[Run], spread: Floats, settings: Settings
) -> tuple[Floats, Floats]:
    """Standard error and degrees of freedom with runs as units.

    The spread seen between so few runs is itself uncertain: the assumed one steadies it (a weighted mean by degrees
    of freedom) while the runs agree with it. Runs that spread further speak for themselves alone.
    """
    runs = (*side_a, *side_b)
    within = [_mean_noise(run.units)[0] for run in runs]
    assumed = np.asarray(np.mean([spread**2 * run.levels**2 + w for run, w in zip(runs, within, strict=True)], axis=0))
    levels = [np.array([run.levels for run in side]) for side in (side_a, side_b)]
    observed_df = float(len(runs) - 2)
    observed = np.asarray(sum(((x - x.mean(axis=0)) ** 2).sum(axis=0) for x in levels)) / observed_df
    steadied = (settings.assumed_df * assumed + observed_df * observed) / (settings.assumed_df + observed_df)
    wide = (observed > assumed) | ~np.isfinite(assumed) | (spread <= 0)
    variance = np.where(wide, observed, steadied)
    freedom = np.where(wide, observed_df, settings.assumed_df + observed_df)
    return np.sqrt(variance * (1 / len(side_a) + 1 / len(side_b))), freedom


def _single_permutation(a: Run, b: Run, settings: Settings, paired: bool, tests: int) -> Floats | None:
    length = permutation.block_length(min(len(a.units), len(b.units)))
    if paired:
        blocks = permutation.block_means(b.units - a.units, length)
        if permutation.smallest_p(len(blocks), len(blocks), settings.draws, True) > settings.alpha / tests:
            return None
        return permutation.signs(blocks, settings.draws, settings.seed)
    blocks_a, blocks_b = (permutation.block_means(run.units, length) for run in (a, b))
    return _permuted(blocks_a, blocks_b, settings, tests)


def _several_permutation(side_a: Sequence[Run], side_b: Sequence[Run], settings: Settings, tests: int) -> Floats | None:
    levels_a, levels_b = (np.array([run.levels for run in side]) for side in (side_a, side_b))
    return _permuted(levels_a, levels_b, settings, tests)


def _permuted(units_a: Floats, units_b: Floats, settings: Settings, tests: int) -> Floats | None:
    fewest = permutation.smallest_p(len(units_a), len(units_b), settings.draws, False)
    if min(len(units_a), len(units_b)) < 2 or fewest > settings.alpha / tests:
        return None
    return permutation.two_sample(units_a, units_b, settings.draws, settings.seed)


def _two_sided(difference: Floats, error: Floats, freedom: Floats) -> Floats:
    from scipy.special import stdtr

    ratio = np.where(error > 0, np.abs(difference) / np.where(error > 0, error, 1.0), np.inf)
    ratio = np.where((error <= 0) & (difference == 0), 0.0, ratio)
    return np.asarray(2 * stdtr(freedom, -ratio))


def _quantile(freedom: Floats, probability: float) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, probability))


def runs_for(wanted: float, deviation: float, tests: int, settings: Settings, most: int = 99) -> int | None:
    """The fewest runs a side that would show a change of ``wanted`` where runs deviate by ``deviation``; null: over
    ``most``."""
    count = np.arange(2, most + 1, dtype=np.float64)
    freedom = 2.0 * count - 2
    reach = _quantile(freedom, 1 - settings.alpha / 2 / max(tests, 1)) + _quantile(freedom, settings.power)
    enough = np.flatnonzero(reach * deviation * np.sqrt(2 / count) <= wanted)
    return int(count[enough[0]]) if len(enough) else None
