"""Gives each launch of a trace the counters that stand for it: its own where launches pair off, else a mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution.counter_match import KindMatch, Kinds, distinct_rows
from nvprof_tools.model.counters import CounterTable
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import flags, ints, names
from nvprof_tools.timeline.intervals import Index, Ints
from nvprof_tools.timeline.lanes import locate

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Profiles:
    """``of_launch[k]``: the profile of kernel row ``k``, −1 for none; ``members[p]``: rows of the counters' launches it
    is the mean of; ``exact[k]``: the launch was paired with one profiled launch."""

    of_launch: Index
    members: list[Index]
    exact: Flags


@dataclass(frozen=True)
class Order:
    """When each kernel was launched, by which process, and in which NVTX state (a number of ``states``; −1: none)."""

    at: Ints
    process: Ints
    state: Ints
    states: list[str]


def launch_order(trace: Trace) -> Order:
    """The launch, not the execution: the API call's start; a kernel without a known call stands at its own start."""
    table = trace["kernels"]
    call = ints(table, "api_call")
    at, thread = ints(table, "start_ns").copy(), np.full(len(call), -1, np.int64)
    known = call >= 0
    at[known] = ints(trace["api_calls"], "start_ns")[call[known]]
    thread[known] = ints(trace["api_calls"], "thread")[call[known]]
    ranges = trace["nvtx_ranges"]
    nested = flags(ranges, "push_pop") if len(ranges) else np.empty(0, bool)
    rows = np.flatnonzero(nested)
    code, words = names(ranges, "name")
    domain, domains = names(ranges, "domain")
    inner = locate(
        ints(ranges, "thread")[rows], ints(ranges, "start_ns")[rows], ints(ranges, "end_ns")[rows], thread, at
    )
    found = np.flatnonzero(inner >= 0)
    pair = (code[rows[inner[found]]], domain[rows[inner[found]]])
    first, number = distinct_rows(pair)
    state = np.full(len(call), -1, np.int64)
    state[found] = number
    states = [
        (f"{domains[d]}:" if d >= 0 and domains[d] else "") + (words[n] if n >= 0 else "")
        for n, d in zip(pair[0][first].tolist(), pair[1][first].tolist(), strict=True)
    ]
    return Order(at, ints(table, "process"), state, states)


def assign(
    trace_kinds: Kinds, counter_kinds: Kinds, match: KindMatch, order: Order, counters: CounterTable, mask: Flags
) -> Profiles:
    """Profiles for the launches of matched kinds; others, and those not in ``mask``, get none."""
    of_launch = np.full(len(trace_kinds.of_launch), -1, np.intp)
    exact = np.zeros(len(of_launch), bool)
    members: list[Index] = []
    nvtx, state_words = names(counters.launches, "nvtx")
    innermost = _by_innermost(state_words)
    group = _groups(counters)
    traced_by_kind = _rows_by(trace_kinds.of_launch, len(trace_kinds.kinds))
    counted_by_kind = _rows_by(counter_kinds.of_launch, len(counter_kinds.kinds))
    for kind, sources in enumerate(match.sources):
        if not sources:
            continue
        traced = traced_by_kind[kind]
        counted = np.sort(np.concatenate([counted_by_kind[c] for c in sources]))
        traced = traced[np.argsort(order.at[traced], kind="stable")]
        if _pair_off(traced, counted, order.process, group, of_launch, members):
            exact[traced] = True
            continue
        remaining = traced
        for state in np.unique(order.state[traced[order.state[traced] >= 0]]).tolist():
            alike = innermost.get(order.states[state])
            same = np.isin(nvtx[counted], alike) if alike else np.zeros(len(counted), bool)
            if not same.any():
                continue
            here = traced[order.state[traced] == state]
            if _pair_off(here, counted[same], order.process, group, of_launch, members):
                exact[here] = True
            else:
                of_launch[here] = len(members)
                members.append(counted[same])
            remaining = remaining[order.state[remaining] != state]
        if len(remaining):
            of_launch[remaining] = len(members)
            members.append(counted)
    of_launch[~mask] = -1
    return Profiles(of_launch, members, exact & mask)


def _pair_off(
    traced: Index, counted: Index, process: Ints, group: Ints, of_launch: Index, members: list[Index]
) -> bool:
    """Pair launches in order, process by process; False, and nothing done, where their numbers differ."""
    if len(traced) != len(counted):
        return False
    ours, theirs = _in_order(process[traced]), _in_order(group[counted])
    if len(ours) != len(theirs):
        return False
    pairs = [(traced[process[traced] == a], counted[group[counted] == b]) for a, b in zip(ours, theirs, strict=True)]
    if any(len(a) != len(b) for a, b in pairs):
        return False
    for launches, profiled in pairs:
        of_launch[launches] = np.arange(len(members), len(members) + len(profiled))
        members.extend(profiled[i : i + 1] for i in range(len(profiled)))
    return True


def _in_order(values: Ints) -> list[int]:
    """Distinct values by first appearance."""
    distinct, first = np.unique(values, return_index=True)
    return [int(v) for v in distinct[np.argsort(first)]]


def _groups(counters: CounterTable) -> Ints:
    """A number a process of a report: two reports are two runs of the program, even with one process id."""
    _, number = distinct_rows([ints(counters.launches, "report"), ints(counters.launches, "process")])
    return number.astype(np.int64)


def _rows_by(code: Index, count: int) -> list[Index]:
    order = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[order], np.arange(count + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(count)]


def _by_innermost(stacks: list[str]) -> dict[str, list[int]]:
    """Range name → the NVTX stacks it is the innermost of. A name may hold a slash itself: every ending counts."""
    found: dict[str, list[int]] = {}
    for i, stack in enumerate(stacks):
        pieces = stack.split("/")
        for start in range(len(pieces)):
            found.setdefault("/".join(pieces[start:]), []).append(i)
    return found
