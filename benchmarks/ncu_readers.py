"""Times and memory of the counter readers and of the join, on reports the caller names or pages made here.

python benchmarks/ncu_readers.py REPORT.ncu-rep …     # each: seconds, processor seconds, peak memory
python benchmarks/ncu_readers.py --launches 100 1000 10000  # made pages and traces, growing
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from nvprof_tools.attribution.counters import join_counters
from nvprof_tools.model.arrays import from_numpy, names
from nvprof_tools.model.counters import CounterTable
from nvprof_tools.model.tables import SPECS
from nvprof_tools.model.trace import Session, SourceInfo, Trace
from nvprof_tools.sources.ncu import read_counters

METRICS = 500
KERNELS_A_LAUNCH = 1000
_HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name",'
    '"Context","Stream","Block Size","Grid Size","Device","CC"'
)
_SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def measured(what: str, run: Callable[[], object]) -> object:
    """Run it in this process and print its wall, processor time and the peak memory so far."""
    wall, spent = time.perf_counter(), os.times()
    result = run()
    now = os.times()
    cpu = sum(now[:4]) - sum(spent[:4])
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(
        f"{what:44} {time.perf_counter() - wall:8.2f} s {cpu:8.2f} cpu-s "
        f"{own // 1024:6} MiB own {children // 1024:6} MiB largest child"
    )
    return result


def made_page(path: Path, launches: int) -> None:
    """A raw page of ``launches`` rows and ``METRICS`` metrics, one of them SM throughput."""
    metrics = [_SM, *(f"sm__made_{i}.sum" for i in range(METRICS - 1))]
    values = ",".join(f'"{1000 + i:,}.{i % 100:02}"' for i in range(METRICS - 1))
    with path.open("w") as file:
        file.write(_HEAD + "".join(f',"{m}"' for m in metrics) + "\n")
        file.write(",".join(['""'] * 11) + ',"%"' + ',"inst"' * (METRICS - 1) + "\n")
        for i in range(launches):
            head = f'"{i}","1","p","h","void k<{i % 50}>(T1 *)","1","7","(256, 1, 1)","({1 + i % 4}, 1, 1)","0","9.0"'
            file.write(f'{head},"{i % 100}.50",{values}\n')


def made_trace(kernels: int) -> Trace:
    """A trace of ``kernels`` launches of the page's kernels."""
    number = np.arange(kernels)
    tables: dict[str, pa.Table] = {spec.name: spec.empty() for spec in SPECS}
    schema = tables["kernels"].schema
    words = [f"void k<{i}>(T1 *)" for i in range(50)]
    given = {
        "start_ns": from_numpy(number * 1000),
        "end_ns": from_numpy(number * 1000 + 700),
        "name": names(np.zeros(kernels, np.int32), ["k"]),
        "signature": names((number % 50).astype(np.int32), words),
        "grid_x": from_numpy((1 + number % 4).astype(np.int32)),
    }
    sizes = {"grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}
    columns = []
    for field in schema:
        if field.name in given:
            columns.append(given[field.name])
        elif field.nullable and field.name not in sizes:
            columns.append(pa.nulls(kernels, field.type))
        else:
            dtype = field.type.to_pandas_dtype()
            columns.append(from_numpy(np.full(kernels, sizes.get(field.name, 0), dtype)))
    tables["kernels"] = pa.Table.from_arrays(columns, schema=schema)
    return Trace(SourceInfo("made", None, "0" * 64), Session(0, None), tables, frozenset(tables))


def main() -> None:
    """Measure what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument("--launches", nargs="*", type=int, default=[])
    options = parser.parse_args()
    if not options.reports and not options.launches:
        parser.print_usage(sys.stderr)
    for path in options.reports:
        size = path.stat().st_size / 2**20
        measured(f"{path.name} ({size:.0f} MiB)", lambda path=path: read_counters([path]))  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        for launches in options.launches:
            page = Path(folder) / f"{launches}.csv"
            made_page(page, launches)
            size = page.stat().st_size / 2**20
            table = measured(f"raw page, {launches} launches ({size:.0f} MiB)", lambda: read_counters([page]))  # noqa: B023
            assert isinstance(table, CounterTable)
            trace = made_trace(launches * KERNELS_A_LAUNCH)
            stages = np.zeros(launches * KERNELS_A_LAUNCH, np.int64)
            measured(
                f"join to {launches * KERNELS_A_LAUNCH:,} kernels",
                lambda: join_counters(trace, table, stages, ["all"]),  # noqa: B023
            )


if __name__ == "__main__":
    main()
