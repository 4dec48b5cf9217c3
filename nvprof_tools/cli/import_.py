"""``nvprof-tools import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from nvprof_tools.cli.options import IN_PATH, cache_option, debug_option, limits_option, working

if TYPE_CHECKING:
    from nvprof_tools.limits import Limits


@click.command("import")
@click.argument("trace", type=IN_PATH)
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="The directory.")
@click.option("--format", "storage", type=click.Choice(("parquet", "arrow")), default="parquet", show_default=True)
@click.option("--replace", is_flag=True, help="Take the place of a directory that is there.")
@limits_option
@cache_option
@debug_option
def import_command(
    trace: Path, output: Path, storage: Literal["parquet", "arrow"], replace: bool, limits: Limits, cache: Path | None
) -> None:
    """Write the normalised Arrow tables of TRACE, one file a table, with a manifest.

    The directory can stand for TRACE in every other command, and is read much faster.
    """
    from nvprof_tools.sources.arrow_dir import write_tables
    from nvprof_tools.sources.cache import ImportCache
    from nvprof_tools.timeline.memory import capped
    from nvprof_tools.timeline.normalise import load_trace

    with working(f"reading {trace.name}"), capped(limits.memory_bytes):
        loaded = load_trace(trace, limits) if cache is None else ImportCache(cache).load(trace, limits, load_trace)
    with working("writing tables"):
        write_tables(loaded, output, storage, replace=replace)
    click.echo(f"wrote {output}", err=True)
