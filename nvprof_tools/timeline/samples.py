"""Samples and instants of devices: GPU metrics and device memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import Ints, canonical, flat, from_numpy, ints, strings, to_numpy, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import nsys_schema
from nvprof_tools.timeline.gpu_work import _enum
from nvprof_tools.timeline.host_calls import Draft, correlation
from nvprof_tools.timeline.ids import Identities, factorise
from nvprof_tools.timeline.rows import Account, SessionClock, keep_instants

GPU_OF_TYPE = 0xFF
"""The lowest byte of a metric's type id is the number of the physical GPU."""

WRAPPED = 2.0**64


def gpu_metrics(
    table: pa.Table, described: pa.Table | None, clock: SessionClock, ids: Identities, account: Account
) -> tuple[Draft, list[QualityItem]]:
    """GPU_METRICS, named through TARGET_INFO_GPU_METRICS by (typeId, metricId)."""
    account.read += table.num_rows
    table, times = keep_instants(table, "timestamp", clock, account)
    kind, kinds = factorise(table["typeId"])
    metric, metrics = factorise(table["metricId"])
    labels, scales = _metric_labels(described)
    kind_ids, metric_ids = ints(kinds).tolist(), ints(metrics).tolist()
    words = [labels.get((k, m), f"metric {m}") for k in kind_ids for m in metric_ids]
    codes = (kind.astype(np.int64) * max(len(metric_ids), 1) + metric).astype(np.int32)
    value, items = _values(ints(table["value"]), codes, words, validity(table["value"]))
    scale = np.array([scales.get((k, m), 1) for k in kind_ids for m in metric_ids] or [1], np.int64)
    if (scale != 1).any():
        value = from_numpy(to_numpy(value).astype(np.float64) / scale[codes], validity(value))
    return {
        "time_ns": from_numpy(times),
        "device": from_numpy(ids.sampled_device_codes(ints(table["typeId"]) & GPU_OF_TYPE)),
        "metric": canonical(codes, strings(words)),
        "value": value,
    }, items


def _metric_labels(described: pa.Table | None) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], int]]:
    """Names, and by what the values are divided, by (typeId, metricId)."""
    if described is None:
        return {}, {}
    rows = zip(
        ints(described["typeId"]).tolist(),
        ints(described["metricId"]).tolist(),
        flat(described["metricName"]).to_pylist(),
        flat(described["scale"]).to_pylist(),
        strict=True,
    )
    known = [((kind, metric), name, scale) for kind, metric, name, scale in rows]
    return {key: name for key, name, _ in known if name}, {key: scale for key, _, scale in known if scale}


def _values(raw: Ints, codes: np.ndarray, words: list[str], given: np.ndarray) -> tuple[pa.Array, list[QualityItem]]:
    """Unsigned 64-bit values that SQLite holds as signed. A share of more than 2⁶³ percent cannot be: null."""
    value = raw.astype(np.float64)
    negative = given & (raw < 0)
    if not negative.any():
        return from_numpy(value, given), []
    percent = np.array(["%" in w for w in words] or [False], np.bool_)[codes]
    value = np.where(negative, value + WRAPPED, value)
    wrong = int(np.count_nonzero(negative))
    item = QualityItem(
        "metric-values-implausible",
        Severity.NOTICE,
        wrong,
        f"{wrong:,} GPU metric samples are above 2^63: read as unsigned, and shares among them as not measured",
        "",
    )
    return from_numpy(value, given & ~(negative & percent)), [item]


def memory_events(table: pa.Table, clock: SessionClock, ids: Identities, account: Account) -> Draft:
    """CUDA_GPU_MEMORY_USAGE_EVENTS."""
    account.read += table.num_rows
    table, times = keep_instants(table, "start", clock, account)
    process = ids.process_codes(table["globalPid"])
    return {
        "time_ns": from_numpy(times),
        "process": from_numpy(process),
        "device": from_numpy(ids.device_codes(process, ints(table["deviceId"]))),
        "free": from_numpy(ints(table["memoryOperationType"]) != 0),
        "bytes": from_numpy(ints(table["bytes"])),
        "address": from_numpy(ints(table["address"]).view(np.uint64)),
        "memory": _enum(table, "memKind", nsys_schema.MEMORY_KINDS, "unknown"),
        "correlation_id": correlation(table),
    }
