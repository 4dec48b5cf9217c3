"""Runs one command under a limit and writes down what it took.

    python3 timed.py RESULTS.jsonl NAME LIMIT_S OUTPUT -- COMMAND…

Appends a line of JSON: wall and processor seconds, the largest resident set of any process of it, its exit code (124:
the limit). Its output goes to the file OUTPUT. Always ends with 0, so that what comes next still runs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """The command."""
    results, name, limit, output = sys.argv[1:5]
    command = sys.argv[6:]
    began = time.perf_counter()
    with Path(output).open("wb") as out:
        try:
            started = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            out.write(f"{error}\n".encode())
            code = 127
        else:
            try:
                code = started.wait(max(float(limit), 0.1))
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
                code = 124
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = {
        "step": name,
        "exit": code,
        "wall_s": round(wall, 3),
        "processor_s": round(used.ru_utime + used.ru_stime, 3),
        "peak_mib": used.ru_maxrss >> 10,
    }
    with Path(results).open("a") as file:
        file.write(json.dumps(line) + "\n")
    said = Path(output).read_text(errors="replace").strip().splitlines()
    sys.stderr.write(f"{name}: exit {code}, {wall:.2f} s" + (f": {' | '.join(said[-4:])[:600]}" if code else "") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
