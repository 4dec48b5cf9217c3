"""``nvprof-tools demo``."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import click

from nvprof_tools.cli.options import attribute, debug_option, deliver
from nvprof_tools.report.registry import by_name

DEMO = "p9_gw2"


@click.command("demo")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("demo-report"), show_default=True,
    help="The folder for the HTML report; made when absent.",
)  # fmt: skip
@debug_option
def demo_command(output: Path) -> None:
    """Run the main job on the bundled golden trace: no GPU, no network.

    It is one run of a Groth16-like prover on an H200: two proofs of five partitions, two GPU workers.
    """
    with as_file(files("nvprof_tools") / "data" / DEMO) as folder:
        report = attribute(folder / "trace.sqlite", log=folder / "app.log")
    deliver(report, by_name("table"), None)
    output.mkdir(parents=True, exist_ok=True)
    deliver(report, by_name("html"), output / "report.html")
