"""A batch from what the user named to the dataset and its roll-up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nvprof_tools.files.atomic import atomic_writer, write_text
from nvprof_tools.fleet import pool, runs
from nvprof_tools.fleet.ledger import RunResult
from nvprof_tools.fleet.rollup import Rollup, roll_up, table

SCHEMA = "nvprof-tools/batch/1"


def batch(
    given: str,
    out: Path,
    options: Mapping[str, Any],
    *,
    scheduler: str = pool.LOCAL,
    workers: int | None = None,
    seen: Callable[[RunResult, int], None] = lambda _, __: None,
) -> Rollup:
    """Attribute the runs that ``given`` names into ``out``: a Parquet dataset partitioned by run, ``runs.parquet`` with
    one row a run, ``rollup.json``. A batch that was stopped goes on where it was.

    :param seen: told of each run as it is done, and how many there are.
    :raises ToolError: no runs, no workers, no room.
    """
    from pyarrow import parquet

    found = runs.find(given)
    outcomes = pool.attribute_all(
        found, out, options, scheduler=scheduler, workers=workers, seen=lambda one: seen(one, len(found))
    )
    rolled = roll_up(outcomes)
    with atomic_writer(out / "runs.parquet") as file:
        parquet.write_table(table(outcomes), file, compression="zstd", version="2.6")
    write_text(out / "rollup.json", document(rolled))
    return rolled


def document(rolled: Rollup) -> str:
    """The roll-up as JSON; a deviation without bound (all the others are equal) is null."""
    outliers = [
        {**asdict(one), "deviations": None if one.deviations == float("inf") else round(one.deviations, 2)}
        for one in rolled.outliers
    ]
    body = {
        "schema": SCHEMA,
        "runs": rolled.runs,
        "groups": [asdict(one) for one in rolled.groups],
        "outliers": outliers,
        "failures": [
            {"run": one.name, "slug": one.slug, "message": one.message, "hint": one.hint} for one in rolled.failures
        ],
    }
    return json.dumps(body, indent=1, ensure_ascii=True) + "\n"
