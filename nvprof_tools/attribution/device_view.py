"""The device view: each GPU's window, split by what it runs, and where it idles by what the section in charge does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.charge import HANDOVER, NOBODY, Charge
from nvprof_tools.attribution.engine import Layer, Segments, sweep
from nvprof_tools.attribution.work import Work, busy_layers
from nvprof_tools.timeline.intervals import EMPTY, Spans, intersect, union, without
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
    layers = [*busy_layers(lanes, work, work.device), *_idle_layers(lanes, charges, parts, background)]
    return sweep(lanes, layers, "unattributed")


def _idle_layers(lanes: Lanes, charges: Sequence[Charge], parts: Segments, background: Background) -> list[Layer]:
    """What each device's time would be if it ran nothing: disjoint layers, of all devices together."""

    def of_all(spans: Sequence[Spans]) -> Spans:
        device = np.repeat(np.arange(len(spans)), [len(own) for own in spans])
        start, end = ([EMPTY.start, *(getattr(own, bound) for own in spans)] for bound in ("start", "end"))
        return lanes.place(device, np.concatenate(start), np.concatenate(end))

    def stretches(section: int) -> list[Spans]:
        return [Spans(c.start[rows], c.end[rows]) for c in charges for rows in [np.flatnonzero(c.section == section)]]

    layers = [Layer("mutex_handover", of_all(stretches(HANDOVER))), _of_sections(lanes, charges, parts)]
    rest = [union(alone.start, alone.end) for alone in stretches(NOBODY)]
    for category, spans in (("dispatch", background.queued), ("starved", background.synthesis)):
        inside = [intersect(own, spans) for own in rest]
        rest = [without(own, gone) for own, gone in zip(rest, inside, strict=True)]
        layers.append(Layer(category, of_all(inside)))
    if background.known:
        layers.append(Layer("drained", of_all(rest)))
    return layers


def _of_sections(lanes: Lanes, charges: Sequence[Charge], parts: Segments) -> Layer:
    """What the section in charge of each device does, with its sub-keys."""
    found = []
    for device, charge in enumerate(charges):
        stretches = np.flatnonzero(charge.section >= 0)
        low = np.maximum(charge.start[stretches], lanes.start[device])
        high = np.minimum(charge.end[stretches], lanes.end[device])
        # Stretches are in order of time, and so are the segments of each: as found they are in order.
        shift = int(lanes.base[device] - lanes.start[device])
        found.append(parts.cut(charge.section[stretches], low, high, shift))
    if not found:
        return Layer(parts.categories, EMPTY)
    start, end, kind, label = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
    return Layer(parts.categories, Spans(start, end), label, parts.details, kind)
