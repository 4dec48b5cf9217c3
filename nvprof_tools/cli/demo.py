"""``nvprof-tools demo``."""

from __future__ import annotations

import lzma
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

import click

from nvprof_tools.cli.options import attribute, debug_option, deliver
from nvprof_tools.report.registry import by_name


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-report"),
    show_default=True,
    help="The folder for the HTML report; made when absent.",
)
@debug_option
def demo_command(output: Path) -> None:
    """Run the main job on the bundled golden trace: no GPU, no network.

    It is one run of a Groth16-like prover on an H200: two proofs of five partitions, two GPU workers.
    """
    data = files("nvprof_tools") / "data" / "demo"
    with tempfile.TemporaryDirectory(prefix="nvprof-tools-") as place:
        trace, log = Path(place) / "trace.sqlite", Path(place) / "app.log"
        with (data / "trace.sqlite.xz").open("rb") as packed, lzma.open(packed) as source, trace.open("wb") as out:
            shutil.copyfileobj(source, out)
        log.write_bytes((data / "app.log").read_bytes())
        report = attribute(trace, log=log)
    deliver(report, by_name("table"), None)
    output.mkdir(parents=True, exist_ok=True)
    deliver(report, by_name("html"), output / "report.html")
