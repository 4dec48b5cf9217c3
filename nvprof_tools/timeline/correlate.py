"""Device work to the call that caused it, by (process, correlation id)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nvprof_tools.model.arrays import Bools, Ints

LARGEST = 1 << 40
"""Correlation ids are 32 bits; anything far beyond is damage and joins nothing."""

DENSE_FACTOR = 8


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
        keys = keys[rows]
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        self.ambiguous = int(len(keys) - np.count_nonzero(first))
        self._keys, self._rows = keys[first], rows[first]

    def find(self, process: npt.NDArray[np.integer], correlation: Ints, given: Bools) -> tuple[Ints, Bools]:
        """Row of the causing call, and whether there is one."""
        keys, fine = _keys(process, correlation, given)
        if len(self._keys) == 0:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found = fine & (self._keys[at] == keys)
        return np.where(found, self._rows[at], 0), found
