"""``nvprof-tools batch``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nvprof_tools.cli.options import cache_option, debug_option
from nvprof_tools.errors import EXIT_CHECK_FAILED, EXIT_OK
from nvprof_tools.files.safe_text import terminal


@click.command("batch")
@click.argument("given", metavar="DIR|GLOB|LIST")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="The dataset.")
@click.option(
    "--scheduler", metavar="local|ADDRESS", default="local", show_default=True, help="Where the work is done."
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Local processes; default: one a processor.")
@click.option("--pipeline", metavar="NAME|FILE", help="The pipeline file; default: the one that fits best.")
@click.option("--window", metavar="trace|log|A:B", help="What is looked at in every run.")
@click.option("--device", type=int, metavar="N", help="Only this GPU of every run.")
@click.option("--limits", metavar="KEY=N,…", help="Caps on what each input may cost; see SECURITY.md.")
@cache_option
@click.option("--strict", is_flag=True, help="Exit code 1 when a run failed.")
@debug_option
def batch_command(given: str, output: Path, scheduler: str, workers: int | None, strict: bool, **options: Any) -> int:
    """Attribute many traces, on this machine's processors or on a Dask cluster, into one Parquet dataset.

    DIR is searched for traces; LIST is a text file with a trace a line, its log after a tab. A batch that was stopped
    goes on where it was; a run that failed is listed and tried again next time.
    """
    from nvprof_tools.cli.batch_text import lines
    from nvprof_tools.fleet.batch import batch
    from nvprof_tools.fleet.ledger import RunResult

    done = 0

    def seen(outcome: RunResult, runs: int) -> None:
        nonlocal done
        done += 1
        said = "" if outcome.done else f": {outcome.slug}: {outcome.message}"
        click.echo(terminal(f"[{done}/{runs}] {outcome.name}{said}"), err=True)

    asked = {key: value for key, value in options.items() if value is not None}
    try:
        rolled = batch(given, output, asked, scheduler=scheduler, workers=workers, seen=seen)
    except KeyboardInterrupt:
        click.echo("interrupted: what is done is kept, run the same command to go on", err=True)
        raise
    for line in lines(rolled):
        click.echo(terminal(line))
    return EXIT_CHECK_FAILED if strict and rolled.failures else EXIT_OK
