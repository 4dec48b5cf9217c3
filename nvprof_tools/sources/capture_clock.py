"""The clock of a capture: all its times are CLOCK_MONOTONIC, which the processes of a machine share.

Snapshots of the clocks at the start, every second and at the end tell when the capture began and ended and where that
lies in the day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nvprof_tools.model.arrays import Bools, Ints

FAR = 1 << 62
LATE_NS = 10_000_000_000
"""Events of a capture that was cut lie at most this far behind its last snapshot."""


@dataclass(frozen=True)
class Snapshots:
    """Instants on both clocks, ns."""

    realtime: Ints
    monotonic: Ints

    def __len__(self) -> int:
        return len(self.monotonic)


def usable(realtime: Ints, monotonic: Ints) -> Snapshots:
    """Those that can be."""
    fine = (realtime > 0) & (realtime < FAR) & (monotonic > 0) & (monotonic < FAR)
    return Snapshots(realtime[fine], monotonic[fine])


def wall_clock(every: Sequence[Snapshots]) -> tuple[int, int] | None:
    """What to add to CLOCK_MONOTONIC for ns since 1970, and by how much that changed meanwhile; null: not known."""
    offsets = np.concatenate([np.empty(0, np.int64), *(s.realtime - s.monotonic for s in every)])
    if not len(offsets):
        return None
    return int(np.sort(offsets)[len(offsets) // 2]), int(offsets.max() - offsets.min())


def since(origin: int, raw: np.ndarray) -> tuple[Ints, Bools]:
    """Times from ``origin`` on, and which were given: 0 means not known. An impossible one becomes FAR.

    :param raw: unsigned 64-bit times of the file.
    """
    given: Bools = raw != 0
    sound = raw < np.uint64(FAR)
    return np.where(sound, np.where(sound, raw, 0).astype(np.int64) - np.int64(origin), FAR), given
