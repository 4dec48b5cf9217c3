"""NVTX rows to ranges, marks and names: push/pop and start/end ranges, domains, categories, open ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import Bools, Ints, bools, canonical, flat, from_numpy, ints, strings, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import nsys_schema
from nvprof_tools.timeline.host_calls import Draft
from nvprof_tools.timeline.ids import Codes, Identities, distinct, factorise
from nvprof_tools.timeline.rows import Account, SessionClock, keep_instants, keep_intervals, select
from nvprof_tools.timeline.words import Words, with_default

_PAYLOADS = ("uint64Value", "int64Value", "uint32Value", "int32Value")


@dataclass
class Nvtx:
    """What NVTX_EVENTS holds."""

    ranges: Draft
    marks: Draft
    thread_names: list[tuple[int, int, str]] = field(default_factory=list)
    """(globalTid as stored, time in the file, name)."""
    quality: list[QualityItem] = field(default_factory=list)


def nvtx_events(
    table: pa.Table, clock: SessionClock, words: Words, ids: Identities, account: Account, last_ns: int
) -> Nvtx:
    """Split NVTX_EVENTS by type.

    :param last_ns: where an open range ends, on the session clock, when the capture's end is unknown.
    """
    account.read += table.num_rows
    kind, given = ints(table["eventType"]), validity(table["globalTid"])
    push_pop, start_end = np.isin(kind, nsys_schema.NVTX_PUSH_POP), np.isin(kind, nsys_schema.NVTX_START_END)
    ranged, mark = push_pop | start_end, kind == nsys_schema.NVTX_MARK
    account.set_aside("rows-not-events", int(np.count_nonzero(~ranged & ~mark)))
    account.set_aside("rows-without-thread", int(np.count_nonzero((ranged | mark) & ~given)))
    meta = select(
        table, given & np.isin(kind, (nsys_schema.NVTX_DOMAIN, nsys_schema.NVTX_CATEGORY, nsys_schema.NVTX_THREAD))
    )
    labels = _Labels(meta, words, ids)
    ranges = _ranges(table, ranged & given, clock, words, ids, account, last_ns, labels)
    marks, times = keep_instants(table, "start", clock, account, mark & given)
    process, thread = ids.thread_codes(marks["globalTid"])
    result = Nvtx(
        ranges,
        {
            "time_ns": from_numpy(times),
            "process": from_numpy(process),
            "thread": from_numpy(thread),
            **labels.of(marks, process),
            "name": _names(marks, words),
            "payload": _payload(marks),
        },
        _thread_names(meta, words),
    )
    if bool((kind == nsys_schema.NVTX_DOMAIN).any()) and not ranged.any():
        result.quality.append(
            QualityItem(
                "nvtx-ranges-lost",
                Severity.DATA_LOSS,
                1,
                "NVTX domains were created but no range was recorded",
                "nsys up to 2023.4 loses ranges of the Python package nvtx from 0.2.12 on: use 0.2.11 or a newer nsys",
            )
        )
    still_open = int(np.count_nonzero(bools(ranges["open"])))
    if still_open:
        result.quality.append(
            QualityItem(
                "nvtx-ranges-open",
                Severity.NOTICE,
                still_open,
                f"{still_open:,} NVTX ranges were open when the capture ended and are closed there",
                "",
            )
        )
    return result


def _ranges(
    table: pa.Table,
    wanted: Bools,
    clock: SessionClock,
    words: Words,
    ids: Identities,
    account: Account,
    last_ns: int,
    labels: _Labels,
) -> Draft:
    stop = last_ns if clock.end_ns is None else clock.end_ns
    unclosed = wanted & ~validity(table["end"])
    if unclosed.any():
        end = np.where(unclosed, np.maximum(stop + clock.shift_ns, ints(table["start"])), ints(table["end"]))
        ended = validity(table["end"]) | unclosed
        table = table.set_column(table.column_names.index("end"), "end", from_numpy(end, ended))
    flagged = table.append_column("unclosed", from_numpy(unclosed))
    kept, start, end = keep_intervals(flagged, clock, account, wanted)
    process, thread = ids.thread_codes(kept["globalTid"])
    _, end_thread = ids.thread_codes(kept["endGlobalTid"])
    opened = bools(kept["unclosed"])
    return {
        "start_ns": from_numpy(start),
        "end_ns": from_numpy(end),
        "process": from_numpy(process),
        "thread": from_numpy(thread),
        "end_thread": from_numpy(end_thread, (end_thread >= 0) & (end_thread != thread)),
        **labels.of(kept, process),
        "name": _names(kept, words),
        "push_pop": from_numpy(np.isin(ints(kept["eventType"]), nsys_schema.NVTX_PUSH_POP)),
        "open": from_numpy(opened | (end >= stop) if clock.end_ns is not None else opened),
        "payload": _payload(kept),
    }


def _name_codes(table: pa.Table, words: Words) -> tuple[Codes, pa.Array]:
    """The plain text, else the registered string, else nothing."""
    plain, texts = factorise(table["text"])
    registered, strung = words.places(table["textId"])
    either = np.where(plain >= 0, plain, np.where(registered >= 0, registered + np.int32(len(texts)), np.int32(-1)))
    return either.astype(np.int32), pa.concat_arrays([texts, strung])


def _names(table: pa.Table, words: Words) -> pa.DictionaryArray:
    return canonical(*with_default(*_name_codes(table, words), ""))


def _payload(table: pa.Table) -> pa.Array:
    """The integer payload, whichever column holds it; an unsigned one keeps its bits."""
    value = np.zeros(table.num_rows, np.int64)
    given = np.zeros(table.num_rows, np.bool_)
    for column in _PAYLOADS:
        fresh = validity(table[column]) & ~given
        value = np.where(fresh, ints(table[column]), value)
        given |= fresh
    return from_numpy(value, given)


class _Labels:
    """Names of domains, numbered per process, and of categories, numbered per domain."""

    def __init__(self, meta: pa.Table, words: Words, ids: Identities) -> None:
        self.domains: dict[tuple[int, int], str] = {}
        self.categories: dict[tuple[int, int, int], str] = {}
        codes, texts = _name_codes(meta, words)
        named = texts.take(from_numpy(np.maximum(codes, 0))).to_pylist() if len(texts) else [None] * len(codes)
        kinds = ints(meta["eventType"]).tolist()
        rows = zip(
            kinds,
            ints(meta["globalTid"]).tolist(),
            ints(meta["domainId"]).tolist(),
            ints(meta["category"]).tolist(),
            codes.tolist(),
            named,
            strict=True,
        )
        self._ids = ids
        for kind, tid, domain, category, code, name in rows:
            if code < 0 or name is None:
                continue
            process = tid >> 24
            if kind == nsys_schema.NVTX_DOMAIN:
                self.domains.setdefault((process, domain), name)
            elif kind == nsys_schema.NVTX_CATEGORY:
                self.categories.setdefault((process, domain, category), name)

    def of(self, table: pa.Table, process: Codes) -> Draft:
        """``domain`` and ``category`` columns."""
        machine = from_numpy(ints(table["globalTid"]) >> 24)
        domain, keys = distinct(machine, flat(table["domainId"]))
        category, triples = distinct(machine, flat(table["domainId"]), flat(table["category"]))
        domains = [self.domains.get((k[0], k[1]), "" if k[1] == 0 else f"domain {k[1]}") for k in keys]
        labels = [self.categories.get((k[0], k[1], k[2]), str(k[2])) for k in triples]
        none = np.array([k[2] == 0 for k in triples], np.bool_)
        if len(none):
            category = np.where(none[category], np.int32(-1), category).astype(np.int32)
        return {"domain": canonical(domain, strings(domains)), "category": canonical(category, strings(labels))}


def _thread_names(meta: pa.Table, words: Words) -> list[tuple[int, int, str]]:
    rows = select(meta, ints(meta["eventType"]) == nsys_schema.NVTX_THREAD)
    codes, texts = _name_codes(rows, words)
    tids: Ints = ints(rows["globalTid"])
    times: Ints = ints(rows["start"])
    return [
        (int(tid), int(time), str(texts[int(code)].as_py()))
        for tid, time, code in zip(tids, times, codes, strict=True)
        if code >= 0
    ]
