"""Begins and ends of slices in the order a reader with a stack needs them, and slices that do not nest set apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def stack_order(start: Ints, end: Ints) -> tuple[Ints, Bools]:
    """(slice, is it its begin) for each of the 2 n edges, in order.

    :param start, end: ns, each slice longer than zero. At one instant ends come first, the inner before the outer;
        then begins, the longer first.
    """
    n = len(start)
    index = np.concatenate([np.arange(n), np.arange(n)])
    begins = np.concatenate([np.ones(n, np.bool_), np.zeros(n, np.bool_)])
    time = np.concatenate([start, end])
    inner = np.concatenate([-end, -start])
    twin = np.where(begins, index, -index)
    order = np.lexsort((twin, inner, begins, time))
    return index[order], begins[order]


def misnested(start: Ints, end: Ints) -> Bools:
    """True for slices that overlap another without holding it or lying in it: few, but enough that the rest nests."""
    bad = np.zeros(len(start), np.bool_)
    while True:
        keep = np.flatnonzero(~bad)
        wrong = _unmatched(start[keep], end[keep])
        if not wrong.any():
            return bad
        bad[keep[wrong]] = True


def _unmatched(start: Ints, end: Ints) -> Bools:
    """Slices whose begin a stack would pair with another's end."""
    index, begins = stack_order(start, end)
    depth = np.cumsum(np.where(begins, 1, -1)) + np.where(begins, 0, 1)
    order = np.argsort(depth, kind="stable")
    paired = index[order]
    wrong = np.zeros(len(start), np.bool_)
    differs = paired[0::2] != paired[1::2]
    wrong[paired[0::2][differs]] = True
    return wrong
