"""Every command that writes, over small inputs, and how its output is looked at."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.fixture_files import ROOT as FIXTURES
from tests.fixture_files import fixture_log, fixture_trace

TRACE = "public/pipit_saxpy_mpi_cuda"
OUTPUTS = {
    "report.html": "report", "report.json": "report", "report.pftrace": "report", "tables": "import",
    "golden": "record", "log.json": "log", "junit.xml": "check",
}  # fmt: skip
"""Output name → command."""


def arguments(output: Path) -> list[str]:
    """The command line that writes ``output``, replacing what is there."""
    trace = str(fixture_trace(TRACE))
    match OUTPUTS[output.name]:
        case "report":
            return ["report", trace, "-o", str(output)]
        case "import":
            return ["import", trace, "-o", str(output), "--replace"]
        case "record":
            return ["golden", "record", trace, "-o", str(output), "--replace"]
        case "log":
            return ["log", str(fixture_log("sim_w2")), "-o", str(output)]
        case _:
            return ["golden", "check", str(FIXTURES / "golden" / "sim_w2"), "--junit", str(output)]


def state(path: Path) -> str | None:
    """A digest of a file or a directory; null where there is none."""
    if not path.exists():
        return None
    found = hashlib.sha256()
    for file in sorted([path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]):
        found.update(f"{file.relative_to(path.parent)}\0".encode() + file.read_bytes() + b"\0")
    return found.hexdigest()
