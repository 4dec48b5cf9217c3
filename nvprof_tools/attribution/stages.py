"""Which stage of the pipeline each kernel belongs to, by the pipeline file's rules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nvprof_tools.model import arrays
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import flags, ints, names
from nvprof_tools.timeline.ids import numbered
from nvprof_tools.timeline.intervals import Index, Ints

Flags = npt.NDArray[np.bool_]


def classify_kernels(trace: Trace, pipeline: Pipeline, section: Ints) -> tuple[Ints, list[str]]:
    """``(code, stages)``: each kernel's row of ``stages``, −1 where no rule holds.

    Rules are tried once a distinct (name, signature, launch kind); only rules of order look at launches: those of one
    section, or of one thread for a kernel that no ``section`` (−1) owns, in the order they were made.
    """
    table = trace["kernels"]
    stages = list(dict.fromkeys(rule.stage for rule in pipeline.stages))
    if len(table) == 0:
        return np.empty(0, np.int64), stages
    name, words = names(table, "name")
    signature, signatures = names(table, "signature")
    known = arrays.validity(table.column("cooperative"))
    launch = np.where(known, flags(table, "cooperative").astype(np.int64), -1)
    kind, kinds = numbered((name, len(words)), (signature, len(signatures)), (launch, 2))
    inverse = kind.astype(np.intp)
    fits = np.zeros((len(pipeline.stages), len(kinds)), bool)
    for column, (n, s, c) in enumerate(kinds):  # one step a distinct kernel, not a launch
        for row, rule in enumerate(pipeline.stages):
            fits[row, column] = rule.matches(words[n], signatures[s] if s >= 0 else None, None if c < 0 else bool(c))
    code = np.full(len(table), -1, np.int64)
    undecided = np.ones(len(table), bool)
    order: tuple[Ints, Ints] | None = None
    for row, rule in enumerate(pipeline.stages):
        if not fits[row].any():
            continue
        hit = undecided & fits[row][inverse]
        other = rule.before or rule.after
        if other is not None:
            group, at = order = order or _order(trace, section)
            pivot = _first_launch(pipeline, other, fits, inverse, group, at)
            hit &= (pivot >= 0) & ((at < pivot) if rule.before else (at > pivot))
        code[hit] = stages.index(rule.stage)
        undecided &= ~hit
    return code, stages


def _order(trace: Trace, section: Ints) -> tuple[Ints, Ints]:
    """``(group, time)`` of each kernel: launches of one group have an order; −1: of none."""
    thread, at = _launches(trace)
    group = np.where(section >= 0, section, thread + (int(section.max(initial=-1)) + 1))
    return np.where((section < 0) & (thread < 0), -1, group), at


def _launches(trace: Trace) -> tuple[Ints, Ints]:
    """Launching thread and time of each kernel; an unlaunched one is alone on a thread of its own, −1."""
    call = ints(trace["kernels"], "api_call")
    calls = trace["api_calls"]
    known = call >= 0
    thread, at = np.full(len(call), -1, np.int64), ints(trace["kernels"], "start_ns")
    thread[known] = ints(calls, "thread")[call[known]]
    at = at.copy()
    at[known] = ints(calls, "start_ns")[call[known]]
    return thread, at


def _first_launch(pipeline: Pipeline, stage: str, fits: Flags, inverse: Index, group: Ints, at: Ints) -> Ints:
    """For each kernel, when its group first launched a kernel of ``stage``; −1 where it never did."""
    member = np.zeros(len(at), bool)
    for row, rule in enumerate(pipeline.stages):
        if rule.stage == stage and rule.before is None and rule.after is None:
            member |= fits[row][inverse]
    member &= group >= 0
    first = np.full(int(group.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, group[member], at[member])
    found = first[np.maximum(group, 0)]
    return np.where((group >= 0) & (found < np.iinfo(np.int64).max), found, -1)
