"""Facts about the capture, by allow-list: versions, clock, options that change what the rows mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from nvprof_tools.model.arrays import flat, ints, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Session
from nvprof_tools.sources import nsys_schema
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.rows import FAR, SessionClock

PLAIN = re.compile(r"[\w .,:;%+*-]{1,120}")
"""What an imported fact may look like: never a path."""

EXPORT_FACTS = {
    "EXPORT_PRODUCT_VERSION": "nsys_version",
    "EXPORT_SCHEMA_VERSION": "schema_version",
    "COLLECTOR_VERSION": "collector_version",
    "CUPTI_VERSION": "cupti_version",
    "EXPORT_PARAM_TIME_NORMALIZE": "time_normalize",
    "EXPORT_CONFIG_TIME_SHIFT": "time_shift_ns",
    "EXPORT_PARAM_TABLES_TO_EXPORT": "tables_exported",
    "EXPORT_PARAM_TIMES_TO_EXPORT": "times_exported",
}
CAPTURE_FACTS = {
    "CUDA_GRAPH_TRACE_OPTIONS:MODE": "cuda_graph_trace",
    "GPU_METRICS_OPTIONS:SAMPLING_FREQUENCY": "gpu_metrics_hz",
    "OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS": "os_threshold_ns",
    "COLLECT_GPU_MEMORY_USAGE": "gpu_memory_usage",
    "STOP_TRIGGER": "stop_trigger",
    "RUN_DURATION_MS": "run_duration_ms",
}
_PROCESS_OPTION = re.compile(r"^PROCESS_\d+:")


@dataclass(frozen=True)
class Metadata:
    """The session, its clock, what was asked to be captured, and what is doubtful about it."""

    session: Session
    clock: SessionClock
    traced: frozenset[str]
    quality: tuple[QualityItem, ...]


def read_metadata(raw: RawTables) -> Metadata:
    """Read every metadata table of an export."""
    quality: list[QualityItem] = []
    exported = _pairs(raw.read("META_DATA_EXPORT") if raw.has("META_DATA_EXPORT") else raw.read("EXPORT_META_DATA"))
    captured = [(_PROCESS_OPTION.sub("", name), value) for name, value in _pairs(raw.read("META_DATA_CAPTURE"))]
    system = _pairs(raw.read("TARGET_INFO_SYSTEM_ENV"))
    facts = {
        **_allowed(exported, EXPORT_FACTS),
        **_allowed(captured, CAPTURE_FACTS),
        **_allowed(system, nsys_schema.DRIVER_ENV),
    }
    shift = _integer(facts.get("time_shift_ns"))
    duration = _best(raw.read("ANALYSIS_DETAILS"), "duration", max)
    epoch = _best(raw.read("TARGET_INFO_SESSION_START_TIME"), "utcEpochNs", min)
    end = duration if duration is not None and 0 < duration < FAR else None
    if end is None:
        quality.append(
            QualityItem(
                "capture-end-unknown",
                Severity.NOTICE,
                1,
                "the capture's end is not recorded: its last event stands in",
                "",
            )
        )
    if epoch is None:
        quality.append(
            QualityItem("wall-clock-unknown", Severity.NOTICE, 1, "the capture's wall-clock start is not recorded", "")
        )
    partial = {"EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT"}
    quality.extend(_export_quality(facts, any(value for name, value in exported if name in partial)))
    traced = frozenset(value for name, value in captured if name == "CAPTURE_EVENT_TYPE" and value)
    return Metadata(Session(epoch, end, facts), SessionClock(shift or 0, end), traced, tuple(quality))


def _export_quality(facts: dict[str, str], partial: bool) -> Iterable[QualityItem]:
    if partial:
        yield QualityItem(
            "partial-export",
            Severity.NOTICE,
            1,
            "the export holds only some tables or times of the report: totals cover only those",
            "export without --tables and --times",
        )
    version = facts.get("schema_version")
    if version is None:
        yield QualityItem("schema-version-unknown", Severity.INFO, 1, "the export states no schema version", "")
        return
    numbers = tuple(_integer(part) or 0 for part in version.split(".")[:2])
    if numbers > nsys_schema.KNOWN_SCHEMA:
        known = ".".join(map(str, nsys_schema.KNOWN_SCHEMA))
        yield QualityItem(
            "schema-newer",
            Severity.NOTICE,
            1,
            f"the export's schema {version} is newer than the newest known one, {known}",
            "compare a few figures with nsys stats, or update this tool",
        )


def _pairs(table: pa.Table | None) -> list[tuple[str, str | None]]:
    if table is None:
        return []
    names, values = flat(table["name"]).to_pylist(), flat(table["value"]).to_pylist()
    return [(n, v) for n, v in zip(names, values, strict=True) if n]


def _allowed(pairs: list[tuple[str, str | None]], names: dict[str, str]) -> dict[str, str]:
    """Allow-listed names only; several values of one name are joined, each once, in order."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in names and value is not None and PLAIN.fullmatch(value):
            kept = found.setdefault(names[name], [])
            if value not in kept:
                kept.append(value)
    return {name: ",".join(values) for name, values in sorted(found.items())}


def _integer(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"-?\d{1,19}", text):
        return None
    value = int(text)
    return value if abs(value) < FAR else None


def _best(table: pa.Table | None, column: str, choose: object) -> int | None:
    if table is None:
        return None
    values = ints(table[column])[validity(table[column])]
    if len(values) == 0:
        return None
    return int(values.max() if choose is max else values.min())
