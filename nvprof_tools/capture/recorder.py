"""What records a run: nsys, or our own collector inside the program. Both leave one trace and say what they did."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import nvtx_markers
from nvprof_tools.capture import collector, importer, nsys, tools
from nvprof_tools.capture.running import Outcome, run
from nvprof_tools.capture.tools import Tool
from nvprof_tools.errors import SourceError
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import capture_file

Choice = Literal["auto", "nsys", "cupti"]
CHOICES: tuple[Choice, ...] = ("auto", "nsys", "cupti")
_TOOL_SECONDS = 3_600


@dataclass(frozen=True)
class Recorded:
    """A run as it was recorded. ``facts``: for the manifest; ``refused``: why GPU metrics were not sampled."""

    outcome: Outcome
    facts: Mapping[str, Any]
    refused: str = ""


class Recorder(Protocol):
    """Runs a program and keeps what it did on the GPU."""

    @property
    def name(self) -> str:
        """As the manifest names it."""

    @property
    def label(self) -> str:
        """With its version, for people."""

    @property
    def quality(self) -> Sequence[QualityItem]:
        """What is doubtful before anything runs."""

    @property
    def leaves(self) -> Sequence[str]:
        """Patterns of what a run leaves in its folder beside its output."""

    def record(self, command: Sequence[str], folder: Path, wish: nsys.Wish, echo: tuple[int, int] | None) -> Recorded:
        """Run it.

        :raises ToolError: ``profiler-not-started``, or a wish that cannot be kept.
        """

    def trace(self, folder: Path, outcome: Outcome) -> Path:
        """What was recorded, as the readers take it.

        :raises ToolError: there is none, and why.
        """


def choose(choice: Choice, markers: bool, environ: Mapping[str, str] | None = None) -> Recorder:
    """The recorder asked for; ``auto``: nsys where it is found and can write reports, else the collector where it was
    built.

    :raises ToolError: ``nsys-missing``, ``collector-missing``.
    """
    environ = os.environ if environ is None else environ
    preload = nvtx_markers.preload_library() if markers else None
    profiler = None if choice == "cupti" else tools.find("nsys", environ)
    library = None if choice == "nsys" else collector.library(environ)
    if profiler is not None and library is not None and importer.examine(profiler).works is False:
        profiler = None
    if profiler is not None:
        return NsysRecorder(profiler, nsys.abilities(profiler), preload, markers)
    if library is not None:
        collector.check_free(environ)
        return CuptiRecorder(library, preload, markers)
    if choice == "cupti":
        raise collector.missing()
    raise SourceError(
        "nsys-missing",
        "nsys was not found: neither on the PATH nor where installers put it",
        "install Nsight Systems; see nvprof-tools doctor",
    )


@dataclass(frozen=True)
class NsysRecorder:
    """nsys around the program, its report exported."""

    profiler: Tool
    known: str
    preload: Path | None
    markers: bool
    name: str = "nsys"
    leaves: Sequence[str] = ("trace.*", "*.qdstrm")

    @property
    def label(self) -> str:
        """See :class:`Recorder`."""
        return f"nsys {self.profiler.version or '(version unknown)'}"

    @property
    def quality(self) -> Sequence[QualityItem]:
        """See :class:`Recorder`."""
        return _without_markers("nsys traced the system's calls") if self.markers and self.preload is None else ()

    def record(self, command: Sequence[str], folder: Path, wish: nsys.Wish, echo: tuple[int, int] | None) -> Recorded:
        """A run under nsys; without GPU metrics where nsys refuses to start with them, and then why."""
        refused = ""
        while True:
            chosen = nsys.options(wish, self.known, self.preload is not None)
            under = [str(self.profiler.path), "profile", *chosen, f"--output={folder / 'trace'}"]
            outcome = run(command, folder, under=under, preload=self.preload, echo=echo)
            if outcome.started or not wish.metrics or not nsys.refused_metrics(outcome.said):
                facts = {"version": self.profiler.version, "options": chosen}
                return Recorded(outcome, facts, nsys.telling(refused) if refused else "")
            refused, wish = outcome.said, wish.without_metrics()

    def trace(self, folder: Path, outcome: Outcome) -> Path:
        """See :class:`Recorder`."""
        report, out = folder / "trace.nsys-rep", folder / "trace.sqlite"
        if not report.is_file():
            raise nsys.explain(outcome.said, outcome.profiler_code, folder, self.profiler)
        exported = call(nsys.export_command(self.profiler, report, out))
        if exported.returncode != 0 or not out.is_file():
            said = (exported.stdout + exported.stderr).decode("utf-8", "replace")
            raise nsys.explain_export(said, exported.returncode)
        return out


@dataclass(frozen=True)
class CuptiRecorder:
    """Our collector, injected into the program by the driver."""

    library: Path
    preload: Path | None
    markers: bool
    name: str = "cupti"
    leaves: Sequence[str] = (f"{collector.FOLDER}/*",)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def label(self) -> str:
        """See :class:`Recorder`."""
        return "the collector on CUPTI"

    @property
    def quality(self) -> Sequence[QualityItem]:
        """See :class:`Recorder`."""
        return _without_markers("lock waits are not measured") if self.markers and self.preload is None else ()

    def record(self, command: Sequence[str], folder: Path, wish: nsys.Wish, echo: tuple[int, int] | None) -> Recorded:
        """A run with the collector in the program."""
        chosen = collector.options(wish)
        out = folder / collector.FOLDER
        out.mkdir(exist_ok=True)
        environment = {**self.environ, **collector.environment(self.library, out, chosen)}
        outcome = run(command, folder, preload=self.preload, echo=echo, environ=environment)
        facts = {"version": None, "options": [f"{name}={value}" for name, value in sorted(chosen.items())]}
        return Recorded(outcome, {**facts, **collector.said(out)})

    def trace(self, folder: Path, outcome: Outcome) -> Path:
        """See :class:`Recorder`."""
        out = folder / collector.FOLDER
        if not capture_file.files(out):
            raise collector.explain(outcome, self.library)
        return out


def _without_markers(instead: str) -> tuple[QualityItem, ...]:
    return (
        QualityItem(
            "markers-missing",
            Severity.NOTICE,
            1,
            f"the markers were not loaded ({nvtx_markers.native_status().reason}); {instead}",
            "install a C compiler and reinstall nvprof-tools",
        ),
    )


def call(command: Sequence[str], environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """A tool's answer; one that cannot be run answers 127."""
    try:
        return subprocess.run(
            list(command),
            capture_output=True,
            check=False,
            timeout=_TOOL_SECONDS,
            env=environ,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(command), 127, b"", str(error).encode())
