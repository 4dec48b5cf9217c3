"""From a trace and a log to a golden directory: small, scrubbed, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nvprof_tools
from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.from_files import find_log
from nvprof_tools.files.atomic import atomic_directory
from nvprof_tools.golden import log_text, manifest, reduce, segments
from nvprof_tools.golden.hashed_pipeline import hashed
from nvprof_tools.golden.manifest import Manifest
from nvprof_tools.golden.recompute import attributed
from nvprof_tools.golden.scrub import scrub
from nvprof_tools.golden.words import plain_text
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import AppLog, LogRun, Trace
from nvprof_tools.pipelines.load import BUILTIN_NAMES, builtin_pipelines, load_pipeline
from nvprof_tools.sources.arrow_dir import write_tables
from nvprof_tools.timeline.normalise import load_trace


@dataclass(frozen=True)
class Forms:
    """How an attribution is written: as a document, its bytes, and a page for people. Handed in by the command line,
    which alone sees the reports."""

    document: Callable[[Attribution], Mapping[str, Any]]
    dumps: Callable[[Mapping[str, Any]], bytes]
    page: Callable[[Attribution], bytes]


@dataclass(frozen=True)
class Request:
    """What to record. ``jobs`` or ``window``: only that stretch; ``pipeline``: a name or a file, null: what fits."""

    trace: Path
    log: Path | None = None
    pipeline: str | None = None
    window: str | None = None
    jobs: tuple[str, ...] = ()
    run: int | None = None
    device: int | None = None
    hash_kernels: bool = False


def record(request: Request, folder: Path, forms: Forms, *, limits: Limits = DEFAULT_LIMITS, over: bool = False) -> int:
    """Write a golden directory and give its size in bytes.

    :param over: take the place of a directory that is there.
    :raises ToolError: as reading, attributing and writing document.
    """
    builtin = request.pipeline is None or request.pipeline in BUILTIN_NAMES
    pipelines = builtin_pipelines() if request.pipeline is None else (load_pipeline(request.pipeline),)
    trace = load_trace(request.trace, limits)
    log, _ = find_log(request.log, trace, pipelines[0], limits)
    found = attribute(trace, log, pipelines, Options(request.window, device=request.device), request.run)
    pipeline = next(p for p in pipelines if p.name == found.pipeline)
    options: dict[str, str | int] = {"pipeline": pipeline.name if builtin else manifest.PIPELINE}
    window = reduce.jobs_window(found, request.jobs) if request.jobs else request.window
    run = _run(log, found)
    if window is not None:
        found = attribute(trace, log, pipelines, Options(window, device=request.device), request.run)
        options["window"] = f"{found.window.start_ns}:{found.window.end_ns}"
        trace = reduce.cut(trace, *reduce.stretch(found))
        run = None if run is None else reduce.cut_log(run, found, pipeline)
    if request.device is not None:
        options["device"] = request.device
    own = None if builtin else Path(str(request.pipeline)).read_bytes()
    if request.hash_kernels:
        own = hashed(pipeline, trace, None if own is None else own.decode())
        options["pipeline"] = manifest.PIPELINE
    clean = scrub(trace, found, pipeline, hash_kernels=request.hash_kernels)
    with atomic_directory(folder, replace=over) as out:
        write_tables(clean, out / manifest.TABLES)
        if run is not None:
            (out / manifest.LOG).write_text(log_text.render(run, pipeline), encoding="utf-8", newline="\n")
        if own is not None:
            (out / manifest.PIPELINE).write_bytes(own)
        _finish(out, Manifest(_recorded(trace, log, request), options), forms, limits)
        return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def update(folder: Path, forms: Forms, limits: Limits = DEFAULT_LIMITS) -> None:
    """Write what is expected anew, as the code at hand finds it; tables, log, tolerances and budgets stay.

    :raises ToolError: ``golden-changed`` for a file that is not as recorded, and as reading and writing document.
    """
    known = manifest.read(folder)
    manifest.verify(folder, known)
    kept = [*manifest.file_names(folder), *(name for name in sorted(manifest.FREE) if (folder / name).is_file())]
    with atomic_directory(folder, replace=True) as out:
        for name in kept:
            target = out / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((folder / name).read_bytes())
        recorded = {**known.recorded, "tool": nvprof_tools.__version__}
        _finish(out, replace(known, recorded=recorded), forms, limits)


def _finish(folder: Path, known: Manifest, forms: Forms, limits: Limits) -> None:
    """Attribute what was written, exactly as a check will, and seal it."""
    found, trace = attributed(folder, known, limits)
    times = segments.event_times(trace)
    (folder / manifest.EXPECTED).write_bytes(forms.dumps(forms.document(found)))
    (folder / manifest.PAGE).write_bytes(forms.page(found))
    for name, table in zip(manifest.SEGMENTS, (found.device_segments, found.section_segments), strict=True):
        segments.write(table, folder / name, times)
    digests = {name: manifest.digest_of(folder / name) for name in manifest.file_names(folder)}
    (folder / manifest.FILE).write_bytes(replace(known, digests=digests).text())


def _run(log: AppLog | None, found: Attribution) -> LogRun | None:
    if log is None:
        return None
    return next((run for run in log.runs if run.index == found.inputs.log_run), None)


def _recorded(trace: Trace, log: AppLog | None, request: Request) -> dict[str, str]:
    out = {"tool": nvprof_tools.__version__, "source": trace.source.kind, "source_sha256": trace.source.sha256}
    if trace.source.version is not None:
        out["source_version"] = plain_text(trace.source.version)
    if trace.source.schema_version is not None:
        out["source_schema"] = plain_text(trace.source.schema_version)
    if log is not None:
        out["log_sha256"] = log.source.sha256
    out["kernel_names"] = "hashed" if request.hash_kernels else "kept"
    return out
