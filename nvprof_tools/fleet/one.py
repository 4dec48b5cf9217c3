"""One run on whatever machine: attribute it, write its rows, say what became of it. Runs in a worker's process."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from nvprof_tools.errors import ToolError
from nvprof_tools.files.atomic import atomic_writer
from nvprof_tools.fleet import ledger, tables
from nvprof_tools.fleet.ledger import RunResult
from nvprof_tools.fleet.runs import Run
from nvprof_tools.limits import parse_limits


def attribute_run(run: Run, out: Path, options: Mapping[str, Any]) -> RunResult:
    """Attribute a run into the dataset at ``out``. A trace that cannot be used is an outcome, not an error.

    :param options: ``pipeline``, ``window``, ``device``, ``limits`` and ``cache`` as on the command line; absent: the
        default.
    """
    from nvprof_tools.attribution.run import attribute_files
    from nvprof_tools.timeline.parallel import one_at_a_time

    identity = ledger.identity(run, options)
    for name in tables.SCHEMAS:  # what an earlier batch made of files that have changed since
        shutil.rmtree(_folder(out, name, run), ignore_errors=True)
    try:
        with one_at_a_time():  # the other processors have runs of their own
            found, trace = attribute_files(
                run.trace,
                log=run.log,
                pipeline=options.get("pipeline"),
                window=options.get("window"),
                device=options.get("device"),
                limits=parse_limits(options.get("limits") or ""),
                cache=options.get("cache"),
            )
        for name, rows in tables.of_attribution(found).items():
            _store(rows, _folder(out, name, run) / "part-0.parquet")
        summary = asdict(tables.summary(found, trace.session.utc_epoch_ns))
        outcome = RunResult(run.name, run.node, identity, summary)
    except ToolError as error:
        outcome = RunResult(run.name, run.node, identity, None, error.slug, error.message, error.hint)
    except MemoryError:
        hint = "use fewer workers a machine, or a shorter capture"
        outcome = RunResult(run.name, run.node, identity, None, "out-of-memory", "the worker ran out of memory", hint)
    ledger.write(out, outcome)
    return outcome


def _folder(out: Path, table: str, run: Run) -> Path:
    return out / table / f"run={ledger.flat_name(run.name)}"


def _store(rows: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path) as file:
        parquet.write_table(rows, file, compression="zstd", version="2.6")
