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


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    began = time.perf_counter(), time.process_time()
    from nvprof_tools.attribution.run import attribute_files

    steps: dict[str, float] = {}
    found, trace = attribute_files(options.trace, log=options.log)
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
