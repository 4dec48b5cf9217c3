"""What can be compared, by path: a trace with its log, a log alone, or a golden directory."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.log_summary import choose_run
from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.errors import SourceError, UsageError
from nvprof_tools.golden import measure
from nvprof_tools.golden.measure import Measured
from nvprof_tools.golden.recompute import recompute
from nvprof_tools.golden.steps import FEWEST, stepped
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import LogRun, Trace
from nvprof_tools.pipelines.load import builtin_pipelines, load_pipeline
from nvprof_tools.sources.timeline_log import read_log

GOLDEN_FILE: Final = "golden.toml"
_HEAD_BYTES: Final = 1 << 20
_BINARY: Final = (b"SQLite format 3\0", b"PAR1", b"ARROW1")


@dataclass(frozen=True)
class Request:
    """How one side's runs are read; ``logs`` answers to the paths one by one, or is empty."""

    paths: tuple[Path, ...]
    logs: tuple[Path, ...] = ()
    pipeline: str | None = None
    window: str | None = None
    run: int | None = None


@dataclass(frozen=True)
class Loaded:
    """One run, read: ``log_run`` of a log alone, else ``attribution``."""

    label: str
    kind: str
    pipeline: str | None
    attribution: Attribution | None
    trace: Trace | None
    log_run: LogRun | None
    quality: tuple[QualityItem, ...]


def expand(patterns: Sequence[str]) -> tuple[Path, ...]:
    """Paths as given; a pattern that is no path itself stands for what it matches, sorted.

    :raises UsageError: ``no-match``.
    """
    out: list[Path] = []
    for pattern in patterns:
        if Path(pattern).exists() or not glob.has_magic(pattern):
            out.append(Path(pattern))
            continue
        found = sorted(glob.glob(pattern))  # noqa: PTH207 - a pattern may be absolute
        if not found:
            raise UsageError("no-match", f"no file matches {pattern!r}", "check the pattern, quoted for the shell")
        out.extend(Path(name) for name in found)
    return tuple(out)


def load_side(letter: str, request: Request, limits: Limits = DEFAULT_LIMITS) -> list[Loaded]:
    """Read a side's runs; their labels begin with ``A1``, ``A2``, … (``A`` when alone).

    :raises ToolError: as the readers document; ``logs-do-not-match``.
    """
    if request.logs and len(request.logs) != len(request.paths):
        raise UsageError(
            "logs-do-not-match",
            f"side {letter} has {len(request.paths)} runs and {len(request.logs)} logs",
            "give one log a run, in the same order",
        )
    alone = len(request.paths) == 1
    return [
        _load(
            f"{letter if alone else f'{letter}{i + 1}'} {path.name}",
            path,
            request.logs[i] if request.logs else None,
            request,
            limits,
        )
        for i, path in enumerate(request.paths)
    ]


def measured(side_a: Sequence[Loaded], side_b: Sequence[Loaded]) -> tuple[list[Measured], list[Measured]]:
    """Both sides as numbers: sections where every run has a trace, else what the logs alone tell.

    :raises SourceError: ``run-without-partitions``.
    """
    by_log = any(run.attribution is None for run in (*side_a, *side_b))
    a, b = ([_measure(run, by_log) for run in side] for side in (side_a, side_b))
    return a, b


def labelled_quality(runs: Sequence[Loaded]) -> tuple[QualityItem, ...]:
    """Loss in the inputs, each message with the run it concerns."""
    grave = {Severity.DATA_LOSS, Severity.ERROR}
    return tuple(
        replace(q, message=f"{run.label}: {q.message}") for run in runs for q in run.quality if q.severity in grave
    )


def _measure(run: Loaded, by_log: bool) -> Measured:
    if run.log_run is not None:
        return measure.from_log(run.log_run, run.label, run.pipeline)
    if run.attribution is None:
        raise SourceError("run-without-partitions", f"{run.label} holds nothing to compare", "give a trace or a log")
    if by_log:
        return measure.brackets_of(run.attribution, run.label, run.kind)
    return measure.from_attribution(run.attribution, run.trace, run.label, run.kind)


def _load(label: str, path: Path, log: Path | None, request: Request, limits: Limits) -> Loaded:
    if path.is_dir() and (path / GOLDEN_FILE).is_file():
        found, trace = recompute(path, limits)
        return Loaded(label, "golden", found.pipeline, found, trace, None, found.quality)
    if path.is_file() and is_log(path):
        if request.window is not None:
            raise UsageError(
                "window-without-trace", f"{label} is a log: a window is on a trace's clock", "leave the window out"
            )
        pipeline = builtin_pipelines()[0] if request.pipeline is None else load_pipeline(request.pipeline)
        read = read_log(path, pipeline, limits)
        known = None if request.pipeline is None else pipeline.name
        return Loaded(label, "log", known, None, None, choose_run(read, request.run), read.quality)
    found, trace = attribute_files(
        path, log=log, pipeline=request.pipeline, window=request.window, run=request.run, limits=limits
    )
    if found.inputs.log is None and len(found.partitions) < FEWEST:
        found = _by_steps(found, trace, request)
    return Loaded(label, "trace", found.pipeline, found, trace, None, found.quality)


def _by_steps(found: Attribution, trace: Trace, request: Request) -> Attribution:
    """A run without sections of its own, cut into the steps that its ranges show, if they do."""
    base = load_pipeline(found.pipeline if request.pipeline is None else request.pipeline)
    pipeline = stepped(base, trace)
    return found if pipeline is None else attribute(trace, None, (pipeline,), Options(request.window))


def is_log(path: Path) -> bool:
    """Whether a file is a pipeline's log, by its content: text with a TIMELINE line near its head."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return not head.startswith(_BINARY) and b"TIMELINE," in head
