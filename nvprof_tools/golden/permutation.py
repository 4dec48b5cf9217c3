"""Seeded permutation tests, vectorised over relabellings and over measures at once.

They ask whether two sets of values differ by more than a relabelling of the same values would, and assume no
distribution. The statistic is studentized, so unequal spreads on the two sides do not raise false alarms. Where there
are few enough relabellings every one is tried and the answer is exact; else ``draws`` of them are drawn from ``seed``.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TIE = 1e-9
"""Slack, of values of about one, under which two statistics are equal: rounding never makes the observed one unique."""


def block_means(units: Floats, length: int) -> Floats:
    """Means of consecutive blocks of ``length`` rows; a shorter rest joins the last block.

    Neighbouring partitions of one run resemble each other; blocks of them are nearer to exchangeable than they are.
    """
    blocks = max(1, len(units) // length)
    starts = np.arange(blocks) * length
    sizes = np.diff(np.append(starts, len(units)))
    return np.asarray(np.add.reduceat(units, starts, axis=0) / sizes[:, None])


def block_length(count: int, most_blocks: int = 400) -> int:
    """Rows a block, for ``count`` rows: one while there are few, else the cube root, and never over ``most_blocks``."""
    root = round(count ** (1 / 3)) if count >= 64 else 1
    return max(root, -(-count // most_blocks), 1)


def smallest_p(count_a: int, count_b: int, draws: int, paired: bool) -> float:
    """The smallest p-value the test can give at all with so many units."""
    total = 2**count_a if paired else comb(count_a + count_b, count_a)
    return 2 / total if total <= draws else 1 / (draws + 1)


def two_sample(a: Floats, b: Floats, draws: int, seed: int) -> Floats:
    """Two-sided p-values that the columns of ``a`` (n, m) and ``b`` (k, m) have the same mean; shape (m,)."""
    pooled = np.concatenate([a, b])
    chosen = _subsets(len(a), len(b), draws, seed)
    return _p_values(_welch(chosen, _standard(pooled)))


def signs(differences: Floats, draws: int, seed: int) -> Floats:
    """Two-sided p-values that the columns of paired ``differences`` (n, m) centre on zero; shape (m,)."""
    count = len(differences)
    if 2**count <= draws:
        bits = np.arange(2**count, dtype=np.int64)[:, None] >> np.arange(count)
        flips = 1.0 - 2.0 * (bits & 1)
    else:
        drawn = np.random.default_rng(seed).integers(0, 2, (draws, count))
        flips = np.concatenate([np.ones((1, count)), 1.0 - 2.0 * drawn])
    scale = np.abs(differences).max(axis=0)
    scaled = differences / np.where(scale > 0, scale, 1.0)
    means = flips @ scaled / count
    variance = np.maximum((scaled**2).mean(axis=0) - means**2, 0.0)
    return _p_values(_ratio(np.abs(means), variance))


def _subsets(count_a: int, count_b: int, draws: int, seed: int) -> npt.NDArray[np.bool_]:
    """Rows of flags, true where a unit is put on side a; the first row is the labelling observed."""
    total = count_a + count_b
    if comb(total, count_a) <= draws:
        rows = np.fromiter(
            (i for chosen in combinations(range(total), count_a) for i in chosen),
            np.int64,
            comb(total, count_a) * count_a,
        ).reshape(-1, count_a)
    else:
        random = np.random.default_rng(seed).random((draws, total), dtype=np.float32)
        rows = np.argpartition(random, count_a - 1, axis=1)[:, :count_a]
        rows = np.concatenate([np.arange(count_a)[None, :], rows])
    flags = np.zeros((len(rows), total), np.bool_)
    np.put_along_axis(flags, rows, True, axis=1)
    return flags


def _standard(pooled: Floats) -> Floats:
    """Columns centred and scaled, so that sums of squares lose no digits."""
    centred = pooled - pooled.mean(axis=0)
    scale = np.abs(centred).max(axis=0)
    return np.asarray(centred / np.where(scale > 0, scale, 1.0))


def _welch(chosen: npt.NDArray[np.bool_], pooled: Floats) -> Floats:
    """|Welch's t| of every labelling, shape (labellings, m)."""
    inside = chosen.astype(np.float64)
    count_a = inside.sum(axis=1, keepdims=True)
    count_b = len(pooled) - count_a
    sum_a, square_a = inside @ pooled, inside @ pooled**2
    sum_b, square_b = pooled.sum(axis=0) - sum_a, (pooled**2).sum(axis=0) - square_a
    mean_a, mean_b = sum_a / count_a, sum_b / count_b
    spread_a = np.maximum(square_a / count_a - mean_a**2, 0.0) / np.maximum(count_a - 1, 1)
    spread_b = np.maximum(square_b / count_b - mean_b**2, 0.0) / np.maximum(count_b - 1, 1)
    return _ratio(np.abs(mean_a - mean_b), spread_a + spread_b)


def _ratio(size: Floats, variance: Floats) -> Floats:
    """``size / sqrt(variance)``; without any spread a size of zero is nothing and any other is without bound."""
    flat = variance <= _TIE**2
    unbounded = np.where(size > _TIE, np.inf, 0.0)
    return np.where(flat, unbounded, size / np.sqrt(np.where(flat, 1.0, variance)))


def _p_values(statistics: Floats) -> Floats:
    """Share of labellings at least as far out as the observed one, which is the first row and counts itself."""
    observed = statistics[0]
    bar = np.where(np.isinf(observed), np.inf, observed * (1 - _TIE) - _TIE)
    return np.asarray((statistics >= bar).mean(axis=0))
