"""From the arguments of ``compare`` to a comparison, and from that to its reader."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import click

from nvprof_tools.cli.options import working
from nvprof_tools.errors import UsageError
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.comparison import Comparison

CATEGORY_FACTOR = 2
"""Categories spread about twice as much between repeats as the whole does."""


def compare_paths(
    runs: Sequence[str],
    *,
    against: Sequence[str] = (),
    log_a: Sequence[Path] = (),
    log_b: Sequence[Path] = (),
    window_a: str | None = None,
    window_b: str | None = None,
    run_a: int | None = None,
    run_b: int | None = None,
    pipeline: str | None = None,
    fail_over: float | None = None,
    min_effect: float = 0.02,
    run_spread: float = 0.025,
    seed: int = 0,
    force: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Comparison:
    """Read both sides and compare them.

    :raises ToolError: as reading and comparing document; ``compare-sides``.
    """
    from dataclasses import replace

    from nvprof_tools.golden.compare import compare
    from nvprof_tools.golden.inputs import Request, expand, labelled_quality, load_side, measured
    from nvprof_tools.golden.statistics import Settings

    if not against and len(runs) != 2:
        raise UsageError(
            "compare-sides",
            f"two runs are compared, {len(runs)} given",
            "for several runs a side write: compare A1 A2 … --against B1 B2 …",
        )
    first, second = (expand(runs[:1]), expand(runs[1:])) if not against else (expand(runs), expand(against))
    with working("reading side A"):
        side_a = load_side("A", Request(first, tuple(log_a), pipeline, window_a, run_a), limits)
    with working("reading side B"):
        side_b = load_side("B", Request(second, tuple(log_b), pipeline, window_b, run_b), limits)
    settings = Settings(
        min_effect=min_effect, run_spread=run_spread, category_spread=CATEGORY_FACTOR * run_spread, seed=seed
    )
    found = compare(*measured(side_a, side_b), settings, fail_over=fail_over, force=force)
    return replace(found, quality=labelled_quality([*side_a, *side_b]))


def write(found: Comparison, form: str, path: Path | None, stdout: BinaryIO) -> None:
    """Render to the file, whole or not at all, else to standard output."""
    from nvprof_tools.files.atomic import atomic_writer

    render = import_module(f"nvprof_tools.report.compare_{form}").render
    if path is None:
        render(found, stdout)
        stdout.flush()
        return
    with atomic_writer(path) as out:
        render(found, out)
    click.echo(f"wrote {path}", err=True)
