"""What bounds a kernel or a stage, by its counters: the rule, and the metrics it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nvprof_tools.model.attribution import Bound

BUSY_PCT: Final = 60.0
"""A unit this busy, in percent of its peak, is what a kernel waits for."""

SM: Final = "sm"
MEMORY: Final = "memory"
DRAM: Final = "dram"
OCCUPANCY: Final = "occupancy"
THEORETICAL: Final = "theoretical"
ISSUE: Final = "issue"
ISSUE_ELAPSED: Final = "issue_elapsed"
METRICS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        SM: ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
        MEMORY: (
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        DRAM: (
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        OCCUPANCY: ("sm__warps_active.avg.pct_of_peak_sustained_active",),
        THEORETICAL: ("sm__maximum_warps_per_active_cycle_pct",),
        ISSUE: (
            "smsp__issue_active.avg.pct_of_peak_sustained_active",
            "sm__inst_issued.avg.pct_of_peak_sustained_active",
        ),
        ISSUE_ELAPSED: (
            "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
            "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
        ),
    }
)
"""What a report is read for. Some metrics mean the same in different releases: the first that a launch has counts.

Occupancy and ``issue`` are means over an SM's active cycles, the others over the whole kernel on the whole device: only
those may be multiplied with kernel time."""

STALL_PREFIX: Final = "smsp__average_warps_issue_stalled_"
STALL_SUFFIX: Final = "_per_issue_active.ratio"
NOT_A_STALL: Final = "selected"
"""The share of warps that do issue: part of the whole, never shown as a reason."""


def bound(sm_pct: float | None, memory_pct: float | None, dram_pct: float | None) -> Bound | None:
    """The roofline rule, on shares of peak over the whole kernel.

    The busier of the SM and the memory system names the bound if it reaches ``BUSY_PCT``; a tie counts as compute. If
    neither does, warps wait for something that keeps no unit busy: latency. Without either figure nothing is named.
    """
    memory = _largest(memory_pct, dram_pct)
    if sm_pct is None or memory is None or math.isnan(sm_pct):
        return None
    if max(sm_pct, memory) < BUSY_PCT:
        return "latency"
    return "compute" if sm_pct >= memory else "memory"


def _largest(*values: float | None) -> float | None:
    known = [v for v in values if v is not None and not math.isnan(v)]
    return max(known) if known else None
