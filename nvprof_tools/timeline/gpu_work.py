"""What ran on devices: kernels, copies, memsets, graph launches and synchronisations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import Ints, canonical, from_numpy, ints, strings, validity
from nvprof_tools.sources import nsys_schema
from nvprof_tools.timeline.host_calls import Draft, correlation
from nvprof_tools.timeline.ids import Codes, Identities, distinct, factorise
from nvprof_tools.timeline.parallel import side_by_side
from nvprof_tools.timeline.rows import Account, SessionClock, keep_intervals, optional
from nvprof_tools.timeline.words import Words, with_default


def _work(table: pa.Table, start: Ints, end: Ints, ids: Identities) -> Draft:
    process = ids.process_codes(table["globalPid"])
    return {
        "start_ns": from_numpy(start),
        "end_ns": from_numpy(end),
        "process": from_numpy(process),
        "device": from_numpy(ids.device_codes(process, ints(table["deviceId"]))),
        "context": from_numpy(ints(table["contextId"])),
        "stream": from_numpy(ints(table["streamId"])),
        "correlation_id": correlation(table),
    }


def _enum(table: pa.Table, column: str, labels: Mapping[int, str], default: str | None) -> pa.DictionaryArray:
    codes, distinct = factorise(table[column])
    words = strings([labels.get(int(v), f"unknown-{int(v)}") for v in ints(distinct).tolist()])
    return canonical(*with_default(codes, words, default))


def kernels(table: pa.Table, clock: SessionClock, words: Words, ids: Identities, account: Account) -> Draft:
    """CUPTI_ACTIVITY_KIND_KERNEL."""
    account.read += table.num_rows
    table, start, end = keep_intervals(table, clock, account)
    launch, told = ints(table["launchType"]), validity(table["launchType"])
    sizes = [(f"{b}_{a}", f"{b}{a.upper()}") for b in ("grid", "block") for a in "xyz"]
    with side_by_side() as steps:
        name = steps.begin(lambda: _kernel_name(table, words))
        texts = [steps.begin(partial(words.names, table[column])) for column in ("demangledName", "mangledName")]
        sized = {made: steps.begin(partial(optional, table, column, pa.int32())) for made, column in sizes}
        work = _work(table, start, end, ids)
    return {
        **work,
        **{made: size() for made, size in sized.items()},
        "graph_node": from_numpy(ints(table["graphNodeId"]), validity(table["graphNodeId"])),
        "name": name(),
        "signature": texts[0](),
        "mangled": texts[1](),
        "cooperative": from_numpy(
            np.isin(launch, nsys_schema.COOPERATIVE_LAUNCHES),
            told & np.isin(launch, (nsys_schema.REGULAR_LAUNCH, *nsys_schema.COOPERATIVE_LAUNCHES)),
        ),
        "registers": optional(table, "registersPerThread", pa.int32()),
        "shared_bytes": _shared(table),
    }


def _kernel_name(table: pa.Table, words: Words) -> pa.DictionaryArray:
    """The base name, else the full one."""
    short, base = words.places(table["shortName"])
    if (short >= 0).all():
        return canonical(short, base)
    full, signature = words.places(table["demangledName"])
    either = np.where(short >= 0, short, np.where(full >= 0, full + np.int32(len(base)), np.int32(-1)))
    return canonical(*with_default(either.astype(np.int32), pa.concat_arrays([base, signature]), "unknown"))


def _shared(table: pa.Table) -> pa.Array:
    static, dynamic = ints(table["staticSharedMemory"]), ints(table["dynamicSharedMemory"])
    given = validity(table["staticSharedMemory"]) & validity(table["dynamicSharedMemory"])
    fits = given & (np.abs(static) < 1 << 30) & (np.abs(dynamic) < 1 << 30)
    return from_numpy(np.where(fits, static + dynamic, 0).astype(np.int32), fits)


def copies(table: pa.Table, clock: SessionClock, ids: Identities, account: Account) -> Draft:
    """CUPTI_ACTIVITY_KIND_MEMCPY."""
    account.read += table.num_rows
    table, start, end = keep_intervals(table, clock, account)
    return {
        **_work(table, start, end, ids),
        "graph_node": from_numpy(ints(table["graphNodeId"]), validity(table["graphNodeId"])),
        "kind": _enum(table, "copyKind", nsys_schema.MEMCPY_KINDS, "unknown"),
        "bytes": from_numpy(ints(table["bytes"])),
        "source_memory": _enum(table, "srcKind", nsys_schema.MEMORY_KINDS, None),
        "target_memory": _enum(table, "dstKind", nsys_schema.MEMORY_KINDS, None),
        "copy_count": from_numpy(ints(table["copyCount"]), validity(table["copyCount"])),
    }


def memsets(table: pa.Table, clock: SessionClock, ids: Identities, account: Account) -> Draft:
    """CUPTI_ACTIVITY_KIND_MEMSET."""
    account.read += table.num_rows
    table, start, end = keep_intervals(table, clock, account)
    return {
        **_work(table, start, end, ids),
        "graph_node": from_numpy(ints(table["graphNodeId"]), validity(table["graphNodeId"])),
        "bytes": from_numpy(ints(table["bytes"])),
    }


def graphs(table: pa.Table, clock: SessionClock, ids: Identities, account: Account) -> Draft:
    """CUPTI_ACTIVITY_KIND_GRAPH_TRACE."""
    account.read += table.num_rows
    table, start, end = keep_intervals(table, clock, account)
    return {
        **_work(table, start, end, ids),
        "graph_id": from_numpy(ints(table["graphId"]), validity(table["graphId"])),
        "graph_exec_id": from_numpy(ints(table["graphExecId"]), validity(table["graphExecId"])),
    }


def syncs(table: pa.Table, clock: SessionClock, ids: Identities, account: Account, work: Iterable[Draft]) -> Draft:
    """CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.

    :param work: kernels and copies: their context tells a wait's device, which the wait's own row has wrong at times.
    """
    account.read += table.num_rows
    table, start, end = keep_intervals(table, clock, account)
    process = ids.process_codes(table["globalPid"])
    context = ints(table["contextId"])
    stream = ints(table["streamId"])
    none = ~validity(table["streamId"]) | np.isin(stream, (nsys_schema.NO_STREAM, -1))
    return {
        "start_ns": from_numpy(start),
        "end_ns": from_numpy(end),
        "process": from_numpy(process),
        "device": from_numpy(_device_of_context(process, context, ints(table["deviceId"]), ids, work)),
        "context": from_numpy(context),
        "correlation_id": correlation(table),
        "stream": from_numpy(np.where(none, 0, stream), ~none),
        "kind": _enum(table, "syncType", nsys_schema.SYNC_KINDS, "unknown"),
    }


def _device_of_context(process: Codes, context: Ints, ordinal: Ints, ids: Identities, work: Iterable[Draft]) -> Codes:
    known: dict[tuple[int, ...], int] = {}
    for draft in work:
        _, combos = distinct(draft["process"], draft["context"], draft["device"])
        known.update(((p, c), d) for p, c, d in combos)
    codes, pairs = distinct(from_numpy(process), from_numpy(context))
    found = np.array([known.get(pair, -1) for pair in pairs] or [0], np.int32)[codes]
    lost = found < 0
    if lost.any():
        found[lost] = ids.device_codes(process[lost], ordinal[lost])
    return found


__all__ = ["Codes", "copies", "graphs", "kernels", "memsets", "syncs"]
