"""A run's events as the tables that every later step reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.arrays import from_numpy, strings
from nvprof_tools.model.pipeline import ROLES
from nvprof_tools.model.trace import COMPLETION_SCHEMA, EVENT_SCHEMA, PARTITION_SCHEMA
from nvprof_tools.sources.timeline_events import NONE, Events, Ints, texts
from nvprof_tools.sources.timeline_stamped import Completion


def event_table(events: Events) -> pa.Table:
    """``EVENT_SCHEMA``, in file order."""
    arrays = [
        from_numpy(events.line),
        from_numpy(events.time_ms),
        _names(events.event, events.event_names),
        _names(events.job, events.job_names),
        _nullable(events.partition, pa.int32()),
        _nullable(events.worker, pa.int32()),
        texts(events.detail),
    ]
    return pa.Table.from_arrays(arrays, schema=EVENT_SCHEMA)


def partition_table(events: Events) -> pa.Table:
    """``PARTITION_SCHEMA``: one row a (job, partition) that has an event with a role, in order of appearance."""
    events = events.take(events.role >= 0)
    chain = events.chains()
    _, first = np.unique(chain, return_index=True)
    rank = np.empty(len(first), np.int64)
    order = np.argsort(first)
    rank[order] = np.arange(len(first))
    group = rank[chain] if len(chain) else chain
    first = first[order]
    times = np.full((len(first), len(ROLES)), NONE, np.int64)
    # Backwards, so that the first event of its kind is what stays.
    times[group[::-1], events.role[::-1]] = events.time_ms[::-1]
    columns: dict[str, Any] = {
        "job": _names(events.job[first], events.job_names).dictionary_decode(),
        "partition": _nullable(events.partition[first], pa.int32()),
        "worker": _nullable(_first(group, events.worker, len(first)), pa.int32()),
        **{f"{role}_ms": _nullable(times[:, index], pa.int64()) for index, role in enumerate(ROLES)},
        "synth_ms": _nullable(_first(group, events.synth_ms, len(first)), pa.int64()),
        "gpu_ms": _nullable(_first(group, events.gpu_ms, len(first)), pa.int64()),
    }
    return pa.Table.from_arrays([columns[name] for name in PARTITION_SCHEMA.names], schema=PARTITION_SCHEMA)


def completion_table(found: Sequence[Completion]) -> pa.Table:
    """``COMPLETION_SCHEMA``, in file order."""

    def numbers(place: int) -> Ints:
        return np.array([NONE if row[place] is None else row[place] for row in found], np.int64)

    arrays = [
        from_numpy(numbers(0)),
        from_numpy(numbers(1)),
        strings(row[2] for row in found),
        _nullable(numbers(3), pa.int32()),
        _nullable(numbers(4), pa.int64()),
    ]
    return pa.Table.from_arrays(arrays, schema=COMPLETION_SCHEMA)


def _first(group: Ints, values: Ints, count: int) -> Ints:
    """Per group, the first value that is there."""
    there = np.flatnonzero(values != NONE)[::-1]
    found = np.full(count, NONE, np.int64)
    found[group[there]] = values[there]
    return found


def _names(codes: Ints, names: tuple[str, ...]) -> pa.DictionaryArray:
    """Codes as a dictionary of the names in use, in order of appearance."""
    used, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), np.int32)
    rank[order] = np.arange(len(used), dtype=np.int32)
    index: npt.NDArray[np.int32] = rank[inverse] if len(codes) else np.empty(0, np.int32)
    words = strings(names[code] for code in used[order].tolist())
    return pa.DictionaryArray.from_arrays(from_numpy(index), words)


def _nullable(values: Ints, kind: pa.DataType) -> pa.Array:
    return from_numpy(values, values != NONE).cast(kind)
