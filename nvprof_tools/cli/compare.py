"""``nvprof-tools compare``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from nvprof_tools.cli.options import IN_PATH, OUT_PATH, debug_option, limits_option
from nvprof_tools.errors import EXIT_CHECK_FAILED, EXIT_INCONCLUSIVE, EXIT_OK

FORMATS: Final = ("table", "markdown", "csv", "json")
_SUFFIXES: Final = {".md": "markdown", ".csv": "csv", ".json": "json"}


class AgainstCommand(click.Command):
    """A command whose ``--against`` takes every argument up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--against`` before each of its arguments, as click wants it."""
        spread: list[str] = []
        taking = False
        for arg in args:
            if arg == "--against":
                taking = True
                continue
            taking = taking and not arg.startswith("-")
            spread.extend(["--against", arg] if taking else [arg])
        return super().parse_args(ctx, spread)


def percent(_: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``3%`` or ``3`` as the fraction 0.03."""
    if value is None:
        return None
    try:
        fraction = float(value.strip().removesuffix("%")) / 100
    except ValueError:
        raise click.BadParameter(f"{value!r} is no percentage", param=param) from None
    if not 0 <= fraction <= 10:
        raise click.BadParameter(f"{value!r} is out of range", param=param)
    return fraction


@click.command("compare", cls=AgainstCommand)
@click.argument("runs", nargs=-1, required=True, metavar="A B | A… --against B…")
@click.option("--against", multiple=True, metavar="B…", help="The runs of side B; those before are side A.")
@click.option("--log-a", type=IN_PATH, multiple=True, help="The log of a trace on side A; one a run, in order.")
@click.option("--log-b", type=IN_PATH, multiple=True, help="The same for side B.")
@click.option("--window-a", metavar="trace|log|A:B", help="What is looked at on side A.")
@click.option("--window-b", metavar="trace|log|A:B", help="The same for side B.")
@click.option("--run-a", type=int, metavar="N", help="Which run of side A's logs, from 1; default: the last whole one.")
@click.option("--run-b", type=int, metavar="N", help="The same for side B.")
@click.option("--pipeline", metavar="NAME|FILE", help="The pipeline file; default: the one that fits best.")
@click.option(
    "--fail-over",
    callback=percent,
    metavar="PCT",
    help="Exit 1 when B is slower by this much, 5 when it could be unseen.",
)
@click.option(
    "--min-effect",
    callback=percent,
    metavar="PCT",
    default="2%",
    show_default=True,
    help="Smallest change worth naming.",
)
@click.option(
    "--run-spread",
    callback=percent,
    metavar="PCT",
    default="2.5%",
    show_default=True,
    help="Spread between repeats to assume where one run a side shows none; categories: twice that.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the permutation test.")
@click.option("--force", is_flag=True, help="Compare runs that are not the same set-up.")
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), help="Default: by the suffix of -o, else table.")
@click.option("-o", "--output", type=OUT_PATH, help="Write to this file instead of standard output.")
@limits_option
@debug_option
def compare_command(runs: tuple[str, ...], form: str | None, output: Path | None, **options: Any) -> int:
    """Compare two runs, or several runs a side: traces, logs alone, or golden directories.

    Says what moved, by how many milliseconds a proof, whether that is more than noise, and the smallest change these
    data could have shown. Exit code 5: inconclusive.
    """
    from nvprof_tools.cli.comparing import compare_paths, write

    found = compare_paths(runs, **options)
    write(found, form or _SUFFIXES.get(output.suffix if output else "", "table"), output, sys.stdout.buffer)
    limit = options["fail_over"]
    if limit is not None and found.verdict == "slower" and (found.size or 0) >= limit:
        click.echo(f"failed: slower by {(found.size or 0) * 100:.1f} %, over {limit * 100:g} %", err=True)
        return EXIT_CHECK_FAILED
    return EXIT_INCONCLUSIVE if found.verdict == "inconclusive" else EXIT_OK
