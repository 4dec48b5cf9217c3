"""Writes the example reports of the golden traces into ``reports/``: ``make reports``."""

from __future__ import annotations

import lzma
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.errors import ToolError
from nvprof_tools.files.atomic import atomic_writer, write_text
from nvprof_tools.report.base import Report
from nvprof_tools.report.registry import by_name, make

ROOT = Path(__file__).resolve().parent.parent
TRACES, REPORTS = ROOT / "fixtures" / "traces", ROOT / "reports"
PROVER = ROOT / "fixtures" / "prover" / "prover.toml"
WITH_PAGE = {"p9_gw2"}
"""Traces that get an HTML page too: one is enough to look at."""
SUFFIX = {"markdown": ".md", "png": ".png", "html": ".html"}


def names() -> list[str]:
    """The golden traces, by name; ``public_X`` for a slice of a public export."""
    found = (p.parent.relative_to(TRACES) for p in TRACES.rglob("trace.sqlite.xz"))
    return sorted("_".join(p.parts) for p in found)


def source(name: str) -> Path:
    """The folder of a golden trace."""
    return TRACES / (name.replace("public_", "public/", 1) if name.startswith("public_") else name)


def formats(name: str) -> list[str]:
    """What is written of a trace."""
    return ["markdown", "png", *(["html"] if name in WITH_PAGE else [])]


def report(name: str) -> Report:
    """The attribution of a golden trace, with its log where it has one. Raises ToolError as the command line would."""
    folder = source(name)
    log, nvml = folder / "app.log", folder / "nvml.parquet"
    with tempfile.TemporaryDirectory() as place:
        trace = Path(place) / "trace.sqlite"
        trace.write_bytes(lzma.decompress((folder / "trace.sqlite.xz").read_bytes()))
        return Report(
            *attribute_files(
                trace,
                log=log if log.is_file() else None,
                nvml=nvml if nvml.is_file() else None,
                pipeline=str(PROVER) if name.startswith("prover_") else None,
            )
        )


def refusal(error: ToolError) -> str:
    """What is written of a trace that the tool refuses."""
    return f"`error[{error.slug}]`: {error.message}\n\nhint: {error.hint}\n"


def written() -> Iterator[Path]:
    """Write all; gives each path."""
    for name in names():
        try:
            made = report(name)
        except ToolError as error:
            path = REPORTS / f"{name}.md"
            write_text(path, refusal(error))
            yield path
            continue
        for form in formats(name):
            path = REPORTS / f"{name}{SUFFIX[form]}"
            with atomic_writer(path) as out:
                make(by_name(form)).render(made, out)
            yield path


if __name__ == "__main__":
    for path in written():
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
