"""Finds the profilers on this machine: nsys and ncu, their versions, what they can do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PLACES: Mapping[str, tuple[str, ...]] = {
    "nsys": (
        "/opt/nvidia/nsight-systems*/*/bin/nsys",
        "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
        "/usr/local/cuda*/bin/nsys",
        "/usr/lib/nsight-systems/bin/nsys",
        "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
    ),
    "ncu": (
        "/usr/local/cuda*/bin/ncu",
        "/opt/nvidia/nsight-compute/*/ncu",
        "/usr/lib/nsight-compute/ncu",
    ),
}
"""Where installers put them, by preference; the first match of the newest name counts."""

_VERSION = re.compile(r"(\d{4})\.(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_ANSWER_SECONDS = 30


@dataclass(frozen=True)
class Tool:
    """One profiler: where it is, the version it states (null: it did not answer), and its number for comparing."""

    name: str
    path: Path
    version: str | None

    @property
    def number(self) -> tuple[int, int]:
        """``(year, release)``; ``(0, 0)`` when unknown."""
        match = _VERSION.search(self.version or "")
        return (int(match[1]), int(match[2])) if match else (0, 0)


def find(name: str, environ: Mapping[str, str] | None = None) -> Tool | None:
    """The profiler ``name`` (``nsys`` or ``ncu``): on the PATH, else where installers put it; null when absent."""
    environ = os.environ if environ is None else environ
    on_path = shutil.which(name, path=environ.get("PATH"))
    candidates = [Path(on_path)] if on_path else []
    if environ.get("NVPROF_TOOLS_ONLY_PATH") != "1":
        for pattern in _PLACES[name]:
            candidates += sorted(Path("/").glob(pattern.lstrip("/")), key=_newest, reverse=True)
    for path in candidates:
        if os.access(path, os.X_OK):
            return Tool(name, path, _version(path))
    return None


def _newest(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))


def _version(path: Path) -> str | None:
    answer = ask([str(path), "--version"])
    match = _VERSION.search(answer or "")
    return match[0] if match else None


def ask(command: Sequence[str]) -> str | None:
    """What a command prints, both streams; null when it cannot be run, fails or does not answer in time."""
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None
