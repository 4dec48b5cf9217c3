"""``nvprof-tools attribute``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nvprof_tools.cli.budgets import require_budget
from nvprof_tools.cli.options import OUT_PATH, attribute, check_strict, deliver, input_options
from nvprof_tools.report.registry import TEXT_NAMES, by_name, by_suffix


@click.command("attribute")
@input_options
@click.option("-f", "--format", "name", type=click.Choice(TEXT_NAMES), help="Default: by the suffix of -o, else table.")
@click.option("-o", "--output", type=OUT_PATH, help="Write to this file instead of standard output.")
@click.option(
    "--budget",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check the figures against a budget.toml; exit 1 when a line is broken.",
)
def attribute_command(name: str | None, output: Path | None, budget: Path | None, strict: bool, **request: Any) -> None:
    """Import TRACE, align it with the pipeline's log, attribute every nanosecond, print.

    TRACE is an nsys .sqlite export, an nsys parquet directory, a directory written by `import`, or an .nsys-rep.
    """
    known = by_name(name) if name else by_name("table") if output is None else by_suffix(output)
    report = attribute(**request)
    deliver(report, known, output)
    if budget is not None:
        require_budget(report.attribution, budget)
    check_strict(report, strict)
