"""Options that several commands share, and how a rendered report reaches its reader."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nvprof_tools.errors import CheckFailed, ToolError

if TYPE_CHECKING:
    from nvprof_tools.limits import Limits
    from nvprof_tools.report.base import Report
    from nvprof_tools.report.registry import Format

F = TypeVar("F", bound=Callable[..., Any])
IN_PATH = click.Path(path_type=Path)
OUT_PATH = click.Path(path_type=Path, dir_okay=False)


def _debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    state = ctx.find_root().obj
    if value and state is not None:
        state.debug = True


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, is_eager=True, callback=_debug, help="Show a traceback on failure."
)


def _limits(_: click.Context, __: click.Parameter, value: str | None) -> Limits:
    from nvprof_tools.cli.process import frugal
    from nvprof_tools.limits import parse_limits

    limits = parse_limits(value or "")
    if limits.memory_bytes is not None:
        frugal()
    return limits


limits_option = click.option(
    "--limits",
    metavar="KEY=N,…",
    callback=_limits,
    help="Caps on what the input may cost, such as seconds=60,file=2GiB,rows=1000000; see SECURITY.md.",
)


cache_option = click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="NVPROF_TOOLS_CACHE",
    help="Keep imports and answers in this folder, and take them from there next time; or set NVPROF_TOOLS_CACHE.",
)


def input_options(command: F) -> F:
    """The trace and all that says how to read it; the command gets them as one ``**request``."""
    decorators = (
        click.argument("trace", type=IN_PATH),
        click.option("--log", type=IN_PATH, help="The pipeline's TIMELINE log; default: the one inside the trace."),
        click.option("--counters", type=IN_PATH, multiple=True, help="An ncu report or its CSV page; may be repeated."),
        click.option("--nvml", type=IN_PATH, help="The nvml.parquet that `profile` wrote beside the trace."),
        click.option("--pipeline", metavar="NAME|FILE", help="The pipeline file; default: the one that fits best."),
        click.option(
            "--window", metavar="trace|log|A:B", help="What is looked at; A and B in ns on the trace's clock."
        ),
        click.option("--run", type=int, metavar="N", help="Which run of the log, from 1; default: the one that fits."),
        click.option("--job", metavar="ID", help="Only the sections of this job."),
        click.option("--device", type=int, metavar="N", help="Only this GPU."),
        click.option("--strict", is_flag=True, help="Exit code 1 when data was lost."),
        limits_option,
        cache_option,
        debug_option,
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows on a terminal what takes long, and for how long; on a pipe, nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from nvprof_tools.files.safe_text import terminal

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(terminal(what), total=None)
        yield


def attribute(
    trace: Path,
    *,
    log: Path | None = None,
    counters: tuple[Path, ...] = (),
    nvml: Path | None = None,
    pipeline: str | None = None,
    window: str | None = None,
    run: int | None = None,
    job: str | None = None,
    device: int | None = None,
    limits: Limits | None = None,
    cache: Path | None = None,
) -> Report:
    """Import, align, attribute: what every report starts from. Imports the engine only now."""
    from nvprof_tools.attribution.run import attribute_files
    from nvprof_tools.limits import DEFAULT_LIMITS
    from nvprof_tools.report.base import Report

    with working(f"reading {trace.name}"):
        found, read = attribute_files(
            trace,
            log=log,
            counters=counters,
            nvml=nvml,
            pipeline=pipeline,
            window=window,
            run=run,
            job=job,
            device=device,
            limits=limits or DEFAULT_LIMITS,
            cache=cache,
        )
    return Report(found, read)


def deliver(report: Report, known: Format, path: Path | None) -> None:
    """Render to the file, whole or not at all, else to standard output."""
    from nvprof_tools.files.atomic import atomic_writer
    from nvprof_tools.report.console import ConsoleTable, Style
    from nvprof_tools.report.registry import make

    if path is not None:
        with working(f"writing {path.name}"), atomic_writer(path) as out:
            make(known).render(report, out)
        click.echo(f"wrote {path}", err=True)
        return
    if sys.stdout is None:
        raise ToolError("output-unwritable", "standard output is closed", "name a file: -o FILE")
    renderer = make(known)
    if isinstance(renderer, ConsoleTable) and sys.stdout.isatty():
        renderer = ConsoleTable(terminal_style(Style))
    renderer.render(report, sys.stdout.buffer)
    sys.stdout.flush()


def terminal_style(style: Any) -> Any:
    """What the terminal at hand can show: its width, colour unless NO_COLOR is set, blocks where it speaks UTF-8."""
    import os
    import shutil

    width = min(max(shutil.get_terminal_size((100, 24)).columns, 80), 160)
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    colour = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return style(width=width, colour=colour, blocks=utf8)


def check_strict(report: Report, strict: bool) -> None:
    """With ``--strict``, lost data fails the command, after the report was given."""
    from nvprof_tools.report.figures import lost

    items = lost(report.attribution)
    if strict and items:
        raise CheckFailed(
            "data-loss",
            f"{len(items)} kind(s) of data loss: " + ", ".join(item.slug for item in items),
            "see the head of the report; leave --strict out to accept it",
        )
