"""Device work to the call that caused it, by (process, correlation id)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nvprof_tools.model.arrays import Bools, Ints

LARGEST = 1 << 40
"""Correlation ids are 32 bits; anything far beyond is damage and joins nothing."""

DENSE_FACTOR = 8
"""Keys that span at most so many times their number are looked up in a table of the whole span, others searched for."""


def _keys(process: npt.NDArray[np.integer], correlation: Ints, given: Bools) -> tuple[Ints, Bools]:
    fine = given & (correlation > 0) & (correlation < LARGEST) & (process >= 0)
    return process.astype(np.int64) * LARGEST + np.where(fine, correlation, 0), fine


class CallIndex:
    """Calls by (process, correlation id). Of several with one key the first row counts.

    :param process: process of each call, in the rows' final order.
    """

    def __init__(self, process: npt.NDArray[np.integer], correlation: Ints, given: Bools) -> None:
        keys, fine = _keys(process, correlation, given)
        rows = np.flatnonzero(fine)
        keys = keys[rows] if len(rows) < len(keys) else keys
        self._base = int(keys.min(initial=LARGEST))
        span = int(keys.max(initial=self._base)) - self._base + 1
        self._dense = len(keys) > 0 and span <= DENSE_FACTOR * len(keys)
        if self._dense:
            self._rows = np.full(span, -1, np.int64)
            self._rows[keys[::-1] - self._base] = rows[::-1]  # of several rows of one key the last given stays
            self.ambiguous = len(keys) - int(np.count_nonzero(self._rows >= 0))
            return
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        self.ambiguous = int(len(keys) - np.count_nonzero(first))
        self._keys, self._rows = keys[first], rows[first]

    def find(self, process: npt.NDArray[np.integer], correlation: Ints, given: Bools) -> tuple[Ints, Bools]:
        """Row of the causing call, and whether there is one."""
        keys, fine = _keys(process, correlation, given)
        if len(self._rows) == 0:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        if self._dense:
            at = keys - self._base
            fine &= (at >= 0) & (at < len(self._rows))
            row = self._rows[np.where(fine, at, 0)]
            found = fine & (row >= 0)
            return np.where(found, row, 0), found
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found = fine & (self._keys[at] == keys)
        return np.where(found, self._rows[at], 0), found
