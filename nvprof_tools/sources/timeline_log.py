"""Reads a pipeline's log: TIMELINE events, figures, the wall-clock anchor; several runs, torn lines and all."""

from __future__ import annotations

from pathlib import Path

from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import AppLog, SourceInfo


def read_log(path: Path, pipeline: Pipeline, limits: Limits = DEFAULT_LIMITS) -> AppLog:
    """A log file. Never written to.

    :raises SourceError: ``log-unreadable``, ``limit-log-bytes``, ``log-without-timeline``, ``log-runs-mixed``.
    """
    raise NotImplementedError


def parse_log(text: str | bytes, pipeline: Pipeline, *, source: SourceInfo, limits: Limits = DEFAULT_LIMITS) -> AppLog:
    """A log already in memory, as the profiler stored it.

    :raises SourceError: as :func:`read_log`.
    """
    raise NotImplementedError
