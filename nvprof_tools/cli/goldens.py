"""What the ``golden`` commands do between their options and the golden package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from nvprof_tools.errors import SourceError, ToolError
from nvprof_tools.files.atomic import atomic_writer
from nvprof_tools.files.safe_text import terminal
from nvprof_tools.golden import junit as ci
from nvprof_tools.golden import manifest
from nvprof_tools.golden.check import Checked, against, check
from nvprof_tools.golden.diff import event_lines
from nvprof_tools.golden.recompute import pipeline_of, recompute
from nvprof_tools.golden.record import Request, record, update
from nvprof_tools.limits import Limits


def say(line: str) -> None:
    """A line of a report, made safe for a terminal."""
    click.echo(terminal(line))


def find(folders: Iterable[Path]) -> list[Path]:
    """The golden directories at or below each path.

    :raises SourceError: ``golden-missing``.
    """
    out: list[Path] = []
    for folder in folders:
        found = sorted(path.parent for path in folder.rglob(manifest.FILE))
        if not found:
            raise SourceError(
                "golden-missing",
                f"there is no golden in {folder.name!r}",
                "record one with `nvprof-tools golden record`",
            )
        out.extend(found)
    return list(dict.fromkeys(out))


def check_all(folders: Iterable[Path], limits: Limits) -> list[Checked]:
    """Check every golden at or below each path."""
    from nvprof_tools.cli.golden_forms import forms

    known = forms()
    return [check(folder, known, limits) for folder in find(folders)]


def show(result: Checked) -> None:
    """One golden's outcome: a word, and the difference below it."""
    say(f"{'ok    ' if result.passed else 'FAILED'} {result.folder}")
    for line in result.lines():
        say(f"    {line}")


def publish(results: Sequence[Checked], junit: Path | None, github: bool) -> None:
    """Write and print what a CI reads."""
    if junit is not None:
        with atomic_writer(junit) as out:
            out.write(ci.document(results))
    if github:
        for line in ci.workflow_lines(results):
            say(line)


def rewrite(failed: Sequence[Checked], limits: Limits) -> list[Checked]:
    """Rewrite what deviates; gives those that stay failed: damaged ones, and broken budgets."""
    from nvprof_tools.cli.golden_forms import forms

    rest = []
    for result in failed:
        if result.error is not None:
            rest.append(result)
            continue
        try:
            update(result.folder, forms(), limits)
        except ToolError as error:
            rest.append(Checked(result.folder, None, error=error))
            continue
        click.echo(f"rewrote {result.folder}", err=True)
        if not all(line.kept for line in result.budget):
            rest.append(result)
    return rest


def diff_lines(folder: Path, trace: Path, log: Path | None, limits: Limits) -> list[str]:
    """How a trace's attribution differs from a golden's: the trace is recorded as the golden was, then compared.

    :raises ToolError: ``golden-changed``, ``golden-damaged``, and as recording documents.
    """
    from nvprof_tools.cli.golden_forms import forms

    known = manifest.read(folder)
    _, own_trace = recompute(folder, limits)
    pipeline = pipeline_of(folder, known)
    hidden = known.recorded.get("kernel_names") == "hashed"
    name = pipeline.name if pipeline.builtin or hidden else str(folder / manifest.PIPELINE)
    same = trace.is_file() and manifest.digest_of(trace) == known.recorded.get("source_sha256")
    window = known.options.get("window") if same else None
    request = Request(trace, log, name, None if window is None else str(window), hash_kernels=hidden)
    with TemporaryDirectory(prefix="nvprof-tools-") as place:
        fresh = Path(place) / "golden"
        record(request, fresh, forms(), limits=limits)
        found, fresh_trace = recompute(fresh, limits)
    lines = against(folder, known, found, own_trace, forms()).lines()
    return lines or list(event_lines(own_trace, fresh_trace))
