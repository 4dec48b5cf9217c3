#!/usr/bin/env python3
"""Reads the event columns of an export into Arrow with one reader, in a fresh process: wall, CPU and peak memory.

    bulk_readers.py EXPORT.sqlite [--reader adbc|connectorx|sqlite3|ours] [--repeat 3]

Without ``--reader`` every reader is measured, each repeat in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.sources.nsys_schema import TABLES
from nvprof_tools.sources.nsys_sqlite import NsysSqlite

EVENTS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "StringIds")
READERS = ("adbc", "connectorx", "sqlite3", "ours")


def queries(path: Path) -> dict[str, str]:
    """One SELECT a table, of the columns that are read and there."""
    import sqlite3

    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    found = {}
    for table in EVENTS:
        present = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
        columns = ", ".join(f'"{w.name}"' for w in TABLES[table] if w.name in present)
        found[table] = f'SELECT {columns} FROM "{table}"'
    database.close()
    return found


def adbc(path: Path) -> int:
    import adbc_driver_manager as manager
    import adbc_driver_sqlite
    import pyarrow as pa

    uri = f"file:{path}?mode=ro&immutable=1"
    rows = 0
    with (
        manager.AdbcDatabase(driver=adbc_driver_sqlite._driver_path(), uri=uri) as database,
        manager.AdbcConnection(database) as connection,
    ):
        for query in queries(path).values():
            with manager.AdbcStatement(connection) as statement:
                statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
                statement.set_sql_query(query)
                stream, _ = statement.execute_query()
                reader = pa.RecordBatchReader._import_from_c(stream.address)
                rows += reader.read_all().num_rows
                reader.close()
    return rows


def connectorx(path: Path) -> int:
    import connectorx

    return sum(connectorx.read_sql(f"sqlite://{path}", q, return_type="arrow").num_rows for q in queries(path).values())


def sqlite3(path: Path) -> int:
    import sqlite3 as standard

    import pyarrow as pa

    database = standard.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    rows = 0
    for query in queries(path).values():
        cursor = database.execute(query)
        names = [d[0] for d in cursor.description]
        while batch := cursor.fetchmany(20_000):
            rows += pa.RecordBatch.from_arrays([pa.array(c) for c in zip(*batch, strict=True)], names).num_rows
    return rows


def ours(path: Path) -> int:
    with NsysSqlite().read(path, DEFAULT_LIMITS) as raw:
        raw.read_ahead(EVENTS)
        return sum(table.num_rows for name in EVENTS if (table := raw.read(name)) is not None)


def measure(name: str, path: Path) -> dict[str, float]:
    started, spent = time.perf_counter(), time.process_time()
    rows = {"adbc": adbc, "connectorx": connectorx, "sqlite3": sqlite3, "ours": ours}[name](path)
    return {
        "rows": rows,
        "wall_s": round(time.perf_counter() - started, 2),
        "cpu_s": round(time.process_time() - spent, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=Path)
    parser.add_argument("--reader", choices=READERS)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    if options.reader:
        print(json.dumps(measure(options.reader, options.export.resolve())))
        return 0
    for reader in READERS:
        runs = []
        for _ in range(options.repeat):
            command = [sys.executable, __file__, str(options.export), "--reader", reader]
            runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(reader, min(runs, key=lambda r: r["cpu_s"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
