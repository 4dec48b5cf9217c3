"""Our own collector: where its library lies, what the program's environment must say, why there may be no records."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nvprof_tools
import nvtx_markers
from nvprof_tools.capture.nsys import Wish, frequency
from nvprof_tools.capture.running import Outcome
from nvprof_tools.errors import SourceError, ToolError, UsageError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.sources import capture_file

NAME = "libnvprof_collector.so"
SWITCH = "NVPROF_TOOLS_COLLECTOR"
"""Environment variable: ``0`` leaves the library aside, a path names another one."""
FOLDER = "capture"
"""Below the run folder: one file a process."""

OUT, CUDA_INJECTION, NVTX_INJECTION = "NVPROF_COLLECTOR_OUT", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"
CUPTI = "NVPROF_COLLECTOR_CUPTI"
_NSYS_ONLY = {
    "os_calls": "--os-calls",
    "delay_s": "--delay",
    "duration_s": "--duration",
    "capture_range": "--capture-range",
    "extra": "--nsys-option",
}


def library(environ: Mapping[str, str] | None = None) -> Path | None:
    """The library, where it was built and is to be used."""
    asked = (os.environ if environ is None else environ).get(SWITCH, "")
    if asked == "0":
        return None
    path = Path(asked) if asked else Path(nvprof_tools.__file__).parent / "native_collector" / NAME
    return path.absolute() if path.is_file() else None


def cupti(
    environ: Mapping[str, str] | None = None, root: Path = Path("/"), packages: Sequence[str] = ()
) -> Path | None:
    """The libcupti that the collector will find: one that is named, a toolkit's, else one from the Python package
    nvidia-cuda-cupti; null: only what the program itself may have loaded, or what the system's loader knows.

    :param packages: folders of Python packages; by default those that this program uses.
    """
    environ = os.environ if environ is None else environ
    if environ.get(CUPTI):
        named = Path(environ[CUPTI])
        return named if named.is_file() else None
    homes = [Path(environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    homes += [root / "usr/local/cuda", root / "opt/cuda"]
    for home in homes:
        for folder in (home / "lib64", home / "extras/CUPTI/lib64"):
            found = _newest(folder)
            if found is not None:
                return found
    return packaged_cupti(packages)


def packaged_cupti(packages: Sequence[str] = ()) -> Path | None:
    """The one of the Python package, which the collector does not find by itself."""
    for entry in packages or sys.path:
        for folder in sorted(Path(entry or ".").glob("nvidia/*/lib"), reverse=True):
            found = _newest(folder)
            if found is not None:
                return found
    return None


def _newest(folder: Path) -> Path | None:
    for name in ("libcupti.so.13", "libcupti.so.12", "libcupti.so"):
        if (folder / name).is_file():
            return folder / name
    return None


def missing() -> ToolError:
    """Why there is no library."""
    reason = nvtx_markers.native_status(NAME).reason
    return SourceError(
        "collector-missing",
        f"the collector's library is not there: {reason}",
        "install a C++ compiler and nvidia-cuda-cupti (or the CUDA toolkit) and reinstall nvprof-tools; "
        "see nvprof-tools doctor",
    )


def taken(environ: Mapping[str, str]) -> str | None:
    """The tool that is injected into every program already, by its file's name; null: none."""
    for name in (CUDA_INJECTION, NVTX_INJECTION):
        other = environ.get(name, "").strip()
        if other and Path(other).name not in {"", ".", NAME}:
            return Path(other).name
    return None


def check_free(environ: Mapping[str, str]) -> None:
    """Refuse to take another tool's place.

    :raises UsageError: ``collector-not-alone``.
    """
    other = taken(environ)
    if other is not None:
        raise UsageError(
            "collector-not-alone",
            f"another tool is to be loaded into the program: {other}",
            f"unset {CUDA_INJECTION} and {NVTX_INJECTION}, or record with that tool",
        )


def options(wish: Wish) -> dict[str, str]:
    """What the collector is told, as environment variables.

    :raises UsageError: ``collector-option``: something only nsys can do.
    """
    for name, option in _NSYS_ONLY.items():
        if getattr(wish, name):
            raise UsageError(
                "collector-option", f"{option} is nsys' and the collector cannot do it", "leave it out, or install nsys"
            )
    chosen = {"NVPROF_COLLECTOR_GRAPH": "node" if wish.graph_nodes else "graph"}
    if wish.memory:
        chosen["NVPROF_COLLECTOR_MEMORY"] = "1"
    if wish.metrics:
        chosen["NVPROF_COLLECTOR_PM"] = str(frequency(wish))
    return chosen


def environment(library: Path, out: Path, chosen: Mapping[str, str]) -> dict[str, str]:
    """What the program's environment must say besides its own."""
    found = cupti()
    if found is not None and found == packaged_cupti():
        chosen = {**chosen, CUPTI: str(found)}
    return {CUDA_INJECTION: str(library), NVTX_INJECTION: str(library), OUT: str(out), **chosen}


def said(out: Path) -> dict[str, Any]:
    """Versions, as the first capture in ``out`` states them; nothing where there is none that can be read."""
    for path in capture_file.files(out):
        try:
            return capture_file.facts_of(path, DEFAULT_LIMITS)
        except SourceError:
            continue
    return {}


def explain(outcome: Outcome, library: Path) -> ToolError:
    """Why a run left no capture."""
    if not outcome.started:
        return ToolError("collector-empty", "the program was not started", "can it be run by hand?")
    return ToolError(
        "collector-empty",
        "the program ended without a capture: it made no CUDA call and no NVTX range, cleared its environment, or "
        f"{library.name} could not be loaded into it",
        f"is it the program that uses the GPU? LD_DEBUG=libs shows what {library.name} lacks; "
        "nvprof-tools doctor names CUPTI",
    )
