"""A trace from file to answer and report, timed in this process alone.

    python -m benchmarks.speed.whole EXPORT.sqlite [--log LOG] [--report report.md]

Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any


def timed(owner: ModuleType | type, called: str, steps: dict[str, float]) -> None:
    """Write down what importing takes."""
    plain = getattr(owner, called)

    def measured(*arguments: Any) -> Any:
        at = time.perf_counter()
        found = plain(*arguments)
        steps["import_s"] = round(time.perf_counter() - at, 3)
        return found

    setattr(owner, called, measured)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--cache", type=Path, help="keeps imports and answers; its first run fills it")
    options = parser.parse_args()
    began = time.perf_counter(), time.process_time()
    from nvprof_tools.cli.process import prepare

    prepare()  # before numpy starts threads, as a command does
    from nvprof_tools.attribution import run

    steps: dict[str, float] = {}
    if options.cache is None:
        from nvprof_tools.attribution import from_files

        timed(from_files, "load_trace", steps)
    else:
        timed(run.ImportCache, "load", steps)
    found, trace = run.attribute_files(options.trace, log=options.log, cache=options.cache)
    steps["attribute_s"] = round(time.perf_counter() - began[0], 3)
    if options.report is not None:
        from nvprof_tools.report.base import Report
        from nvprof_tools.report.registry import by_suffix, make

        at = time.perf_counter()
        with options.report.open("wb") as out:
            make(by_suffix(options.report)).render(Report(found, trace), out)
        steps["report_s"] = round(time.perf_counter() - at, 3)
    print(
        json.dumps(
            {
                "wall_s": round(time.perf_counter() - began[0], 3),
                "processor_s": round(time.process_time() - began[1], 3),
                **steps,
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
                "events": sum(table.num_rows for table in trace.tables.values()),
                "partitions": len(found.partitions),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
