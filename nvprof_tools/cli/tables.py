"""``nvprof-tools tables``."""

from __future__ import annotations

import click

from nvprof_tools.cli.options import debug_option


@click.command("tables")
@click.argument("name", required=False)
@debug_option
def tables_command(name: str | None) -> None:
    """Show the schemas of the normalised tables as Markdown: all of them, or that of NAME."""
    from nvprof_tools.errors import UsageError
    from nvprof_tools.report.schema_page import page

    text = page(name)
    if text is None:
        raise UsageError("unknown-table", f"there is no table {name!r}", "nvprof-tools tables lists them all")
    click.echo(text, nl=False)
