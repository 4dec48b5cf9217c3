"""TIMELINE lines as columns: times, events, jobs, partitions, workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import from_numpy, ints, strings
from nvprof_tools.model.pipeline import ROLES, Pipeline
from nvprof_tools.sources.timeline_grammar import LINE, Grammar

Ints = npt.NDArray[np.int64]
NONE = -1
"""A number that is not there."""


@dataclass(frozen=True)
class Events:
    """One row an event, in file order. Numbers are int64, -1 where there is none.

    ``event`` and ``job`` are codes into ``event_names`` and ``job_names``; ``role`` indexes ``ROLES``, -1 for an event
    that has none. ``undecodable`` counts ids that are not UTF-8.
    """

    line: Ints
    time_ms: Ints
    event: Ints
    role: Ints
    job: Ints
    partition: Ints
    worker: Ints
    gpu_ms: Ints
    synth_ms: Ints
    detail: pa.Array
    event_names: tuple[str, ...]
    job_names: tuple[str, ...]
    undecodable: int = 0

    def __len__(self) -> int:
        return len(self.line)

    def take(self, rows: npt.NDArray[Any]) -> Events:
        """The rows of an index or a mask; names are shared."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        columns = ("line", "time_ms", "event", "role", "job", "partition", "worker", "gpu_ms", "synth_ms")
        return Events(
            **{name: getattr(self, name)[index] for name in columns},
            detail=self.detail.take(from_numpy(index)),
            event_names=self.event_names,
            job_names=self.job_names,
            undecodable=self.undecodable,
        )

    def chains(self) -> Ints:
        """A dense code a (job, partition), in no order that means anything."""
        packed = self.job * (1 << 32) + (self.partition + 1)
        codes: Ints = np.unique(packed, return_inverse=True)[1].astype(np.int64)
        return codes


def read_events(lines: pa.LargeBinaryArray, numbers: Ints, grammar: Grammar, pipeline: Pipeline) -> Events:
    """Columns of TIMELINE lines that the grammar has found whole.

    :param lines: texts; what stands before the tag is skipped.
    :param numbers: their line numbers.
    """
    parts = pc.extract_regex(lines, f"{LINE}\n?$")
    event_code, event_names, _ = _coded(parts.field("event"))
    job_code, job_names, undecodable = _coded(parts.field("job"))
    roles = pipeline.events.roles
    role_of = np.array([ROLES.index(roles[name]) if name in roles else NONE for name in event_names], np.int64)
    detail = parts.field("detail")
    fields = {name: _number(detail, pattern, name) for name, pattern in grammar.keys.items()}
    return Events(
        line=numbers,
        time_ms=_integers(parts.field("time")),
        event=event_code,
        role=role_of[event_code] if len(event_code) else event_code,
        job=job_code,
        detail=detail,
        event_names=event_names,
        job_names=tuple(name.replace("\x1f", ",") for name in job_names),
        undecodable=undecodable,
        **fields,
    )


def texts(values: pa.Array) -> pa.Array:
    """Bytes as strings; what is not UTF-8 is replaced."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return strings(None if value is None else value.decode("utf-8", "replace") for value in values.to_pylist())


def _coded(values: pa.Array) -> tuple[Ints, tuple[str, ...], int]:
    encoded = values.dictionary_encode()
    raw = encoded.dictionary.to_pylist()
    names = tuple(value.decode("utf-8", "replace") for value in raw)
    codes = ints(encoded.indices)
    return codes, names, sum("�" in name for name in names)


def _number(detail: pa.Array, pattern: str, name: str) -> Ints:
    return _integers(pc.struct_field(pc.extract_regex(detail, pattern), name))


def _integers(digits: pa.Array) -> Ints:
    return ints(digits.cast(pa.string()).cast(pa.int64()), NONE)
