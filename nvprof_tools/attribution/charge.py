"""Who is in charge of a device at each instant: the holder of its mutex, else the oldest section inside a call, else
the oldest open one. Nobody holding while somebody waits is a handover and nobody's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.evidence import Evidence
from nvprof_tools.attribution.sections import Held, Owners, Sections
from nvprof_tools.timeline.intervals import Index, Ints, Spans, complement, covers, distinct, intersect, union, without
from nvprof_tools.timeline.lanes import slots

HANDOVER = -2
NOBODY = -1


@dataclass(frozen=True)
class Charge:
    """Consecutive stretches of one device's window, each with the section in charge, ``HANDOVER`` or ``NOBODY``."""

    start: Ints
    end: Ints
    section: Ints


def in_charge(
    window: tuple[int, int],
    members: Index,
    evidence: Evidence,
    sections: Sections,
    owners: Owners,
    waits: Held,
    held: Held,
) -> Charge:
    """Who is in charge over ``window``, among the sections ``members`` (those of one device)."""
    low, high = window
    mine = np.zeros(len(sections), bool)
    mine[members] = True
    # Holders in order of their hold's begin: a later one that overlaps by an inferred bound takes only what is left.
    rows = np.flatnonzero(mine[held.section])
    rows = rows[np.lexsort((held.section[rows], held.start[rows]))]
    holds, holder = oldest(held.start[rows], held.end[rows], held.section[rows])
    parts: list[tuple[Spans, Ints]] = [(holds, holder)]
    rest = complement(union(holds.start, holds.end), low, high)
    wait = np.flatnonzero(mine[waits.section])
    waited = intersect(rest, union(waits.start[wait], waits.end[wait]))
    parts.append((waited, np.full(len(waited), HANDOVER)))
    rest = without(rest, waited)
    called, caller = _oldest_in_call(rest, mine, evidence, sections, owners)
    parts.append((called, caller))
    rest = without(rest, called)
    by_age = members[np.lexsort((sections.caller[members], sections.start[members]))]
    open_spans, opener = oldest(sections.start[by_age], sections.end[by_age], by_age)
    at = _label(rest, open_spans, opener)
    parts.append(at)
    rest = without(rest, at[0])
    parts.append((rest, np.full(len(rest), NOBODY)))
    start = np.concatenate([p.start for p, _ in parts])
    end = np.concatenate([p.end for p, _ in parts])
    who = np.concatenate([w for _, w in parts])
    start, end = np.maximum(start, low), np.minimum(end, high)
    keep = end > start
    order = np.argsort(start[keep], kind="stable")
    return Charge(start[keep][order], end[keep][order], who[keep][order])


def oldest(start: Ints, end: Ints, label: Ints) -> tuple[Spans, Ints]:
    """Of intervals sorted by start, the one that began first at each instant: disjoint spans and their labels."""
    if len(start) == 0:
        return Spans(start, end), label
    before = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(end)[:-1])
    begins = np.maximum(start, before)
    keep = begins < end
    return Spans(begins[keep], end[keep]), label[keep]


def _label(rest: Spans, spans: Spans, label: Ints) -> tuple[Spans, Ints]:
    """``rest ∩ spans`` with the labels of ``spans``, which may touch."""
    low = np.searchsorted(spans.end, rest.start, side="right")
    high = np.searchsorted(spans.start, rest.end, side="left")
    count = np.maximum(high - low, 0)
    i = np.repeat(np.arange(len(rest)), count)
    j = np.repeat(low, count) + np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    return Spans(np.maximum(rest.start[i], spans.start[j]), np.minimum(rest.end[i], spans.end[j])), label[j]


def _oldest_in_call(
    rest: Spans, mine: np.ndarray, evidence: Evidence, sections: Sections, owners: Owners
) -> tuple[Spans, Ints]:
    """Where in ``rest`` some section is inside a traced CUDA call, the oldest such section.

    Sections are dealt to slots so that no two of a slot overlap; there are as many slots as sections are ever open at
    once, which is the number of workers. Each elementary stretch then asks every slot.
    """
    calls = evidence.calls
    section = owners.of_rows(calls)
    keep = (section >= 0) & (calls.end > calls.start)
    keep[keep] = mine[section[keep]]
    rows = np.flatnonzero(keep)
    if len(rows) == 0 or len(rest) == 0:
        return Spans(rest.start[:0], rest.end[:0]), np.empty(0, np.int64)
    slot_of = np.full(len(sections), -1, np.int64)
    slot_of[mine], count = slots(sections.start[mine], sections.end[mine])
    slot = slot_of[section[rows]]
    in_calls = [
        union(calls.start[rows[slot == k]], np.minimum(calls.end, sections.end[section])[rows[slot == k]])
        for k in range(count)
    ]
    # Calls of sections that follow each other in a slot may touch: the sections' own bounds part them.
    bounds = [rest.start, rest.end, sections.start[mine], sections.end[mine]]
    edges = distinct(*bounds, *(s.start for s in in_calls), *(s.end for s in in_calls))
    at = edges[:-1]
    inside = covers(rest, at)
    at, until = at[inside], edges[1:][inside]
    first = np.full(len(at), np.iinfo(np.int64).max)
    age = np.empty(len(sections), np.int64)
    by_age = np.lexsort((sections.caller, sections.start))
    age[by_age] = np.arange(len(sections))
    for k, spans in enumerate(in_calls):
        members = np.flatnonzero(slot_of == k)
        members = members[np.argsort(sections.start[members], kind="stable")]
        there = covers(spans, at)
        which = members[np.maximum(np.searchsorted(sections.start[members], at, side="right") - 1, 0)]
        first = np.where(there, np.minimum(first, age[which]), first)
    found = first < np.iinfo(np.int64).max
    return Spans(at[found], until[found]), by_age[first[found]]
