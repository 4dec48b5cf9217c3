"""Budgets: limits that a run must keep, one line each, checked against an attribution.

``budget.toml``::

    [budget]
    host_register = "< 5 %"          # share of the sections
    "device.cpu" = "< 20 %"          # share of the device's window
    mutex_wait = "< 80 ms"           # a partition, mean
    sm_active = "> 50 %"             # a rung of the ladder
    queue = "< 200 ms"               # a partition, mean; so are synthesis, gpu and slack
    wall = "< 1.2 s"                 # the window, a proof
    peak_memory = "< 20 GiB"
    driver_lock = "< 2 %"            # all waits on locks in the driver, of the sections
    unattributed = "= 0 ms"

A figure that was not measured keeps no budget: the line fails and says so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nvprof_tools.attribution.categories import CATEGORIES
from nvprof_tools.errors import UsageError
from nvprof_tools.model.attribution import Attribution

FILE: Final = "budget.toml"
MOST_BYTES: Final = 256 * 1024

Kind = Literal["share", "time", "bytes"]

_LIMIT: Final = re.compile(r"\s*(<=|>=|<|>|=)\s*([0-9]+(?:\.[0-9]+)?)\s*(%|ns|us|ms|s|B|KiB|MiB|GiB)?\s*")
_UNITS: Final[Mapping[str, tuple[Kind, float]]] = {
    "%": ("share", 0.01),
    "ns": ("time", 1.0),
    "us": ("time", 1e3),
    "ms": ("time", 1e6),
    "s": ("time", 1e9),
    "B": ("bytes", 1.0),
    "KiB": ("bytes", 1024.0),
    "MiB": ("bytes", 1024.0**2),
    "GiB": ("bytes", 1024.0**3),
}
_RUNGS: Final = (
    "timeline_sum", "timeline_bracket", "mutex_held", "nvml_utilisation", "device_busy", "gr_active", "kernel_busy",
    "sm_active", "warps_in_flight", "sm_issue", "dram_read", "dram_write", "pcie_rx", "pcie_tx",
)  # fmt: skip
_JOB_FIGURES: Final = {"queue": "queue_ns", "synthesis": "synthesis_ns", "gpu": "gpu_ns", "slack": "slack_ns"}
"""Figures of the jobs; a partition's is their sum over all jobs by all partitions."""


@dataclass(frozen=True)
class Limit:
    """One line of a budget: ``subject`` ``sign`` ``bound`` (a fraction, ns, or bytes as ``kind`` says)."""

    subject: str
    sign: str
    bound: float
    kind: Kind
    written: str

    def kept(self, value: float) -> bool:
        """Whether a value keeps it."""
        return {
            "<": value < self.bound,
            "<=": value <= self.bound,
            ">": value > self.bound,
            ">=": value >= self.bound,
            "=": value == self.bound,
        }[self.sign]


@dataclass(frozen=True)
class BudgetLine:
    """One limit, checked. ``actual`` is null when the figure was not measured, which keeps nothing."""

    limit: Limit
    actual: float | None

    @property
    def kept(self) -> bool:
        """Whether the limit holds."""
        return self.actual is not None and self.limit.kept(self.actual)

    @property
    def message(self) -> str:
        """``budget of host_register broken: 7.1 % of the sections, asked for < 5 %``."""
        word = "kept" if self.kept else "broken"
        shown = "not measured" if self.actual is None else _shown(self.actual, self.limit.kind) + _of(self.limit)
        return f"budget of {self.limit.subject} {word}: {shown}, asked for {self.limit.written}"


def check_budget(found: Attribution, path: Path) -> list[BudgetLine]:
    """Every line of a budget file, checked, in the order of the file.

    :raises UsageError: ``budget-unreadable``, ``budget-invalid``.
    """
    return [BudgetLine(limit, figure(found, limit)) for limit in read_budget(path)]


def read_budget(path: Path) -> list[Limit]:
    """The limits of a budget file.

    :raises UsageError: ``budget-unreadable``, ``budget-invalid``.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        data = tomllib.loads(raw.decode()) if len(raw) <= MOST_BYTES else {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            "budget-unreadable", f"the budget {path.name!r} cannot be read", "give a TOML file with a [budget] table"
        ) from error
    table = data.get("budget")
    if not isinstance(table, dict) or not table or set(data) != {"budget"}:
        raise _invalid(f"{path.name!r} has no [budget] table, or more than that")
    return [limit_of(subject, value) for subject, value in table.items()]


def limit_of(subject: str, value: object) -> Limit:
    """One line of a budget.

    :raises UsageError: ``budget-invalid``.
    """
    match = _LIMIT.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[3] is None:
        raise _invalid(f"the limit of {subject!r} cannot be read")
    kind, factor = _UNITS[match[3]]
    if kind not in _kinds(subject):
        raise _invalid(f"{subject!r} is not measured in {match[3]!r}")
    return Limit(subject, match[1], float(match[2]) * factor, kind, str(value).strip())


def _kinds(subject: str) -> tuple[Kind, ...]:
    """The kinds of limit that a subject may have.

    :raises UsageError: ``budget-invalid``: there is no such subject.
    """
    name = subject.removeprefix("device.")
    if name in CATEGORIES or subject == "driver_lock":
        return ("share", "time")
    if subject in _RUNGS:
        return ("share",)
    if subject in _JOB_FIGURES or subject == "wall":
        return ("time",)
    if subject == "peak_memory":
        return ("bytes",)
    raise _invalid(f"{subject!r} is no category, rung or figure")


def figure(a: Attribution, limit: Limit) -> float | None:
    """The figure a limit speaks of; null when it was not measured."""
    subject = limit.subject
    if subject in _RUNGS:
        known = [r.fraction for r in a.ladder if r.rung == subject and r.fraction is not None]
        return sum(known) / len(known) if known else None
    if subject in _JOB_FIGURES:
        sums = [(getattr(j, _JOB_FIGURES[subject]), j.partitions) for j in a.jobs]
        partitions = sum(n for ns, n in sums if ns is not None)
        return sum(ns for ns, _ in sums if ns is not None) / partitions if partitions else None
    if subject == "wall":
        proofs = len([j for j in a.jobs if j.job is not None])
        return a.window.wall_ns / proofs if proofs else None
    if subject == "peak_memory":
        peaks = [m.peak_bytes for m in a.memory if m.peak_bytes is not None]
        return float(max(peaks)) if peaks else None
    if subject.startswith("device."):
        return _of_devices(a, subject.removeprefix("device."), limit.kind)
    return _of_sections(a, subject, limit.kind)


def _of_devices(a: Attribution, category: str, kind: Kind) -> float | None:
    wall = sum(v.wall_ns for v in a.devices)
    total = sum(v.categories.get(category, 0) for v in a.devices)
    if not a.devices or wall == 0:
        return None
    return total / wall if kind == "share" else float(total)


def _of_sections(a: Attribution, subject: str, kind: Kind) -> float | None:
    inside = [p for p in a.partitions if p.wall_ns is not None]
    wall = sum(p.wall_ns or 0 for p in inside)
    if not wall:
        return None
    if subject == "driver_lock":
        known = [p.driver_locks for p in inside if p.driver_locks is not None]
        if not known:
            return None
        total = sum(sum(locks.values()) for locks in known)
    else:
        total = sum(p.categories.get(subject, 0) for p in inside)
    return total / wall if kind == "share" else total / len(inside)


def _shown(value: float, kind: Kind) -> str:
    if kind == "share":
        return f"{value * 100:.2f} %"
    units = [(name, factor) for name, (k, factor) in _UNITS.items() if k == kind]
    name, factor = next(((n, f) for n, f in reversed(units) if value >= f), units[0])
    return f"{value / factor:.4g} {name}"


def _of(limit: Limit) -> str:
    """What a figure is of or for."""
    if limit.subject.startswith("device."):
        return " of the devices' window" if limit.kind == "share" else " in all"
    if limit.subject in CATEGORIES or limit.subject == "driver_lock":
        return " of the sections" if limit.kind == "share" else " a partition"
    return {"wall": " a proof", **dict.fromkeys(_JOB_FIGURES, " a partition")}.get(limit.subject, "")


def _invalid(what: str) -> UsageError:
    return UsageError(
        "budget-invalid",
        f"the budget is not valid: {what}",
        'write lines such as host_register = "< 5 %" (docs/goldens.md)',
    )
