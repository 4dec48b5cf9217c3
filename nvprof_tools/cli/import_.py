"""``nvprof-tools import``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from nvprof_tools.cli.options import IN_PATH, debug_option, working


@click.command("import")
@click.argument("trace", type=IN_PATH)
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="The directory.")
@click.option("--format", "storage", type=click.Choice(("parquet", "arrow")), default="parquet", show_default=True)
@click.option("--replace", is_flag=True, help="Take the place of a directory that is there.")
@debug_option
def import_command(trace: Path, output: Path, storage: Literal["parquet", "arrow"], replace: bool) -> None:
    """Write the normalised Arrow tables of TRACE, one file a table, with a manifest.

    The directory can stand for TRACE in every other command, and is read much faster.
    """
    from nvprof_tools.limits import DEFAULT_LIMITS
    from nvprof_tools.sources.arrow_dir import write_tables
    from nvprof_tools.timeline.normalise import load_trace

    with working(f"reading {trace.name}"):
        loaded = load_trace(trace, DEFAULT_LIMITS)
    with working("writing tables"):
        write_tables(loaded, output, storage, replace=replace)
    click.echo(f"wrote {output}", err=True)
