"""GPU metrics of nsys up to 2022: one JSON object a sample in GENERIC_EVENTS."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import Bools, bools, canonical, flat, from_numpy, ints, strings, to_numpy, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.host_calls import Draft
from nvprof_tools.timeline.ids import Identities
from nvprof_tools.timeline.rows import Account, SessionClock, keep_instants, select
from nvprof_tools.timeline.samples import GPU_OF_TYPE
from nvprof_tools.timeline.words import Words

SOURCE = "gpumetrics"
MEMBER_NAMES = ("SM Active", "SMs Active", "GR Active", "SM Issue")
"""What a sample of GPU metrics has, where nothing says which events are samples."""

MOST_METRICS = 1_000


def generic_metrics(
    events: pa.Table, raw: RawTables, words: Words, clock: SessionClock, ids: Identities, account: Account, depth: int
) -> tuple[Draft, list[QualityItem]]:
    """Samples among GENERIC_EVENTS, one row a member of their JSON object.

    :param depth: how deep JSON may nest; deeper objects are unreadable.
    """
    events = select(events, _sampled(events, raw, words))
    account.read += events.num_rows
    times = np.where(validity(events["timestamp"]), ints(events["timestamp"]), ints(events["rawTimestamp"]))
    either = validity(events["timestamp"]) | validity(events["rawTimestamp"])
    at = events.column_names.index("timestamp")
    events, time = keep_instants(
        events.set_column(at, "timestamp", from_numpy(times, either)), "timestamp", clock, account
    )
    text = flat(events["data"])
    row, name, value = _melt(text, depth)
    found = np.zeros(len(text), np.bool_)
    found[row] = True
    broken = int(np.count_nonzero(~found))
    items = []
    if broken:
        message = f"{broken:,} GPU metric samples are not readable JSON"
        items.append(QualityItem("metric-json-unreadable", Severity.DATA_LOSS, broken, message))
    device = ids.sampled_device_codes(ints(events["typeId"]) & GPU_OF_TYPE)
    return {
        "time_ns": from_numpy(time[row]),
        "device": from_numpy(device[row]),
        "metric": name,
        "value": from_numpy(value, np.isfinite(value)),
    }, items


def _sampled(events: pa.Table, raw: RawTables, words: Words) -> Bools:
    """Which events are GPU metric samples: by their type's source, else by what their object holds."""
    sources, types = raw.read("GENERIC_EVENT_SOURCES"), raw.read("GENERIC_EVENT_TYPES")
    if sources is None or types is None:
        found = np.zeros(events.num_rows, np.bool_)
        for name in MEMBER_NAMES:
            hit = pc.match_substring(flat(events["data"]), f'"{name}')
            found |= bools(hit)
        return found
    named = zip(*(flat(sources[c]).to_pylist() for c in ("sourceId", "nameId", "data")), strict=True)
    gpu = [source for source, name, data in named if SOURCE in _letters(words.text(name or 0)) + _letters(data)]
    wanted = np.isin(ints(types["sourceId"]), np.array(gpu, np.int64))
    return np.isin(ints(events["typeId"]), ints(types["typeId"])[wanted])


def _letters(text: str | None) -> str:
    return (text or "").replace(" ", "").lower()


def _melt(text: pa.Array, depth: int) -> tuple[np.ndarray, pa.DictionaryArray, np.ndarray]:
    """(row, metric name, value) of every number in the objects; numbers may be written as strings."""
    shallow = _shallow(text, depth)
    rows = np.flatnonzero(shallow)
    parsed = _parse(text.take(from_numpy(rows)))
    if parsed is None:
        return _melt_slowly(text, rows)
    at, code, value = [], [], []
    names: list[str] = []
    for name, column in zip(parsed.column_names, parsed.columns, strict=True):
        numbers = _numbers(flat(column))
        if numbers is None:
            continue
        given = validity(numbers)
        at.append(rows[given])
        code.append(np.full(int(np.count_nonzero(given)), len(names), np.int32))
        value.append(to_numpy(numbers)[given])
        names.append(name)
    if not names:
        return _melted([], [], [], [])
    return np.concatenate(at), canonical(np.concatenate(code), strings(names)), np.concatenate(value)


def _shallow(text: pa.Array, depth: int) -> Bools:
    opened = pc.add(pc.count_substring(text, "{"), pc.count_substring(text, "["))
    return validity(text) & (ints(opened) <= depth) & (ints(opened) > 0)


def _parse(text: pa.Array) -> pa.Table | None:
    """All objects at once; None where one of them, or their number of members, is not as it should be."""
    from pyarrow import json as arrow_json

    if len(text) == 0:
        return pa.Table.from_arrays([], names=[])
    if bool(pc.any(pc.match_substring(text, "\n")).as_py()):
        return None
    lines = pc.binary_join(pa.ListArray.from_arrays(from_numpy(np.array([0, len(text)], np.int32)), text), "\n")[0]
    data = lines.as_buffer()
    options = arrow_json.ReadOptions(block_size=max(1 << 20, min(data.size + 1, (1 << 31) - 1)))
    try:
        table = arrow_json.read_json(pa.BufferReader(data), read_options=options)
    except pa.ArrowException:
        return None
    return table if table.num_rows == len(text) and table.num_columns <= MOST_METRICS else None


def _numbers(column: pa.Array) -> pa.Array | None:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return pc.cast(column, pa.float64())
    if not pa.types.is_string(column.type):
        return None
    try:
        return pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        return None


def _melt_slowly(text: pa.Array, rows: np.ndarray) -> tuple[np.ndarray, pa.DictionaryArray, np.ndarray]:
    """One object at a time, for a table with damaged ones among them."""
    at, code, value = [], [], []
    names: dict[str, int] = {}
    for row in rows.tolist():
        for name, number in _members(text[row].as_py()):
            if name in names or len(names) < MOST_METRICS:
                at.append(row)
                code.append(names.setdefault(name, len(names)))
                value.append(number)
    return _melted(at, code, value, list(names))


def _melted(
    at: list[int], code: list[int], value: list[float], names: list[str]
) -> tuple[np.ndarray, pa.DictionaryArray, np.ndarray]:
    return np.array(at, np.int64), canonical(np.array(code, np.int32), strings(names)), np.array(value, np.float64)


def _members(text: str) -> Iterator[tuple[str, float]]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(parsed, dict):
        return
    for name, number in parsed.items():
        if isinstance(number, str | int | float) and not isinstance(number, bool):
            try:
                yield name, float(number)
            except (ValueError, OverflowError):
                continue
