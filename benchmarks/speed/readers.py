"""One way to get the needed columns of a table, timed in this process alone.

    python -m benchmarks.speed.readers NAME EXPORT.sqlite TABLE

Prints one line of JSON: wall and processor seconds, peak memory, rows. ``bare`` is the yardstick: what any reader has
to do at the least (native/bare_decode.cpp).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
Timed = Callable[[], int]


def columns(path: Path, table: str) -> tuple[list[str], list[str]]:
    """The columns that import reads, and all columns."""
    from nvprof_tools.sources.nsys_schema import TABLES

    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        present = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    return [w.name for w in TABLES[table] if w.name in present], present


def query(path: Path, table: str, also: str = "") -> str:
    """The SELECT of the needed columns."""
    return f"SELECT {also}{', '.join(columns(path, table)[0])} FROM {table}"


def reader(path: Path) -> tuple[Any, Any]:
    """The page reader and the driver behind it, on a file that passed its opening."""
    from nvprof_tools.limits import DEFAULT_LIMITS
    from nvprof_tools.sources.bulk_adbc import AdbcReader
    from nvprof_tools.sources.bulk_pages import PageReader
    from nvprof_tools.sources.guarded_sqlite import open_guarded

    database = open_guarded(path, DEFAULT_LIMITS)
    driver = AdbcReader(database)
    return PageReader(database, driver), driver


def pages(path: Path, table: str, threads: int) -> Timed:
    import pyarrow as pa

    mine, _ = reader(path)
    mine.threads = threads
    wanted = columns(path, table)[0]

    def run() -> int:
        found = mine.decode(table, wanted, [pa.int64()] * len(wanted))
        if isinstance(found, str):
            raise SystemExit(f"the page decoder refused: {found}")
        return int(found.num_rows)

    return run


def through_adbc(path: Path, table: str, checked: bool) -> Timed:
    import pyarrow as pa

    _, driver = reader(path)
    if not checked:
        driver.database._checked.add(table)  # what the structure check adds is measured apart
    wanted = columns(path, table)[0]
    return lambda: int(driver.read_columns(table, wanted, [pa.int64()] * len(wanted)).num_rows)


def through_connectorx(path: Path, table: str) -> Timed:
    import connectorx

    # By rowid, which SQLite can seek: any other column would make each partition scan the whole table.
    asked = query(path, table, "rowid AS part, ")
    kind: dict[str, Any] = {"return_type": "arrow", "partition_on": "part", "partition_num": 2}
    return lambda: int(connectorx.read_sql(f"sqlite://{path}", asked, **kind).num_rows)


def through_pandas(path: Path, table: str) -> Timed:
    import pandas as pd

    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    return lambda: len(pd.read_sql(query(path, table), database))


def structure_check(path: Path, table: str) -> Timed:
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    return lambda: len(database.execute(f"PRAGMA quick_check({table})").fetchall())


def copied(path: Path, table: str) -> Timed:
    """The whole file through a buffer, as ``cat`` does."""

    def run() -> int:
        buffer = bytearray(1 << 20)
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        return 0

    return run


def bare(path: Path, table: str, threads: int) -> Timed:
    folder = tempfile.mkdtemp(prefix="bare-decode-")
    library = Path(folder) / "bare.so"
    source = Path(__file__).with_name("native") / "bare_decode.cpp"
    compiler = os.environ.get("CXX", "c++")
    subprocess.run(
        [compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-pthread", str(source), "-o", str(library)], check=True
    )
    decode = ctypes.CDLL(str(library)).bare_decode
    decode.restype = ctypes.c_uint64
    library.unlink()
    Path(folder).rmdir()
    wanted, present = columns(path, table)
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    places = (ctypes.c_uint32 * len(wanted))(*map(present.index, wanted))
    return lambda: int(decode(str(path).encode(), root, places, len(wanted), threads, None))


READERS: dict[str, Callable[[Path, str], Timed]] = {
    "file copied": copied,
    "bare, one thread": lambda path, table: bare(path, table, 1),
    "bare, two threads": lambda path, table: bare(path, table, 2),
    "pages, one thread": lambda path, table: pages(path, table, 1),
    "pages, two threads": lambda path, table: pages(path, table, 2),
    "connectorx, two partitions": through_connectorx,
    "ADBC": lambda path, table: through_adbc(path, table, False),
    "ADBC and structure check": lambda path, table: through_adbc(path, table, True),
    "structure check alone": structure_check,
    "pandas.read_sql": through_pandas,
}


def main() -> int:
    """The command."""
    name, path, table = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    run = READERS[name](path, table)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    rows = run()
    print(
        json.dumps(
            {
                "wall_s": round(time.perf_counter() - wall, 4),
                "processor_s": round(time.process_time() - processor, 4),
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
                "start_mib": before >> 10,
                "rows": rows,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
