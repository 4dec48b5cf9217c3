"""The steps' figures (``timed.py``), what was recorded, and the ratios, as one JSON document.

python3 summary.py RESULTS.jsonl EXPORT.sqlite LOG
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from pathlib import Path
from typing import Any

TABLES = {
    "kernels": "CUPTI_ACTIVITY_KIND_KERNEL",
    "api_calls": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "nvtx": "NVTX_EVENTS",
    "copies": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memsets": "CUPTI_ACTIVITY_KIND_MEMSET",
    "syncs": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
}
OURS = "nvprof-tools attribute"


def recorded(export: Path, log: Path) -> dict[str, Any]:
    """Sizes of the recording."""
    found: dict[str, Any] = {}
    if export.is_file():
        found["export_bytes"] = export.stat().st_size
        database = sqlite3.connect(f"file:{export}?mode=ro&immutable=1", uri=True)
        for name, table in TABLES.items():
            try:
                (found[name],) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
            except sqlite3.Error as error:
                found[name] = str(error)[:80]
        database.close()
    if log.is_file():
        with log.open("rb") as lines:
            found["log_lines"] = sum(1 for _ in lines)
    return found


def processor() -> str:
    """Its model."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> int:
    """The command."""
    results, export, log = (Path(argument) for argument in sys.argv[1:4])
    steps = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = [s for s in steps if s["exit"] == 0]
    ours = sorted(s["wall_s"] for s in done if s["step"] == OURS)
    ratios = {}
    for step in done:
        if ours and step["step"].startswith("nsys stats"):
            ratios[step["step"]] = {
                "by our median": round(step["wall_s"] / ours[len(ours) // 2], 2),
                "by our slowest": round(step["wall_s"] / ours[-1], 2),
            }
    machine = {
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }
    document = {"machine": machine, "recorded": recorded(export, log), "steps": steps, "ratios": ratios}
    print(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
