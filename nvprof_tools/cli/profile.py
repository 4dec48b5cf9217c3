"""``nvprof-tools profile``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nvprof_tools.cli.options import debug_option
from nvprof_tools.errors import EXIT_OK

if TYPE_CHECKING:
    from nvprof_tools.capture.profile import Captured, Request
    from nvprof_tools.model.attribution import Attribution
    from nvprof_tools.model.quality import QualityItem
    from nvprof_tools.model.trace import Trace

POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command("profile", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), metavar="DIR", help="The run folder, new.")
@click.option(
    "--collector",
    type=click.Choice(["auto", "nsys", "cupti"]),
    default="auto",
    show_default=True,
    help="What records: nsys, or the collector of this package, which needs none; auto: nsys where it is found.",
)
@click.option("--metrics", is_flag=True, help="Sample GPU metrics; without permission the run is made without them.")
@click.option("--metrics-hz", type=click.IntRange(10, 200_000), metavar="HZ", help="Default: fitted to the length.")
@click.option("--expect", type=POSITIVE, metavar="SECONDS", help="How long the run takes, for fitting.")
@click.option("--counters", is_flag=True, help="Run once more under ncu for the kernels that took most time.")
@click.option("--counters-kernels", type=click.IntRange(1, 200), default=10, show_default=True, metavar="N")
@click.option("--counters-launches", type=click.IntRange(1, 1000), default=3, show_default=True, metavar="N")
@click.option(
    "--clock-control", type=click.Choice(["none", "base"]), default="none", show_default=True, help="For ncu."
)
@click.option(
    "--repeat", type=click.IntRange(0, 100), default=0, metavar="N", help="N plain and N profiled runs, in turn."
)
@click.option("--os-calls", is_flag=True, help="Trace the system's calls too: joins, condition waits.")
@click.option("--memory", is_flag=True, help="Trace device memory in use; costs time a call.")
@click.option("--graph-nodes", is_flag=True, help="Trace the kernels inside CUDA graphs; costs time a kernel.")
@click.option("--delay", type=POSITIVE, metavar="SECONDS", help="Begin to capture after this long.")
@click.option("--duration", type=POSITIVE, metavar="SECONDS", help="Capture this long.")
@click.option("--capture-range", metavar="RANGE", help="cudaProfilerApi, or nvtx:NAME[@DOMAIN].")
@click.option("--no-markers", is_flag=True, help="Do not load the markers; nsys traces the system's calls instead.")
@click.option("--no-nvml", is_flag=True, help="Do not sample what nvidia-smi shows.")
@click.option("--keep-environment", is_flag=True, help="Keep environment variables in the manifest and the report.")
@click.option("--pipeline", metavar="NAME|FILE", help="The pipeline file; default: the one that fits best.")
@click.option("--nsys-option", multiple=True, metavar="OPTION", help="One more option for nsys; may be repeated.")
@debug_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def profile_command(**options: Any) -> int:
    """Run COMMAND under nsys, or with the collector of this package, and report where its time went. Put -- before it.

    Its output and exit code are passed on. "{run}" in COMMAND stands for the run's folder.
    """
    from nvprof_tools.capture.profile import capture

    request, started = _request(options)
    done = capture(request, _echo(), _say)
    return _finish(request, done, started, options["pipeline"])


def _request(options: dict[str, Any]) -> tuple[Request, str]:
    from datetime import UTC, datetime

    from nvprof_tools.capture import kernels, nsys
    from nvprof_tools.capture.profile import Request, default_folder
    from nvprof_tools.pipelines.load import builtin_pipelines, load_pipeline

    now = datetime.now(UTC)
    command = tuple(options["command"])
    folder = options["folder"] or default_folder(command, now.strftime("%Y%m%d-%H%M%S"))
    pipeline = builtin_pipelines()[0] if options["pipeline"] is None else load_pipeline(options["pipeline"])
    wish = nsys.Wish(
        metrics=options["metrics"],
        metrics_hz=options["metrics_hz"],
        expected_s=options["expect"],
        os_calls=options["os_calls"],
        memory=options["memory"],
        graph_nodes=options["graph_nodes"],
        delay_s=options["delay"],
        duration_s=options["duration"],
        capture_range=options["capture_range"],
        keep_environment=options["keep_environment"],
        extra=tuple(options["nsys_option"]),
    )
    counters = kernels.Wish(options["counters_kernels"], options["counters_launches"], options["clock_control"])
    request = Request(
        command,
        folder.absolute(),
        wish,
        pipeline,
        repeats=options["repeat"],
        counters=counters if options["counters"] else None,
        markers=not options["no_markers"],
        collector=options["collector"],
        watch=not options["no_nvml"],
    )
    return request, now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _echo() -> tuple[int, int] | None:
    """The descriptors behind our own stdout and stderr; null where they have none."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        return sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError):
        return None


def _finish(request: Request, done: Captured, started: str, pipeline: str | None) -> int:
    """The report, if there is a trace; the manifest in any case; the program's exit code where it is not 0."""
    from nvprof_tools import __version__
    from nvprof_tools.capture.profile import write_manifest
    from nvprof_tools.errors import ToolError

    code = EXIT_OK if done.outcome is None else done.outcome.passed_on
    failure = done.failure
    if failure is None:
        try:
            _report(request, done, pipeline)
        except ToolError as error:
            failure = done.failure = error
    try:
        write_manifest(request, done, __version__, started)
    except ToolError as error:
        failure = failure or error
    _say(f"run folder: {done.folder}")
    if failure is not None and code == EXIT_OK:
        raise failure
    if failure is not None:
        _say(f"error[{failure.slug}]: {failure.message}")
        _say(f"hint: {failure.hint}")
    return code


def _report(request: Request, done: Captured, pipeline: str | None) -> None:
    from dataclasses import replace

    from nvprof_tools.attribution.run import attribute_files
    from nvprof_tools.capture import observer
    from nvprof_tools.capture.profile import count, write_observer
    from nvprof_tools.cli.options import deliver, working
    from nvprof_tools.model.quality import ordered
    from nvprof_tools.report.base import Report
    from nvprof_tools.report.registry import by_suffix

    if done.trace is None:
        return

    def answer(path: Path) -> tuple[Attribution, Trace]:
        with working(f"reading {done.folder.name}"):
            return attribute_files(path, log=done.log, counters=done.counters, pipeline=pipeline, nvml=done.nvml)

    found, trace = answer(done.trace)
    if request.counters is not None:
        count(request, done, trace, _say)
        found, trace = answer(done.trace) if done.counters else (found, trace)
    items = [*done.quality, *_silent_metrics(request, trace, done.quality)]
    if request.repeats:
        effects = observer.effects(done.runs)
        write_observer(done, effects)
        items += observer.quality(effects, request.repeats, found)
    report = Report(replace(found, quality=ordered([*found.quality, *items])), trace)
    # The table last, when all that may fail is done.
    for name in ("attribution.json", "report.html"):
        path = done.folder / name
        deliver(report, by_suffix(path), path)
    deliver(report, by_suffix(Path("table.txt")), None)


def _silent_metrics(request: Request, trace: Trace, known: list[QualityItem]) -> list[QualityItem]:
    """A profiler may also leave metrics out without refusing to start."""
    from nvprof_tools.model.quality import QualityItem, Severity

    if not request.capture.metrics or "gpu_metrics" in trace.measured:
        return []
    if any(item.slug == "gpu-metrics-refused" for item in known):
        return []
    message = "GPU metrics were asked for and the capture holds none"
    return [QualityItem("gpu-metrics-refused", Severity.NOTICE, 1, message, "see profiler.log and nvprof-tools doctor")]


def _say(text: str) -> None:
    from nvprof_tools.files.safe_text import terminal

    click.echo(terminal(f"nvprof-tools: {text}"), err=True)
