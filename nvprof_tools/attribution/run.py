"""From files to the answer, or to the one that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nvprof_tools.attribution.answers import AnswerCache
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import Trace
from nvprof_tools.pipelines.load import BUILTIN_NAMES
from nvprof_tools.sources.cache import ImportCache
from nvprof_tools.timeline.memory import capped


def attribute_files(
    trace: Path,
    *,
    log: Path | None = None,
    counters: Sequence[Path] = (),
    pipeline: str | None = None,
    window: str | None = None,
    run: int | None = None,
    job: str | None = None,
    device: int | None = None,
    nvml: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    cache: Path | None = None,
) -> tuple[Attribution, Trace]:
    """Attribute one trace, with its log, kernel counters and options as the command line gives them.

    :param pipeline: a name or a file; null: the built-in one that fits best.
    :param run: the log's run, from 1; null: the one that fits.
    :param nvml: the NVML samples that ``profile`` wrote.
    :param cache: a folder that keeps imports and answers; the answer is the same with and without.
    :raises ToolError: as every step documents.
    """
    imports = None if cache is None else ImportCache(cache)
    kept = None
    if imports is not None:
        files = [("trace", trace), ("log", log), *(("counters", path) for path in counters), ("nvml", nvml)]
        if pipeline is not None and pipeline not in BUILTIN_NAMES:
            files.append(("pipeline", Path(pipeline)))
        asked = (pipeline, window, run, job, device, replace(limits, memory_bytes=None))
        kept = AnswerCache(imports, [(part, path) for part, path in files if path is not None], asked)
    with capped(limits.memory_bytes):
        known = None if kept is None else kept.get()
        if known is not None and imports is not None:
            return known, imports.load(trace, limits, _read)
        # Only now, since a kept answer needs none of it: readers and engine take longer to import than that to read.
        from nvprof_tools.attribution.from_files import attributed

        found, loaded = attributed(
            trace,
            log=log,
            counters=counters,
            pipeline=pipeline,
            window=window,
            run=run,
            job=job,
            device=device,
            nvml=nvml,
            limits=limits,
            imports=imports,
        )
        if kept is not None:
            kept.put(found)
        return found, loaded


def _read(trace: Path, limits: Limits) -> Trace:
    from nvprof_tools.timeline.normalise import load_trace

    return load_trace(trace, limits)
