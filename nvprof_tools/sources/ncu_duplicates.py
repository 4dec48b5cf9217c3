"""Finds inputs that hold the same launches: a printed page beside the report it was printed from, raw beside details.

Two runs of one program launch the same kernels, so equal names and shapes prove nothing; equal cycle counts of every
launch do, for no two runs take the same cycles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nvprof_tools.model.kernel_names import base_name
from nvprof_tools.sources.ncu_rows import Launch, Rows

_CYCLES = ("gpc__cycles_elapsed.max", "sm__cycles_elapsed.max")
_DURATION = "gpu__time_duration.sum"
_PRINTED = 0.006
"""Half a unit of the last of three printed digits, as a share: "1.02 us"."""


def repeats(reports: Sequence[Rows], ranks: Sequence[int]) -> frozenset[int]:
    """Numbers of reports that another makes superfluous; of two alike the one of lower rank stays, then the first."""
    groups: dict[tuple[tuple[object, ...], ...], list[int]] = {}
    for i, rows in enumerate(reports):
        if rows.launches:
            groups.setdefault(tuple(_identity(launch) for launch in rows.launches), []).append(i)
    dropped: set[int] = set()
    for members in groups.values():
        kept: list[int] = []
        for i in sorted(members, key=lambda m: (ranks[m], m)):
            if any(_same(reports[i], reports[k]) for k in kept):
                dropped.add(i)
            else:
                kept.append(i)
    return frozenset(dropped)


def _identity(launch: Launch) -> tuple[object, ...]:
    name = launch.kernel or (base_name(launch.signature) if launch.signature else launch.mangled)
    return launch.launch_index, name, launch.grid, launch.block


def _same(one: Rows, other: Rows) -> bool:
    for name in _CYCLES:
        a, b = _metric(one, name), _metric(other, name)
        if a is not None and b is not None:
            return bool(np.all(np.abs(a - b) <= 0.5))
    a, b = _metric(one, _DURATION), _metric(other, _DURATION)
    if a is None or b is None:
        return False
    return bool(np.all(np.abs(a - b) <= _PRINTED * np.maximum(np.abs(a), np.abs(b))))


def _metric(rows: Rows, name: str) -> npt.NDArray[np.float64] | None:
    """A metric of every launch; None where one launch lacks it."""
    code = rows.metrics.codes.get(name)
    if code is None:
        return None
    out = np.full(len(rows.launches), np.nan)
    for chunk in rows.chunks:
        mine = (chunk.metric == code) & np.isfinite(chunk.value)
        out[chunk.launch[mine]] = chunk.value[mine]
    return None if np.isnan(out).any() else out
