"""``nvprof-tools pipelines``."""

from __future__ import annotations

import click

from nvprof_tools.cli.options import debug_option


@click.command("pipelines")
@click.argument("name", required=False, metavar="[NAME|FILE]")
@click.option("--source", is_flag=True, help="Print the built-in file itself: a start for one of your own.")
@debug_option
def pipelines_command(name: str | None, source: bool) -> None:
    """List the pipeline files, or check and show one of them."""
    from nvprof_tools.errors import UsageError
    from nvprof_tools.files.safe_text import terminal
    from nvprof_tools.pipelines.load import builtin_pipelines, builtin_source, load_pipeline
    from nvprof_tools.report.pipeline_page import listing, page

    if source:
        text = builtin_source(name) if name is not None else None
        if text is None:
            raise UsageError("usage", "--source needs the name of a built-in pipeline", "nvprof-tools pipelines")
        click.echo(text, nl=False)
        return
    lines = listing(builtin_pipelines()) if name is None else page(load_pipeline(name))
    for line in lines:
        click.echo(terminal(line))
