"""``nvprof-tools log``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nvprof_tools.cli.options import IN_PATH, OUT_PATH, debug_option, limits_option

if TYPE_CHECKING:
    from nvprof_tools.limits import Limits

FORMATS = ("table", "markdown", "csv", "json")
_SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".json": "json"}


@click.command("log")
@click.argument("log", type=IN_PATH)
@click.option("--run", type=click.IntRange(min=1), metavar="N", help="Which run of the log; default: the last one.")
@click.option("--pipeline", default="cuzk", show_default=True, metavar="NAME|FILE", help="The pipeline file.")
@click.option("-f", "--format", "name", type=click.Choice(FORMATS), help="Default: by the suffix of -o, else table.")
@click.option("-o", "--output", type=OUT_PATH, help="Write to this file instead of standard output.")
@limits_option
@debug_option
def log_command(
    log: Path, run: int | None, pipeline: str, name: str | None, output: Path | None, limits: Limits
) -> None:
    """Tell what a TIMELINE log alone says: jobs, synthesis, queue, GPU brackets, idle gaps and their causes."""
    from nvprof_tools.attribution.log_summary import summarise
    from nvprof_tools.files.atomic import atomic_writer
    from nvprof_tools.pipelines.load import load_pipeline
    from nvprof_tools.report.log_formats import renderer
    from nvprof_tools.sources.timeline_log import read_log

    chosen = name or (_SUFFIXES.get(output.suffix.lower(), "table") if output else "table")
    terminal = output is None and sys.stdout.isatty()
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    known = load_pipeline(pipeline)
    summary = summarise(read_log(log, known, limits), known, run)
    if output is None:
        renderer(chosen, colour).render(summary, sys.stdout.buffer)
        sys.stdout.flush()
        return
    with atomic_writer(output) as out:
        renderer(chosen, colour).render(summary, out)
    click.echo(f"wrote {output}", err=True)
