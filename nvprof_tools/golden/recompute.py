"""A golden directory read and attributed anew, by the code at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.errors import SourceError
from nvprof_tools.golden import manifest
from nvprof_tools.golden.manifest import Manifest
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import Trace
from nvprof_tools.pipelines.load import BUILTIN_NAMES, load_pipeline
from nvprof_tools.sources.timeline_log import read_log
from nvprof_tools.timeline.normalise import load_trace


def recompute(folder: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[Attribution, Trace]:
    """The attribution of a golden, its files verified first.

    :raises CheckFailed: ``golden-changed``; :raises SourceError: ``golden-damaged``, and as reading documents.
    """
    known = manifest.read(folder)
    manifest.verify(folder, known)
    return attributed(folder, known, limits)


def attributed(folder: Path, known: Manifest, limits: Limits = DEFAULT_LIMITS) -> tuple[Attribution, Trace]:
    """The attribution of a golden's tables and log, as its manifest says they are to be read."""
    pipelines: Sequence[Pipeline] = (pipeline_of(folder, known),)
    trace = load_trace(folder / manifest.TABLES, limits)
    log = folder / manifest.LOG
    app_log = read_log(log, pipelines[0], limits) if log.is_file() else None
    window, job, device = (known.options.get(key) for key in ("window", "job", "device"))
    options = Options(
        None if window is None else str(window),
        None if job is None else str(job),
        device if isinstance(device, int) else None,
    )
    return attribute(trace, app_log, pipelines, options), trace


def pipeline_of(folder: Path, known: Manifest) -> Pipeline:
    """The pipeline a golden is read with: its own file, or one that ships with the package.

    :raises SourceError: ``golden-damaged``: it names another.
    """
    name = str(known.options.get("pipeline"))
    if name == manifest.PIPELINE:
        return load_pipeline(str(folder / manifest.PIPELINE))
    if name in BUILTIN_NAMES:
        return load_pipeline(name)
    raise SourceError("golden-damaged", f"the golden names an unknown pipeline: {name[:60]!r}", manifest.AGAIN)
