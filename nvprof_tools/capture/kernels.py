"""The second run: ncu over the kernels that took the time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nvprof_tools.capture.tools import Tool, ask
from nvprof_tools.errors import ToolError
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import ints, names

SECTIONS = ("SpeedOfLight", "Occupancy", "LaunchStats", "SchedulerStats", "WarpStateStats", "MemoryWorkloadAnalysis")
_FUNCTION = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Wish:
    """How many kernels, how many launches of each, and whether ncu may fix the clocks (``base``) or not (``none``)."""

    kernels: int = 10
    launches: int = 3
    clocks: str = "none"
    extra: tuple[str, ...] = ()


def dearest(trace: Trace, count: int) -> list[str]:
    """Functions of the kernels with the most time, dearest first; names no filter can hold are left out."""
    table = trace["kernels"]
    if len(table) == 0:
        return []
    code, words = names(table, "name")
    length = ints(table, "end_ns") - ints(table, "start_ns")
    known = code >= 0
    sums = np.zeros(len(words), np.int64)
    np.add.at(sums, code[known], length[known])
    out: list[str] = []
    for row in np.argsort(-sums, kind="stable").tolist():
        name = words[row]
        if sums[row] > 0 and _FUNCTION.fullmatch(name) and name not in out:
            out.append(name)
    return out[:count]


def options(wish: Wish, kernels: Sequence[str], ncu: Tool, out: str) -> list[str]:
    """The options of ncu for a few launches of each kernel. Where ncu cannot count by launch shape, one count goes over
    all of them."""
    known = ask([str(ncu.path), "--help"]) or ""
    chosen = [
        "--target-processes=all",
        f"--clock-control={wish.clocks}",
        "--kernel-name-base=function",
        f"--kernel-name=regex:^({'|'.join(kernels)})$",
        "--force-overwrite",
        f"--export={out}",
    ]
    chosen += [f"--section={section}" for section in SECTIONS]
    if "per-launch-config" in known:
        chosen += ["--filter-mode=per-launch-config", f"--launch-count={wish.launches}"]
    else:
        chosen.append(f"--launch-count={wish.launches * len(kernels)}")
    return [*chosen, *wish.extra]


def page_command(ncu: Tool, report: str) -> list[str]:
    """The report as a page that needs no library of the vendor's to read."""
    return [str(ncu.path), "--import", report, "--page", "raw", "--csv", "--print-units", "base"]


def explain(said: str, code: int) -> ToolError:
    """Why there are no counters."""
    if "ERR_NVGPUCTRPERM" in said:
        return ToolError(
            "counters-not-permitted",
            "the driver lets only administrators read GPU counters",
            "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        )
    if "No kernels were profiled" in said:
        return ToolError(
            "counters-empty", "ncu met none of the kernels of the first run", "is the second run the same?"
        )
    lines = [line.strip(" =") for line in said.splitlines() if "==ERROR==" in line]
    why = lines[0].removeprefix("ERROR== ")[:200] if lines else "it said nothing"
    return ToolError("counters-failed", f"ncu gave no report (exit code {code}): {why}", "see counters/profiler.log")
