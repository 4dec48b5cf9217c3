"""One command, captured: the program under a profiler, plain beside it where asked, and once more under ncu."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nvtx_markers
from nvprof_tools.capture import kernels, nsys, nvml, observer, tools
from nvprof_tools.capture.recorder import Choice, Recorder, call, choose
from nvprof_tools.capture.running import Outcome, run
from nvprof_tools.errors import ToolError, UsageError
from nvprof_tools.files.atomic import write_bytes, write_text
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.trace import Trace

RUN_FOLDER = "{run}"
"""Stands for the run's folder in the command, so that what each run writes has a place of its own."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What to run and how. ``repeats``: pairs of a plain and a profiled run, 0 for the profiled run alone;
    ``counters``: null for no second run; ``markers``: preload them; ``collector``: what records; ``watch``: sample
    NVML."""

    command: tuple[str, ...]
    folder: Path
    capture: nsys.Wish
    pipeline: Pipeline
    repeats: int = 0
    counters: kernels.Wish | None = None
    markers: bool = True
    collector: Choice = "auto"
    watch: bool = True


@dataclass
class Captured:
    """What a capture left in its folder. ``failure``: why there is no trace. ``log``: null without TIMELINE lines."""

    folder: Path
    outcome: Outcome | None = None
    trace: Path | None = None
    log: Path | None = None
    nvml: Path | None = None
    counters: tuple[Path, ...] = ()
    failure: ToolError | None = None
    quality: list[QualityItem] = field(default_factory=list)
    runs: list[observer.Measured] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def default_folder(command: Sequence[str], now: str) -> Path:
    """``nvprof-runs/PROGRAM-TIME`` here."""
    return Path("nvprof-runs") / f"{Path(command[0]).name}-{now}"


def capture(request: Request, echo: tuple[int, int] | None, say: Say) -> Captured:
    """Run it all, but ncu's part, which needs the first run's answer (:func:`count`).

    :param say: told each step, for whoever waits.
    :raises ToolError: ``program-not-found``, ``nsys-missing``, ``collector-missing``, ``run-folder-exists``,
        ``profiler-not-started``. What goes wrong after the program has run is in ``failure``: its output is
        worth keeping.
    """
    _check_program(request.command[0])
    recorder = choose(request.collector, request.markers)
    _make(request.folder)
    done = Captured(request.folder)
    done.quality += recorder.quality
    wish = request.capture
    for number in range(1, max(request.repeats, 1) + 1):
        if request.repeats:
            say(f"run {number} of {request.repeats} without a profiler")
            plain = _plain(request, done, number)
            if wish.expected_s is None and plain.wall_ns is not None:
                wish = replace(wish, expected_s=plain.wall_ns / 1e9)
        if number == 1:
            say(f"under {recorder.label}")
            _main(request, wish, recorder, echo, done)
            if done.failure is not None:
                break
        else:
            say(f"run {number} of {request.repeats} under {recorder.name}")
            _again(request, wish, recorder, done, number)
    return done


def count(request: Request, done: Captured, trace: Trace, say: Say) -> None:
    """The run under ncu; what goes wrong is an item of quality: the rest of the answer stands without it."""
    wish = request.counters
    if wish is None:
        return
    try:
        done.counters = (_count(request, wish, done, trace, say),)
    except ToolError as error:
        # One place for all of them, so that the slug is the failure's own.
        done.quality.append(QualityItem(error.slug, Severity.NOTICE, 1, error.message, error.hint))


def _count(request: Request, wish: kernels.Wish, done: Captured, trace: Trace, say: Say) -> Path:
    tool = tools.find("ncu")
    if tool is None:
        raise ToolError("ncu-missing", "ncu was not found, so no counters were read", "install Nsight Compute")
    names = kernels.dearest(trace, wish.kernels)
    if not names:
        raise ToolError("counters-empty", "the first run shows no kernels to count", "is this the right program?")
    folder = request.folder / "counters"
    folder.mkdir()
    say(f"again under ncu {tool.version or ''} for {len(names)} kernels")
    chosen = kernels.options(wish, names, tool, str(folder / "counters"))
    outcome = run(_command(request, folder), folder, under=[str(tool.path), *chosen])
    done.facts["ncu"] = {"version": tool.version, "options": _plain_paths(chosen, request.folder)}
    report = folder / "counters.ncu-rep"
    if not report.is_file():
        raise kernels.explain(outcome.said, outcome.profiler_code)
    page = call(kernels.page_command(tool, str(report)), {**os.environ, "LC_ALL": "C"})
    if page.returncode != 0 or not page.stdout.strip():
        raise kernels.explain((page.stdout + page.stderr).decode("utf-8", "replace"), page.returncode)
    write_bytes(folder / "counters.csv", page.stdout)
    return folder / "counters.csv"


def _main(request: Request, wish: nsys.Wish, recorder: Recorder, echo: tuple[int, int] | None, done: Captured) -> None:
    """The run that is reported."""
    folder = request.folder
    watch = nvml.Sampler() if request.watch else None
    if watch is not None:
        watch.start()
    try:
        recorded = recorder.record(_command(request, folder), folder, wish, echo)
    finally:
        table = None if watch is None else watch.stop()
    outcome = done.outcome = recorded.outcome
    done.facts["collector"] = recorder.name
    done.facts[recorder.name] = dict(recorded.facts)
    if watch is not None:
        done.facts["driver"], done.facts["gpus"] = watch.driver, watch.devices
        if watch.missing:
            done.quality.append(
                QualityItem("nvml-missing", Severity.INFO, 1, f"NVML was not sampled: {watch.missing}", "")
            )
        elif table is not None and len(table):
            done.nvml = folder / "nvml.parquet"
            nvml.write(table, done.nvml)
    done.quality += _doubts(outcome, recorded.refused)
    done.log = _log(folder)
    try:
        done.trace = recorder.trace(folder, outcome)
    except ToolError as error:
        done.failure = error
        return
    if request.repeats and outcome.exit_code == 0:
        done.runs.append(observer.measure(folder, request.pipeline, outcome.wall_ns, True))


def _plain(request: Request, done: Captured, number: int) -> Outcome:
    folder = request.folder / "repeats" / f"plain-{number}"
    folder.mkdir(parents=True)
    outcome = run(_command(request, folder), folder)
    _measured(request, done, folder, outcome, False)
    return outcome


def _again(request: Request, wish: nsys.Wish, recorder: Recorder, done: Captured, number: int) -> None:
    folder = request.folder / "repeats" / f"profiled-{number}"
    folder.mkdir(parents=True)
    outcome = recorder.record(_command(request, folder), folder, wish, None).outcome
    # Only what this run cost is wanted of it; reports are large.
    for pattern in recorder.leaves:
        for left in folder.glob(pattern):
            left.unlink()
    _measured(request, done, folder, outcome, True)


def _measured(request: Request, done: Captured, folder: Path, outcome: Outcome, profiled: bool) -> None:
    if outcome.exit_code == 0:
        done.runs.append(observer.measure(folder, request.pipeline, outcome.wall_ns, profiled))
        return
    done.quality.append(
        QualityItem(
            "repeat-failed",
            Severity.NOTICE,
            1,
            f"a repeat ended with exit code {outcome.exit_code} and does not count: {folder.name}",
            "see its output in the run folder",
        )
    )


def _doubts(outcome: Outcome, refused: str) -> list[QualityItem]:
    items = []
    if refused:
        items.append(
            QualityItem(
                "gpu-metrics-refused",
                Severity.NOTICE,
                1,
                f"GPU metrics were not sampled: {refused}",
                "see nvprof-tools doctor; the run was made without them",
            )
        )
    if outcome.exit_code:
        how = f"was killed by signal {-outcome.exit_code}" if outcome.exit_code < 0 else "failed"
        items.append(
            QualityItem(
                "program-failed",
                Severity.NOTICE,
                1,
                f"the program {how} (exit code {outcome.passed_on}); the report shows what it did until then",
                "",
            )
        )
    if outcome.lost_bytes:
        items.append(
            QualityItem(
                "output-lost",
                Severity.DATA_LOSS,
                outcome.lost_bytes,
                f"{outcome.lost_bytes:,} bytes of the program's output were not kept: {outcome.lost_why}",
                "free some space",
            )
        )
    return items


def write_manifest(request: Request, done: Captured, version: str, started: str) -> None:
    """``manifest.json``: what was run, with what, and how it ended; no environment unless asked for."""
    outcome = done.outcome
    document: dict[str, Any] = {
        "schema": "nvprof-tools/run/1",
        "nvprof_tools": version,
        "started_utc": started,
        "command": list(request.command),
        "exit_code": None if outcome is None else outcome.exit_code,
        "wall_ns": None if outcome is None else outcome.wall_ns,
        "markers": request.markers and nvtx_markers.preload_library() is not None,
        "collector": None,
        "nsys": None,
        "cupti": None,
        "ncu": None,
        "driver": None,
        "gpus": None,
        **done.facts,
        "repeats": request.repeats,
        "failure": None if done.failure is None else done.failure.slug,
        "environment": dict(os.environ) if request.capture.keep_environment else None,
        "files": sorted(str(p.relative_to(done.folder)) for p in done.folder.rglob("*") if p.is_file()),
    }
    write_text(done.folder / "manifest.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def write_observer(done: Captured, found: Sequence[observer.Effect]) -> None:
    """``observer.json``."""
    text = json.dumps(observer.document(done.runs, found), indent=1)
    write_text(done.folder / "observer.json", text + "\n")


def _check_program(name: str) -> None:
    if shutil.which(name) is None:
        raise UsageError(
            "program-not-found", f"there is no program {name!r} that can be run", "check the name after --"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise ToolError(
            "run-folder-unusable", f"the run folder cannot be used: {error.strerror}", "choose another one with -o"
        ) from error
    if taken:
        raise UsageError("run-folder-exists", "the run folder is not empty", "name a new one with -o")


def _command(request: Request, folder: Path) -> list[str]:
    return [word.replace(RUN_FOLDER, str(folder)) for word in request.command]


def _log(folder: Path) -> Path | None:
    path = folder / "app.log"
    with path.open("rb") as lines:
        return path if any(b"TIMELINE," in line for line in lines) else None


def _plain_paths(words: Sequence[str], folder: Path) -> list[str]:
    return [word.replace(str(folder), ".") for word in words]
