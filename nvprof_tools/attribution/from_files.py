"""Reads what the user named, finds the log inside the trace where none was named, and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.trace import AppLog, SourceInfo, Trace
from nvprof_tools.pipelines.load import builtin_pipelines, load_pipeline
from nvprof_tools.sources.cache import ImportCache
from nvprof_tools.sources.ncu import read_counters
from nvprof_tools.sources.nvml_samples import read_nvml
from nvprof_tools.sources.timeline_log import parse_log, read_log
from nvprof_tools.timeline import marks
from nvprof_tools.timeline.normalise import load_trace
from nvprof_tools.timeline.parallel import both


def attributed(
    trace: Path,
    *,
    log: Path | None,
    counters: Sequence[Path],
    pipeline: str | None,
    window: str | None,
    run: int | None,
    job: str | None,
    device: int | None,
    nvml: Path | None,
    limits: Limits,
    imports: ImportCache | None,
) -> tuple[Attribution, Trace]:
    """See :func:`nvprof_tools.attribution.run.attribute_files`: this reads and attributes whatever is kept.

    :param imports: takes imports from there, and keeps them.
    """
    pipelines = builtin_pipelines() if pipeline is None else (load_pipeline(pipeline),)
    loaded, given = both(
        lambda: load_trace(trace, limits) if imports is None else imports.load(trace, limits, load_trace),
        lambda: None if log is None else read_log(log, pipelines[0], limits),
    )
    app_log, items = find_log(None, loaded, pipelines[0], limits) if given is None else (given, [])
    table = read_counters(counters, limits) if counters else None
    samples = None if nvml is None else read_nvml(nvml, limits)
    found = attribute(loaded, app_log, pipelines, Options(window, job, device), run, table, samples)
    inputs = replace(found.inputs, counters=None if table is None else table.source)
    items += [] if table is None else table.quality
    return replace(found, inputs=inputs, quality=ordered([*found.quality, *items])), loaded


def find_log(
    path: Path | None, trace: Trace, pipeline: Pipeline, limits: Limits
) -> tuple[AppLog | None, list[QualityItem]]:
    """The log the user named, else the one the profiler stored in the trace, else the one its timeline marks carry; a
    stored one that cannot be read is said, not fatal."""
    if path is not None:
        return read_log(path, pipeline, limits), []
    marked = marks.read(trace)
    kind, text = ("embedded-log", trace.embedded_log) if trace.embedded_log is not None else ("marks", marked.text)
    if not text:
        return None, []
    try:
        return parse_log(text, pipeline, source=SourceInfo(kind, None, trace.source.sha256), limits=limits), []
    except SourceError as error:
        return None, [
            QualityItem("embedded-log-unusable", Severity.NOTICE, 1, error.message, "give the log with --log")
        ]
