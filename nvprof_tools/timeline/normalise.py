"""An export to a Trace: one clock, dense identifiers, names resolved, every row accounted for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from nvprof_tools.errors import InvariantError
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.arrays import canonical, flat, from_numpy, ints, validity
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.tables import SPECS, TABLES, TableSpec
from nvprof_tools.model.trace import Session, SourceInfo, Trace
from nvprof_tools.sources import registry
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline import gpu_work, host_calls, samples
from nvprof_tools.timeline.correlate import CallIndex
from nvprof_tools.timeline.diagnostics import diagnostics
from nvprof_tools.timeline.embedded_log import embedded_log
from nvprof_tools.timeline.host_calls import Draft
from nvprof_tools.timeline.ids import Identities
from nvprof_tools.timeline.json_metrics import generic_metrics
from nvprof_tools.timeline.memory import aside
from nvprof_tools.timeline.nvtx_ranges import nvtx_events
from nvprof_tools.timeline.parallel import side_by_side
from nvprof_tools.timeline.plausible import before_call, clip_overlong, unseen_graphs
from nvprof_tools.timeline.rows import Account, SessionClock, conform
from nvprof_tools.timeline.session import Metadata, read_metadata
from nvprof_tools.timeline.threads import Numbering, number
from nvprof_tools.timeline.words import Words

_CODED = {"process": "process", "thread": "thread", "end_thread": "thread", "device": "device"}
READ_ORDER = (
    "META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "ANALYSIS_DETAILS",
    "TARGET_INFO_SESSION_START_TIME", "StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "PROFILER_OVERHEAD",
    "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUDA_GPU_MEMORY_USAGE_EVENTS", "NVTX_EVENTS", "GPU_METRICS",
)  # fmt: skip
"""The order normalising asks for tables in, so that they can be read ahead."""

_MADE_OF = {"nvtx": ("nvtx_ranges", "nvtx_marks")}
"""Accounts whose rows end up in tables of other names."""
_CUDA_TABLES = ("kernels", "copies", "memsets", "syncs")


def load_trace(path: Path, limits: Limits = DEFAULT_LIMITS) -> Trace:
    """Read a capture in any form the registry knows.

    :raises SourceError: it cannot be used; the slug says why.
    """
    raw = registry.read(path, limits)
    if isinstance(raw, Trace):
        return raw
    with raw:
        return normalise(raw, limits)


@dataclass
class _Work:
    """What has been read so far."""

    raw: RawTables
    limits: Limits
    metadata: Metadata
    words: Words
    ids: Identities = field(default_factory=Identities)
    drafts: dict[str, Draft] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    quality: list[QualityItem] = field(default_factory=list)
    nvtx_names: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def clock(self) -> SessionClock:
        return self.metadata.clock

    def account(self, name: str) -> Account:
        return self.accounts.setdefault(name, Account(name))

    def gpu_drafts(self) -> list[Draft]:
        return [self.drafts[name] for name in ("kernels", "copies", "memsets") if name in self.drafts]

    def add(self, name: str, table: str, make: Callable[[pa.Table, Account], Draft]) -> None:
        """Make a draft of a table where the export has it; a second draft of the same name is appended."""
        rows = self.raw.read(table)
        if rows is None:
            return
        draft = make(rows, self.account(name))
        known = self.drafts.get(name)
        self.drafts[name] = _aside(draft if known is None else _joined(known, draft))


def _aside(draft: Draft) -> Draft:
    """The draft, held so that it takes little memory where that is capped."""
    table = aside(pa.table(draft))
    return {name: flat(table[name]) for name in draft}


def _joined(first: Draft, second: Draft) -> Draft:
    return {name: _appended(first[name], second[name]) for name in first}


def _appended(first: pa.Array, second: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(first.type):
        return pa.concat_arrays([first, second])
    words = pa.concat_arrays([first.dictionary, second.dictionary])
    moved = np.where(validity(second), ints(second.indices) + len(first.dictionary), -1)
    codes = np.concatenate([np.where(validity(first), ints(first.indices), -1), moved])
    return canonical(codes.astype(np.int32), words)


def normalise(raw: RawTables, limits: Limits = DEFAULT_LIMITS) -> Trace:
    """Bring an export's tables onto one clock."""
    raw.read_ahead(READ_ORDER)
    work = _Work(raw, limits, read_metadata(raw), Words(raw.strings))
    _read_host(work)
    _read_gpu(work)
    work.quality.extend(clip_overlong(work.drafts))
    _read_nvtx(work)
    _read_samples(work)
    numbering = number(raw, work.words, work.ids, work.nvtx_names)
    tables, quality = _finish(work, numbering)
    _accounted(work, tables)
    launches, unseen = unseen_graphs(tables)
    measured = _measured(work, tables, launches)
    facts = work.metadata.session.facts
    log = embedded_log(raw, work.words)
    items = [
        *raw.quality,
        *work.metadata.quality,
        *work.quality,
        *quality,
        *unseen,
        *before_call(tables),
        *_silent(measured),
        *_nameless(work.words),
        *numbering.quality,
        *(item for account in work.accounts.values() for item in account.quality()),
    ]
    version = facts.get("nsys_version", facts.get("collector_version"))
    source = SourceInfo(raw.kind, version, raw.sha256(), facts.get("schema_version"))
    return Trace(source, _session(work, tables), tables, measured, ordered(items), log)


def _read_host(work: _Work) -> None:
    clock, words, ids = work.clock, work.words, work.ids
    work.add("api_calls", "CUPTI_ACTIVITY_KIND_RUNTIME", lambda t, a: host_calls.api_calls(t, clock, words, ids, a))
    work.add("os_calls", "OSRT_API", lambda t, a: host_calls.os_calls(t, clock, words, ids, a))
    for table in ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"):
        work.add("profiler_overhead", table, lambda t, a: host_calls.profiler_overhead(t, clock, words, ids, a))


def _read_gpu(work: _Work) -> None:
    clock, words, ids = work.clock, work.words, work.ids
    kind = "CUPTI_ACTIVITY_KIND_"
    work.add("kernels", f"{kind}KERNEL", lambda t, a: gpu_work.kernels(t, clock, words, ids, a))
    work.add("copies", f"{kind}MEMCPY", lambda t, a: gpu_work.copies(t, clock, ids, a))
    work.add("memsets", f"{kind}MEMSET", lambda t, a: gpu_work.memsets(t, clock, ids, a))
    work.add("graphs", f"{kind}GRAPH_TRACE", lambda t, a: gpu_work.graphs(t, clock, ids, a))
    work.add("syncs", f"{kind}SYNCHRONIZATION", lambda t, a: gpu_work.syncs(t, clock, ids, a, work.gpu_drafts()))
    work.add("memory_events", "CUDA_GPU_MEMORY_USAGE_EVENTS", lambda t, a: samples.memory_events(t, clock, ids, a))


def _read_nvtx(work: _Work) -> None:
    rows = work.raw.read("NVTX_EVENTS")
    if rows is None:
        return
    account = work.account("nvtx")
    seen = [int(ints(d["end_ns"]).max()) for d in work.drafts.values() if "end_ns" in d and len(d["end_ns"])]
    found = nvtx_events(rows, work.clock, work.words, work.ids, account, max(seen, default=0))
    work.drafts["nvtx_ranges"], work.drafts["nvtx_marks"] = found.ranges, found.marks
    work.nvtx_names = found.thread_names
    work.quality.extend(found.quality)


def _read_samples(work: _Work) -> None:
    raw, clock, ids = work.raw, work.clock, work.ids

    def metrics(table: pa.Table, account: Account) -> Draft:
        draft, items = samples.gpu_metrics(table, raw.read("TARGET_INFO_GPU_METRICS"), clock, ids, account)
        work.quality.extend(items)
        return draft

    def generic(table: pa.Table, account: Account) -> Draft:
        draft, items = generic_metrics(table, raw, work.words, clock, ids, account, work.limits.json_depth)
        work.quality.extend(items)
        return draft

    def said(table: pa.Table, account: Account) -> Draft:
        draft, items = diagnostics(table, clock, ids, account)
        work.quality.extend(items)
        return draft

    if raw.has("GPU_METRICS"):
        work.add("gpu_metrics", "GPU_METRICS", metrics)
    else:
        work.add("gpu_metrics", "GENERIC_EVENTS", generic)
    work.add("diagnostics", "DIAGNOSTIC_EVENT", said)


def _finish(work: _Work, numbering: Numbering) -> tuple[dict[str, pa.Table], list[QualityItem]]:
    """Final row numbers, order and links."""
    codes = {"process": numbering.process, "thread": numbering.thread, "device": numbering.device}

    def conformed(spec: TableSpec, index: Callable[[], CallIndex | None]) -> pa.Table:
        draft = work.drafts.pop(spec.name, None)
        if draft is None:
            return spec.empty()
        for column, kind in _CODED.items():
            if column in draft:
                provisional = ints(draft[column])
                draft[column] = from_numpy(codes[kind][provisional], validity(draft[column]))
        if any(c.name == "api_call" for c in spec.columns):
            draft["api_call"] = _calls(index(), draft)
        return aside(conform(spec, draft)[0])

    def called() -> tuple[pa.Table, CallIndex]:
        calls = conformed(TABLES["api_calls"], lambda: None)
        given = validity(calls["correlation_id"])
        return calls, CallIndex(ints(calls["process"]), ints(calls["correlation_id"]), given)

    with side_by_side() as steps:
        calls = steps.begin(called)
        others = [spec for spec in SPECS if spec.name not in {"api_calls", *numbering.tables}]
        made = {spec.name: steps.begin(partial(conformed, spec, lambda: calls()[1])) for spec in others}
    known = {"api_calls": calls()[0], **numbering.tables, **{name: table() for name, table in made.items()}}
    tables = {spec.name: known[spec.name] for spec in SPECS}
    return tables, [*_ambiguous(calls()[1]), *_unlaunched(tables)]


def _accounted(work: _Work, tables: Mapping[str, pa.Table]) -> None:
    """Every row read is in a table or was set aside for a reason.

    :raises InvariantError: ``rows-unaccounted``.
    """
    for account in work.accounts.values():
        if account.table == "gpu_metrics" and not work.raw.has("GPU_METRICS"):
            continue  # one event holds many samples
        made = sum(tables[name].num_rows for name in _MADE_OF.get(account.table, (account.table,)))
        if made != account.kept:
            message = f"{account.table}: {account.read:,} rows read, {account.kept:,} accounted for, {made:,} there"
            raise InvariantError("rows-unaccounted", message, "report it with the trace, or a golden of it")


def _calls(index: CallIndex | None, draft: Mapping[str, pa.Array]) -> pa.Array:
    rows = len(draft["process"])
    if index is None:
        return from_numpy(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
    given = validity(draft["correlation_id"])
    row, found = index.find(ints(draft["process"]), ints(draft["correlation_id"]), given)
    return from_numpy(row, found)


def _ambiguous(index: CallIndex) -> list[QualityItem]:
    if not index.ambiguous:
        return []
    message = f"{index.ambiguous:,} API calls share a correlation id with an earlier one of their process"
    return [QualityItem("correlation-ambiguous", Severity.NOTICE, index.ambiguous, message)]


def _unlaunched(tables: Mapping[str, pa.Table]) -> list[QualityItem]:
    kernels = tables["kernels"]
    lost = int(kernels["api_call"].null_count)
    if not lost:
        return []
    message = f"{lost:,} of {kernels.num_rows:,} kernels have no launch call in the capture; they are kept"
    return [QualityItem("kernels-unlaunched", Severity.NOTICE, lost, message)]


def _measured(work: _Work, tables: Mapping[str, pa.Table], graph_launches: int) -> frozenset[str]:
    """Tables with rows, and those of which none can only mean that none happened, since the capture looked."""
    found = {name for name, table in tables.items() if table.num_rows}
    facts = work.metadata.session.facts
    if "api_calls" in found:
        found.update(_CUDA_TABLES)
        if graph_launches == 0:
            found.add("graphs")
        if facts.get("gpu_memory_usage") == "true":
            found.add("memory_events")
    if "OSRuntime" in work.metadata.traced and found & {"api_calls", "nvtx_ranges"}:
        found.add("os_calls")
    if found & {"nvtx_ranges", "nvtx_marks"}:
        found.update(("nvtx_ranges", "nvtx_marks"))
    return frozenset(found)


def _silent(measured: frozenset[str]) -> list[QualityItem]:
    if measured & {"api_calls", "kernels", "copies", "memsets", "graphs"}:
        return []
    message = "the capture holds no CUDA activity: whatever the GPU did was not measured"
    return [QualityItem("cuda-not-measured", Severity.NOTICE, 1, message, "capture with --trace=cuda,nvtx,osrt")]


def _nameless(words: Words) -> list[QualityItem]:
    if not words.missing:
        return []
    message = f"{len(words.missing):,} string ids have no text in the export: their names are unknown"
    return [QualityItem("strings-missing", Severity.DATA_LOSS, len(words.missing), message, "export the report again")]


def _session(work: _Work, tables: Mapping[str, pa.Table]) -> Session:
    session = work.metadata.session
    if session.end_ns is not None:
        return session
    ends = [int(ints(t["end_ns"]).max()) for t in tables.values() if "end_ns" in t.column_names and t.num_rows]
    return replace(session, end_ns=max(ends)) if ends else session
