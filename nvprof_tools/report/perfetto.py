"""``.pftrace``: tracks for GPUs, workers, threads and causes, flows from launch to kernel, counters; one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

from nvprof_tools.files.safe_text import terminal
from nvprof_tools.report.base import Report
from nvprof_tools.report.nesting import misnested, stack_order
from nvprof_tools.report.packets import (
    CATEGORY_MARK,
    FIXED_MARK,
    NAME_MARK,
    TIME_MARK,
    Block,
    Template,
    framed,
    interleaved,
)
from nvprof_tools.report.packing import pack
from nvprof_tools.report.perfetto_tracks import Counter, Slices, Track, Tracks, tracks

Ints = npt.NDArray[np.int64]
_SEQUENCE = 1
_CLEARED = schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
_NEEDED = schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
_EVENT = schema.TrackEvent


class PerfettoTrace:
    """``-o X.pftrace``. Times are those of the trace, moved by a constant where some lie before zero."""

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write the trace, track by track."""
        found = tracks(report.attribution, report.trace)
        shift = max(0, -found.first_ns)
        out.write(framed(_names(found)))
        for track in found.tracks:
            out.write(framed(_descriptor(track)))
        next_uuid = len(found.tracks) + 1
        for slices in found.slices:
            for part, extra in _nested(slices, next_uuid):
                if extra is not None:
                    out.write(framed(_descriptor(extra)))
                    next_uuid = extra.uuid + 1
                for piece in interleaved(_blocks(part, shift)):
                    out.write(piece)
        for counter in found.counters:
            for piece in _counter(counter, shift):
                out.write(piece)


def _packet(flags: int = _NEEDED) -> schema.TracePacket:
    packet = schema.TracePacket()
    packet.trusted_packet_sequence_id = _SEQUENCE
    packet.sequence_flags = flags
    return packet


def _names(found: Tracks) -> schema.TracePacket:
    """The first packet: every name and category once, by number from 1."""
    packet = _packet(_CLEARED | _NEEDED)
    for values, kind in ((found.names.values, "event_names"), (found.categories.values, "event_categories")):
        for i, value in enumerate(values, 1):
            entry = getattr(packet.interned_data, kind).add()
            entry.iid = i
            entry.name = terminal(value)
    return packet


def _descriptor(track: Track) -> schema.TracePacket:
    packet = _packet()
    descriptor = packet.track_descriptor
    descriptor.uuid = track.uuid
    if track.parent:
        descriptor.parent_uuid = track.parent
    if track.tid is not None and track.pid is not None:
        descriptor.thread.pid = track.pid
        descriptor.thread.tid = track.tid
        descriptor.thread.thread_name = terminal(track.name)
        return packet
    if track.pid is not None:
        descriptor.process.pid = track.pid
        descriptor.process.process_name = terminal(track.name)
        return packet
    descriptor.name = terminal(track.name)
    descriptor.child_ordering = schema.TrackDescriptor.EXPLICIT
    descriptor.sibling_order_rank = track.uuid
    if track.unit is not None:
        descriptor.counter.unit_name = terminal(track.unit)
    return packet


def _nested(slices: Slices, next_uuid: int) -> Iterator[tuple[Slices, Track | None]]:
    """The slices that nest, on their track; the others on tracks of their own beside it."""
    solid = np.flatnonzero(slices.end > slices.start)
    bad = np.zeros(len(slices.start), np.bool_)
    bad[solid] = misnested(slices.start[solid], slices.end[solid])
    yield slices.pick(~bad), None
    if not bad.any():
        return
    rest = slices.pick(bad)
    rest = rest.pick(np.lexsort((rest.end, rest.start)))
    row = pack(rest.start, rest.end)
    for k in range(int(row.max()) + 1):
        track = Track(next_uuid + k, slices.track.parent, f"{slices.track.name} (overlapping)")
        yield rest.pick(row == k).on(track), track


def _template(track: int, kind: int, flows: int = 0) -> Template:
    packet = _packet()
    packet.timestamp = TIME_MARK
    packet.track_event.type = kind
    packet.track_event.track_uuid = track
    marks = {"time": TIME_MARK}
    if kind != _EVENT.TYPE_SLICE_END:
        packet.track_event.name_iid = NAME_MARK
        packet.track_event.category_iids.append(CATEGORY_MARK)
        marks |= {"name": NAME_MARK, "category": CATEGORY_MARK}
    for k in range(flows):
        packet.track_event.flow_ids.append(FIXED_MARK + k)
        marks[f"fixed{k}"] = FIXED_MARK + k
    return Template(packet, marks)


def _blocks(slices: Slices, shift: int) -> list[Block]:
    """Begins and ends of one track, and instants for slices of no length; begins by how many flows go with them."""
    instant = slices.end <= slices.start
    solid = np.flatnonzero(~instant)
    index, begins = stack_order(slices.start[solid], slices.end[solid])
    index = solid[index]
    place = np.arange(len(index))
    out = []
    uuid = slices.track.uuid
    ends = ~begins
    values = {"time": slices.end[index[ends]] + shift}
    out.append(Block(_template(uuid, _EVENT.TYPE_SLICE_END), values, place[ends]))
    for flows in np.unique(slices.flow_count[index[begins]]).tolist():
        pick = begins & (slices.flow_count[index] == flows)
        rows = index[pick]
        out.append(
            Block(_template(uuid, _EVENT.TYPE_SLICE_BEGIN, flows), _values(slices, rows, shift, flows), place[pick])
        )
    still = np.flatnonzero(instant)
    if len(still):
        values = _values(slices, still, shift, 0)
        out.append(Block(_template(uuid, _EVENT.TYPE_INSTANT), values, len(index) + np.arange(len(still))))
    return out


def _values(slices: Slices, rows: Ints, shift: int, flows: int) -> dict[str, Ints]:
    out = {
        "time": slices.start[rows] + shift,
        "name": slices.name[rows] + 1,
        "category": slices.category[rows] + 1,
    }
    for k in range(flows):
        out[f"fixed{k}"] = slices.flow_first[rows] + k
    return out


def _counter(counter: Counter, shift: int) -> list[bytes]:
    packet = _packet()
    packet.timestamp = TIME_MARK
    packet.track_event.type = _EVENT.TYPE_COUNTER
    packet.track_event.track_uuid = counter.track.uuid
    packet.track_event.double_counter_value = float(np.array(FIXED_MARK, np.int64).view(np.float64))
    template = Template(packet, {"time": TIME_MARK, "fixed": FIXED_MARK})
    values = {"time": counter.time + shift, "fixed": counter.value.view(np.int64)}
    return interleaved([Block(template, values, np.arange(len(counter.time)))])
