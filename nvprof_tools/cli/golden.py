"""``nvprof-tools golden``: record, check, diff."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nvprof_tools.cli.options import IN_PATH, OUT_PATH, debug_option, limits_option, working
from nvprof_tools.errors import EXIT_CHECK_FAILED, EXIT_OK

if TYPE_CHECKING:
    from nvprof_tools.limits import Limits

DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.group("golden")
def golden_command() -> None:
    """Small, scrubbed, reviewable traces with their attribution, and checks that it has not moved."""


@golden_command.command("record")
@click.argument("trace", type=IN_PATH)
@click.option("--log", type=IN_PATH, help="The pipeline's TIMELINE log; default: the one inside the trace.")
@click.option("-o", "--output", "folder", type=DIRECTORY, required=True, help="The golden directory.")
@click.option("--pipeline", metavar="NAME|FILE", help="The pipeline file; default: the one that fits best.")
@click.option("--window", metavar="trace|log|A:B", help="Keep only this stretch.")
@click.option("--job", "jobs", multiple=True, metavar="ID", help="Keep only the stretch of this job; may be repeated.")
@click.option("--run", type=int, metavar="N", help="Which run of the log, from 1; default: the one that fits.")
@click.option("--device", type=int, metavar="N", help="Only this GPU.")
@click.option("--hash-kernels", is_flag=True, help="Write a digest in place of each kernel's name.")
@click.option("--replace", "over", is_flag=True, help="Take the place of a directory that is there.")
@limits_option
@debug_option
def record_command(folder: Path, over: bool, limits: Limits, **request: Any) -> None:
    """Record TRACE and its log as a golden directory: tables, log, expected attribution, digests."""
    from nvprof_tools.cli.golden_forms import forms
    from nvprof_tools.golden.record import Request, record

    with working(f"recording {request['trace'].name}"):
        size = record(Request(**request), folder, forms(), limits=limits, over=over)
    click.echo(f"wrote {folder} ({size / 1000:,.0f} kB)", err=True)


@golden_command.command("check")
@click.argument("folders", nargs=-1, required=True, type=DIRECTORY, metavar="DIR...")
@click.option("--update", "rewrite", is_flag=True, help="Write what is expected anew, after showing the difference.")
@click.option("--junit", type=OUT_PATH, help="Write a JUnit XML file.")
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions too.")
@limits_option
@debug_option
def check_command(folders: tuple[Path, ...], rewrite: bool, junit: Path | None, github: bool, limits: Limits) -> int:
    """Attribute each golden at or below DIR anew and compare; exit code 1 with the difference where one moved."""
    from nvprof_tools.cli import goldens

    results = goldens.check_all(folders, limits)
    for result in results:
        goldens.show(result)
    goldens.publish(results, junit, github)
    failed = [result for result in results if not result.passed]
    if rewrite:
        failed = goldens.rewrite(failed, limits)
    click.echo(f"{len(results) - len(failed)} of {len(results)} goldens as recorded", err=True)
    return EXIT_CHECK_FAILED if failed else EXIT_OK


@golden_command.command("diff")
@click.argument("folder", type=DIRECTORY, metavar="DIR")
@click.argument("trace", type=IN_PATH)
@click.option("--log", type=IN_PATH, help="The log of TRACE.")
@limits_option
@debug_option
def diff_command(folder: Path, trace: Path, log: Path | None, limits: Limits) -> int:
    """Compare TRACE with a golden, figure by figure; exit code 1 where they differ.

    For whether a change is more than noise, use `compare`.
    """
    from nvprof_tools.cli import goldens

    lines = goldens.diff_lines(folder, trace, log, limits)
    for line in lines:
        goldens.say(line)
    return EXIT_CHECK_FAILED if lines else EXIT_OK
