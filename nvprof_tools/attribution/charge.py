"""Who is in charge of a device at each instant: the holder of its mutex, else the oldest section inside a call, else
the oldest open one. Nobody holding while somebody waits is a handover and nobody's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.evidence import Evidence
from nvprof_tools.attribution.sections import Held, Owners, Sections
from nvprof_tools.native import interval_functions
from nvprof_tools.timeline.intervals import (
    Index,
    Ints,
    Spans,
    complement,
    covers,
    distinct,
    intersect,
    pairs,
    union,
    without,
)
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
    j, i = pairs(spans, rest)
    return Spans(np.maximum(rest.start[i], spans.start[j]), np.minimum(rest.end[i], spans.end[j])), label[j]


def _oldest_in_call(
    rest: Spans, mine: np.ndarray, evidence: Evidence, sections: Sections, owners: Owners
) -> tuple[Spans, Ints]:
    """Where in ``rest`` some section is inside a traced CUDA call, the oldest such section."""
    calls = evidence.calls
    section = owners.of_rows(calls)
    rows = np.flatnonzero(np.append(mine, False)[section])
    section = section[rows]
    start, end = calls.start[rows], np.minimum(calls.end[rows], sections.end[section])
    by_age = np.lexsort((sections.caller, sections.start))
    age = np.empty(len(sections), np.int64)
    age[by_age] = np.arange(len(sections))
    if bool((start[1:] < start[:-1]).any()):
        order = np.argsort(start, kind="stable")
        start, end, section = start[order], end[order], section[order]
    found = interval_functions.oldest(start, end, age[section])
    begins, ends, first = _oldest(start, end, section, sections, age) if found is None else found
    return _label(rest, Spans(begins, ends), by_age[first])


def _oldest(start: Ints, end: Ints, section: Ints, sections: Sections, age: Ints) -> tuple[Ints, Ints, Ints]:
    """What :func:`nvprof_tools.native.interval_functions.oldest` gives for calls inside their sections.

    Sections are dealt to slots so that no two of a slot overlap; there are as many slots as sections are ever open at
    once, which is the number of workers. Each elementary stretch then asks every slot.
    """
    members = np.unique(section)
    slot_of = np.full(len(sections), -1, np.int64)
    slot_of[members], count = slots(sections.start[members], sections.end[members])
    slot = slot_of[section]
    in_calls = [union(start[slot == k], end[slot == k]) for k in range(count)]
    # Calls of sections that follow each other in a slot may touch: the sections' own bounds part them.
    bounds = (sections.start[members], sections.end[members])
    edges = distinct(*bounds, *(s.start for s in in_calls), *(s.end for s in in_calls))
    at, until = edges[:-1], edges[1:]
    least = np.full(len(at), len(sections))
    for k, spans in enumerate(in_calls):
        own = members[slot_of[members] == k]
        own = own[np.argsort(sections.start[own], kind="stable")]
        which = own[np.maximum(np.searchsorted(sections.start[own], at, side="right") - 1, 0)]
        least = np.where(covers(spans, at), np.minimum(least, age[which]), least)
    some = least < len(sections)
    at, until, least = at[some], until[some], least[some]
    fresh = np.append(True, (at[1:] != until[:-1]) | (least[1:] != least[:-1]))[: len(at)]
    return at[fresh], until[np.append(fresh[1:], True)[: len(at)]], least[fresh]
