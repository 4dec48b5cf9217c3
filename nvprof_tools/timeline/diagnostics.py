"""What the profiler says of its own capture, as rows and as quality items."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import flat, from_numpy, ints, strings, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import nsys_schema
from nvprof_tools.timeline.gpu_work import _enum
from nvprof_tools.timeline.host_calls import Draft, without_paths
from nvprof_tools.timeline.ids import Identities, process_of
from nvprof_tools.timeline.rows import Account, SessionClock

_LOSS = (
    (
        "events-lost",
        re.compile(
            r"not all .*events might have been collected|events may be missing|dropped|wrong event order", re.IGNORECASE
        ),
        "end the program before the capture ends, or capture a shorter stretch",
    ),
    ("trace-truncated", re.compile(r"reached the size limit", re.IGNORECASE), "capture a shorter stretch"),
)
_HARMLESS = re.compile(
    r"no [\w ]+ events collected|might have not been started correctly|scheduling information is absent", re.IGNORECASE
)
"""Said once for every helper process that uses no GPU, and of every capture without context switches."""

MAX_TEXT = 300


def diagnostics(
    table: pa.Table, clock: SessionClock, ids: Identities, account: Account
) -> tuple[Draft, list[QualityItem]]:
    """DIAGNOSTIC_EVENT. Times may lie past the capture's end; an unusable one is null."""
    account.read += table.num_rows
    times, fine = clock.apply(ints(table["timestamp"]))
    words = [_one_line(t) for t in without_paths(flat(table["text"])).to_pylist()]
    severity = ints(table["severity"]).tolist()
    process, known = [], []
    for value, given in zip(ints(table["globalPid"]).tolist(), validity(table["globalPid"]), strict=True):
        code = ids.processes.codes.get(process_of(value & 0xFFFF_FFFF_FFFF_FFFF), -1) if given else -1
        process.append(max(code, 0))
        known.append(code >= 0)
    draft = {
        "time_ns": from_numpy(times, fine & validity(table["timestamp"])),
        "severity": _enum(table, "severity", nsys_schema.SEVERITIES, "unknown"),
        "source": _enum(table, "source", nsys_schema.DIAGNOSTIC_SOURCES, "unknown"),
        "text": strings(words),
        "process": from_numpy(np.array(process, np.int32), np.array(known, np.bool_)),
    }
    return draft, [
        item for level, text in zip(severity, words, strict=True) if (item := _item(level, text)) is not None
    ]


def _one_line(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def _item(level: int, text: str) -> QualityItem | None:
    for slug, pattern, hint in _LOSS:
        if pattern.search(text):
            return QualityItem(slug, Severity.DATA_LOSS, 1, f"the profiler says: {text}", hint)
    name = nsys_schema.SEVERITIES.get(level, "unknown")
    if _HARMLESS.search(text):
        return QualityItem("profiler-note", Severity.INFO, 1, f"the profiler says: {text}")
    if name == "warning":
        return QualityItem("profiler-warning", Severity.NOTICE, 1, f"the profiler says: {text}")
    if name == "error":
        return QualityItem("profiler-error", Severity.DATA_LOSS, 1, f"the profiler says: {text}")
    return None
