"""A trace with nothing in it but what attribution uses: what may be committed, and nothing else.

Times, threads and devices stay as they are, so every figure stays too. Text is the danger: names that attribution
shows or matches are kept where they can be nothing but names; all other text goes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.attribution.metrics import rung_of
from nvprof_tools.golden.words import digest_of, plain, plain_text, reworded
from nvprof_tools.model.arrays import flat, from_numpy, ints, strings
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import ordered
from nvprof_tools.model.tables import SPECS, TABLES
from nvprof_tools.model.trace import Trace
from nvtx_markers.conventions import DOMAIN, HELD_RANGE, RANGES, SECTION_PATTERN

OTHER: Final = "other"
"""Stands for a range name that attribution neither matches nor shows."""

UNUSED: Final = ("syncs", "diagnostics")
"""Tables that attribution does not read."""

_TELLING_OS_CALLS: Final = ("pthread_", "sem_")
"""Beginnings of the names of OS calls that attribution reads: locks, waits, thread creations."""

_OF_THE_READER: Final = frozenset({"table-read-slowly"})
"""Items that tell how a machine read the trace, not what is in it: they would differ from machine to machine."""

_SECTION: Final = re.compile(SECTION_PATTERN)

_NULLED: Final[Mapping[str, tuple[str, ...]]] = {
    "api_calls": ("correlation_id", "return_value"),
    "kernels": ("correlation_id", "mangled", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers",
                "shared_bytes"),
    "copies": ("correlation_id", "copy_count"),
    "memsets": ("correlation_id",),
    "graphs": ("correlation_id",),
    "nvtx_ranges": ("category",),
    "nvtx_marks": ("category",),
    "memory_events": ("correlation_id",),
    "threads": ("name",),
    "processes": ("name",),
}  # fmt: skip
"""Columns that attribution does not read and that may be null."""


def scrub(trace: Trace, found: Attribution, pipeline: Pipeline, *, hash_kernels: bool = False) -> Trace:
    """The same trace without what does not belong into a repository.

    :param found: the attribution of ``trace``: the names it shows are kept.
    :param hash_kernels: write a digest in place of each kernel's name and signature.
    """
    tables = {spec.name: _nulled(spec.name, trace[spec.name]) for spec in SPECS}
    for name in UNUSED:
        tables[name] = TABLES[name].empty()
    kept = _shown(found) | pipeline.ranges.all | {*RANGES, HELD_RANGE}
    tables["api_calls"] = _words(tables["api_calls"], "name")
    tables["os_calls"] = _os_calls(tables)
    tables["kernels"] = _kernels(tables["kernels"], pipeline, hash_kernels)
    tables["nvtx_ranges"] = _ranges(tables["nvtx_ranges"], kept)
    tables["nvtx_marks"] = _marks(tables["nvtx_marks"])
    tables["gpu_metrics"] = _metrics(tables["gpu_metrics"])
    tables["memory_events"] = _addresses(tables["memory_events"])
    tables["profiler_overhead"] = _overhead(tables["profiler_overhead"])
    tables["threads"] = _numbered(tables["threads"], "tid")
    tables["processes"] = _numbered(tables["processes"], "pid")
    tables["devices"] = _set(tables["devices"], "name", _texts(tables["devices"]["name"]))
    session = replace(trace.session, facts={plain(k): plain_text(v) for k, v in sorted(trace.session.facts.items())})
    kept_items = (q for q in trace.quality if q.slug not in _OF_THE_READER)
    quality = ordered(replace(q, message=_message(q.message), hint=plain_text(q.hint)) for q in kept_items)
    return Trace(trace.source, session, tables, trace.measured - set(UNUSED), quality)


def kernel_digest(name: str, signature: str | None) -> str:
    """What stands for a kernel whose name is not to be shown; overloads stay apart."""
    return digest_of(f"{name}\n{signature or ''}", "kernel")


def _shown(found: Attribution) -> frozenset[str]:
    """Every name that the attribution shows: sub-keys of categories, in the tables and in the segments."""
    out: set[str] = set()
    details = [*(view.details for view in found.devices), *(view.details for view in found.partitions)]
    out.update(name for detail in details for parts in detail.values() for name in parts)
    for table in (found.device_segments, found.section_segments):
        out.update(word for word in flat(table["detail"]).dictionary.to_pylist() if word is not None)
    return frozenset(out)


def _nulled(name: str, table: pa.Table) -> pa.Table:
    for column in _NULLED.get(name, ()):
        table = _set(table, column, pa.nulls(len(table), table.schema.field(column).type))
    if "context" in table.column_names:
        table = _set(table, "context", from_numpy(np.zeros(len(table), np.int64)))
    return table


def _set(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values)


def _words(table: pa.Table, column: str) -> pa.Table:
    return _set(table, column, reworded(table[column], plain))


def _os_calls(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Locks, waits and thread creations of threads that have calls or ranges of their own; others explain nothing."""
    table = tables["os_calls"]
    words = flat(table["name"]).dictionary.to_pylist()
    telling = pa.array([word for word in words if word.startswith(_TELLING_OS_CALLS)], pa.string())
    busy = np.unique(np.concatenate([ints(tables[name]["thread"]) for name in ("api_calls", "nvtx_ranges")]))
    known = pc.is_in(table["thread"], from_numpy(busy.astype(np.int32)))
    return _words(table.filter(pc.and_(known, pc.is_in(table["name"].cast(pa.string()), telling))), "name")


def _kernels(table: pa.Table, pipeline: Pipeline, hash_kernels: bool) -> pa.Table:
    """Names kept or hashed; signatures only of kernels that a stage rule tells apart by them."""
    if hash_kernels:
        return _hashed(table)
    matched = [rule.kernels for rule in pipeline.stages if rule.signature is not None]
    names = flat(table["name"])
    telling = np.array([any(p.fullmatch(word) for p in matched) for word in names.dictionary.to_pylist()] + [False])
    keep = from_numpy(telling[ints(names.indices, -1)])
    empty = pa.nulls(len(table), table.schema.field("signature").type)
    kept = reworded(table["signature"], lambda word: word.replace("/", "|"))
    table = _set(table, "signature", _chosen(keep, kept, empty))
    return _words(table, "name")


def _chosen(keep: pa.Array, kept: pa.Array, empty: pa.Array) -> pa.Array:
    """Words where ``keep``, null elsewhere, and no word that no row has."""
    chosen = pc.if_else(keep, kept.dictionary_decode(), empty.dictionary_decode())
    return reworded(chosen.dictionary_encode(), plain)


def _hashed(table: pa.Table) -> pa.Table:
    names, signatures = flat(table["name"]), flat(table["signature"])
    code, other = ints(names.indices, -1), ints(signatures.indices, -1)
    words, longer = names.dictionary.to_pylist(), [*signatures.dictionary.to_pylist(), None]
    pairs, inverse = np.unique(np.stack([code, other]), axis=1, return_inverse=True)
    made = [kernel_digest(words[a], longer[b]) for a, b in pairs.T.tolist()]
    hashed = pa.DictionaryArray.from_arrays(from_numpy(inverse.reshape(-1).astype(np.int32)), strings(made))
    table = _set(table, "name", reworded(hashed, lambda word: word))
    return _set(table, "signature", pa.nulls(len(table), table.schema.field("signature").type))


def _ranges(table: pa.Table, kept: Set[str]) -> pa.Table:
    def name(word: str) -> str:
        section = _SECTION.match(word)
        if section is not None:  # the job as the log's scrub writes it
            return word[: section.start("job")] + plain(section["job"]) + word[section.end("job") :]
        return plain(word) if word in kept else OTHER

    table = _set(table, "name", reworded(table["name"], name))
    return _set(table, "domain", reworded(table["domain"], _domain))


def _marks(table: pa.Table) -> pa.Table:
    """Only the shim's own: the lines of the log that its timeline tap wrote."""
    table = table.filter(pc.equal(table["domain"].cast(pa.string()), DOMAIN))
    return _words(table, "name")


def _domain(word: str) -> str:
    return word if word == DOMAIN else ""


def _metrics(table: pa.Table) -> pa.Table:
    words = flat(table["metric"]).dictionary.to_pylist()
    used = pa.array([word for word in words if rung_of(word) is not None], pa.string())
    table = table.filter(pc.is_in(table["metric"].cast(pa.string()), used))
    return _words(table, "metric")


def _addresses(table: pa.Table) -> pa.Table:
    """Addresses by their rank: an allocation and its free keep the same one."""
    _, rank = np.unique(flat(table["address"]).to_numpy(zero_copy_only=False), return_inverse=True)
    table = _set(table, "address", from_numpy(rank.reshape(-1).astype(np.uint64)))
    return _words(table, "memory")


def _overhead(table: pa.Table) -> pa.Table:
    own = flat(table["is_profiler"])
    words = pc.if_else(own, pa.scalar("profiler"), pa.scalar("cuda")).cast(pa.string())
    return _set(table, "name", reworded(words.dictionary_encode(), lambda word: word))


def _numbered(table: pa.Table, column: str) -> pa.Table:
    """Ids of the operating system by row number, from 1."""
    return _set(table, column, from_numpy(np.arange(1, len(table) + 1, dtype=np.int64)))


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return strings(None if word is None else plain(word) for word in column.to_pylist())


def _message(message: str) -> str:
    """What the profiler said in its own words is free text; what this tool says of the data is not."""
    head, said, _ = message.partition("the profiler says: ")
    return f"{head}the profiler said so" if said else plain_text(message)
