"""Device work that cannot be as recorded: ends long after its stream went on, starts before its call, graphs unseen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import Bools, Ints, bools, flat, from_numpy, ints, to_numpy, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.timeline.host_calls import Draft

STREAM_TABLES = ("kernels", "copies", "memsets")
OVERLAP_NS = 100_000_000
"""Work of one stream runs one after the other; dependent launches overlap by micro- or milliseconds, never by this."""
SKEW_NS = 1_000
"""Kernels start after their call does; earlier by more than this, the two clocks disagree."""

GRAPH_LAUNCH = r"^cu(da)?GraphLaunch"


def clip_overlong(drafts: Mapping[str, Draft]) -> list[QualityItem]:
    """Cut device work short where the next work of its stream starts while it would still run for long.

    Graph nodes may run side by side and unified-memory copies belong to no stream; both are left alone.
    """
    present = [name for name in STREAM_TABLES if name in drafts and len(drafts[name]["start_ns"])]
    start = {name: ints(drafts[name]["start_ns"]) for name in present}
    end = {name: ints(drafts[name]["end_ns"]) for name in present}
    if not any(bool((end[n] - start[n] > OVERLAP_NS).any()) for n in present):
        return []
    serial = {
        name: ~validity(drafts[name]["graph_node"]) & validity(drafts[name]["correlation_id"]) for name in present
    }
    place = {name: np.flatnonzero(serial[name]) for name in present}
    keys = [
        np.concatenate([_key(drafts[n], c)[place[n]] for n in present])
        for c in ("process", "device", "context", "stream")
    ]
    starts = np.concatenate([start[n][place[n]] for n in present])
    ends = np.concatenate([end[n][place[n]] for n in present])
    following = _next_start(keys, starts)
    long = ends - following > OVERLAP_NS
    if not long.any():
        return []
    items, at = [], 0
    for name in present:
        here = long[at : at + len(place[name])]
        rows = place[name][here]
        if len(rows):
            most = int((ends - following)[at : at + len(here)][here].max())
            changed = end[name].copy()
            changed[rows] = following[at : at + len(here)][here]
            drafts[name]["end_ns"] = from_numpy(changed)
            items.append(_overlong(name, len(rows), most))
        at += len(here)
    return items


def _key(draft: Draft, column: str) -> Ints:
    return ints(draft[column])


def _next_start(keys: list[Ints], starts: Ints) -> Ints:
    """Start of the next row with the same keys, far in the future where there is none."""
    order = np.lexsort([starts, *keys])
    following = np.full(len(starts), np.iinfo(np.int64).max // 2)
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    following[order[:-1][same]] = starts[order[1:][same]]
    return following


def _overlong(name: str, rows: int, most: int) -> QualityItem:
    return QualityItem(
        "rows-end-implausible",
        Severity.DATA_LOSS,
        rows,
        f"{name}: {rows:,} rows end up to {most // 1_000_000:,} ms after their stream's next work starts; cut there",
        "the recorded end cannot be right: look at these rows in the profiler",
    )


def before_call(tables: Mapping[str, pa.Table]) -> list[QualityItem]:
    """Kernels that start before the call that launched them does."""
    kernels, calls = tables["kernels"], tables["api_calls"]
    if not kernels.num_rows or not calls.num_rows:
        return []
    linked = validity(kernels["api_call"])
    early = linked & (ints(kernels["start_ns"]) < ints(calls["start_ns"])[ints(kernels["api_call"])] - SKEW_NS)
    count = int(np.count_nonzero(early))
    if not count:
        return []
    message = f"{count:,} kernels start before their launch call does: the device's clock is off, or ids were reused"
    return [QualityItem("device-before-call", Severity.NOTICE, count, message)]


def unseen_graphs(tables: Mapping[str, pa.Table]) -> tuple[int, list[QualityItem]]:
    """Graph launches in the capture, and those of which no device work was recorded."""
    calls = tables["api_calls"]
    if not calls.num_rows:
        return 0, []
    name = flat(calls["name"])
    launches = bools(pc.match_substring_regex(name.dictionary, GRAPH_LAUNCH))[to_numpy(name.indices)]
    total = int(np.count_nonzero(launches))
    if not total:
        return 0, []
    seen: Bools = np.zeros(calls.num_rows, np.bool_)
    for table in (*STREAM_TABLES, "graphs"):
        cause = tables[table]["api_call"]
        seen[ints(cause)[validity(cause)]] = True
    unseen = int(np.count_nonzero(launches & ~seen))
    if not unseen:
        return total, []
    message = (
        f"{unseen:,} of {total:,} CUDA graph launches left no device work in the export: busy time is a lower bound"
    )
    hint = "capture with --cuda-graph-trace=node, or export with nsys 2024 or later"
    return total, [QualityItem("graph-work-unseen", Severity.DATA_LOSS, unseen, message, hint)]
