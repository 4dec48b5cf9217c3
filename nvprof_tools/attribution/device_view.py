"""The device view: each GPU's window, split by what it runs, and where it idles by what the section in charge does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.charge import HANDOVER, NOBODY, Charge
from nvprof_tools.attribution.engine import Layer, Segments, sweep
from nvprof_tools.attribution.work import Work, busy_layers
from nvprof_tools.timeline.intervals import Ints, Spans, intersect, pairs, union, without
from nvprof_tools.timeline.lanes import Lanes


@dataclass(frozen=True)
class Background:
    """What is known of time with no section open: where work was queued, where synthesis ran; ``known`` false when
    there is no log to say what "nothing queued" means."""

    queued: Spans
    synthesis: Spans
    known: bool


def view(
    window: tuple[int, int], work: Work, charges: Sequence[Charge], parts: Segments, background: Background
) -> Segments:
    """Segments of every device over ``window``, one lane each; ``charges[d]`` says who is in charge of device ``d``.

    ``parts`` is the partition view: it says what a section in charge is doing.
    """
    low, high = window
    lanes = Lanes.of(np.full(len(charges), low, np.int64), np.full(len(charges), high, np.int64))
    layers = busy_layers(lanes, work, work.device)
    for device, charge in enumerate(charges):
        layers.extend(_idle_layers(lanes, device, charge, parts, background))
    return sweep(lanes, layers, "unattributed")


def _idle_layers(lanes: Lanes, device: int, charge: Charge, parts: Segments, background: Background) -> list[Layer]:
    """What one device's time would be if it ran nothing: disjoint layers."""

    def placed(spans: Spans) -> Spans:
        return lanes.place(np.full(len(spans), device), spans.start, spans.end)

    handed = charge.section == HANDOVER
    layers = [Layer("mutex_handover", placed(Spans(charge.start[handed], charge.end[handed])))]
    layers.extend(_of_sections(lanes, device, charge, parts))
    alone = charge.section == NOBODY
    rest = union(charge.start[alone], charge.end[alone])
    for category, spans in (("dispatch", background.queued), ("starved", background.synthesis)):
        inside = intersect(rest, spans)
        rest = without(rest, inside)
        layers.append(Layer(category, placed(inside)))
    if background.known:
        layers.append(Layer("drained", placed(rest)))
    return layers


def _of_sections(lanes: Lanes, device: int, charge: Charge, parts: Segments) -> list[Layer]:
    """What the section in charge does, category by category with its sub-keys."""
    rows = np.flatnonzero(charge.section >= 0)
    section = charge.section[rows]
    shift = parts.lanes.base[section] - parts.lanes.start[section]
    start = np.maximum(charge.start[rows], parts.lanes.start[section])
    end = np.minimum(charge.end[rows], parts.lanes.end[section])
    # One section's stretches are in order and its lane is its own: sorted by place on the axis they are spans.
    order = np.argsort(start + shift, kind="stable")
    on_axis = Spans((start + shift)[order], (end + shift)[order])
    i, j = pairs(parts.at, on_axis)
    back = shift[order][j]
    low = np.maximum(parts.at.start[i], on_axis.start[j]) - back
    begins = np.argsort(low, kind="stable")
    i, low = i[begins], low[begins]
    high = np.minimum(parts.at.end[i], on_axis.end[j[begins]]) - back[begins]
    kind, detail = parts.category[i], parts.detail[i]
    layers = []
    for code, category in enumerate(parts.categories):
        mine = np.flatnonzero(kind == code)
        spans = Spans(low[mine], high[mine])
        label: Ints = detail[mine]
        placed, keep = lanes.shifted(device, spans)
        layers.append(Layer(category, placed, label[keep], parts.details))
    return layers
