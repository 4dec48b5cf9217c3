"""``nvprof-tools report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nvprof_tools.cli.options import OUT_PATH, attribute, check_strict, deliver, input_options
from nvprof_tools.report.registry import by_suffix


@click.command("report")
@input_options
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUT_PATH,
    required=True,
    multiple=True,
    help="The report; its suffix is its format.",
)
def report_command(outputs: tuple[Path, ...], strict: bool, **request: Any) -> None:
    """Write reports of TRACE: .html, .md, .pftrace (Perfetto), .json, .csv, .png, .svg or .txt; -o may be repeated."""
    wanted = [(by_suffix(path), path) for path in outputs]
    report = attribute(**request)
    for known, path in wanted:
        deliver(report, known, path)
    check_strict(report, strict)
