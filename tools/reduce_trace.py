#!/usr/bin/env python3
"""Make a fixture of an nsys SQLite export: allow-listed tables, columns, facts and strings; no path, host or user.

    reduce_trace.py SOURCE.sqlite OUT.sqlite[.xz] [--os-calls PATTERN] [--metrics PATTERN] [--metrics-margin-ms N]

What nvprof_tools reads of an export is kept, row for row, so that the fixture gives the same tables as its source;
GPU metrics are thinned to those a ladder shows, around the GPU work. The program's output keeps its log lines only.
The same source and options give the same bytes.
"""

from __future__ import annotations

import argparse
import lzma
import re
import sqlite3
import sys
import tempfile
from pathlib import Path

from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.sources import nsys_schema
from nvprof_tools.sources.guarded_sqlite import GuardedDatabase, open_guarded, quoted
from nvprof_tools.timeline import session
from nvprof_tools.timeline.embedded_log import log_lines

LADDER = r"GR Active|SMs? Active|SM Issue|Compute Warps in Flight \[Throughput|DRAM (Read|Write)|PCIe (RX|TX)|GPC Clock"
METADATA = {*session.EXPORT_FACTS, *session.CAPTURE_FACTS, *nsys_schema.DRIVER_ENV, "CAPTURE_EVENT_TYPE"}
STRING_COLUMNS = {"nameId", "textId", "demangledName", "shortName", "mangledName", "filenameId", "contentId"}
TEXT_SCRUBBED = {("DIAGNOSTIC_EVENT", "text"), ("PROCESSES", "name"), ("NVTX_EVENTS", "text")}


ROOTED = re.compile(
    r"/(?:home|root|usr|opt|tmp|var|etc|mnt|data|global|lustre|scratch|work|proc|sys|Users|private|nix)/[^\s'\"():,;]*"
)
"""Range names may look like paths (layers of a network); a path of a machine begins at one of its roots."""


def scrub(text: str | None) -> str | None:
    """No path of a machine."""
    return None if text is None else ROOTED.sub("<path>", text)


def metadata_row(name: str | None, value: str | None) -> bool:
    """Whether a fact is on the list and looks harmless."""
    plain = re.sub(r"^PROCESS_\d+:", "", name or "")
    return plain in METADATA and (value is None or not value or session.PLAIN.fullmatch(value) is not None)


def rows_of(
    source: GuardedDatabase, table: str, columns: list[str], where: str, values: tuple[object, ...]
) -> list[tuple]:
    """Rows in file order."""
    query = f"SELECT {', '.join(quoted(c) for c in columns)} FROM main.{quoted(table)} NOT INDEXED {where}"
    return source.connection.execute(query, values).fetchall()


def span(source: GuardedDatabase, names: dict[str, str]) -> tuple[int, int] | None:
    """First and last GPU event."""
    times: list[int] = []
    for kind in ("KERNEL", "MEMCPY"):
        if (table := names.get(f"CUPTI_ACTIVITY_KIND_{kind}")) is not None:
            times.extend(t for row in rows_of(source, table, ["start", "end"], "", ()) for t in row)
    return (min(times), max(times)) if times else None


def reduce(source: GuardedDatabase, target: sqlite3.Connection, options: argparse.Namespace) -> None:
    """Copy what is allowed."""
    source.connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    names = nsys_schema.resolve(source.tables)
    texts = dict(rows_of(source, names["StringIds"], ["id", "value"], "", ()))
    used: dict[int, str] = {}
    busy = span(source, names)
    kept_metrics: set[tuple[int, int]] = set()
    os_name = re.compile(options.os_calls)
    order = sorted(names, key=lambda n: n == "GPU_METRICS")  # after the table that names them
    for canonical in order:
        if canonical == "StringIds":
            continue
        actual, present = names[canonical], source.tables[names[canonical]].columns
        wanted = {n for w in nsys_schema.TABLES[canonical] for n in (w.name, *w.aliases)}
        columns = [c for c in present if c in wanted]
        declared = {r[1]: (r[2], r[3]) for r in source.connection.execute(f"PRAGMA table_xinfo({quoted(actual)})")}
        body = ", ".join(f"{quoted(c)} {declared[c][0]}{' NOT NULL' if declared[c][1] else ''}" for c in columns)
        rows = rows_of(source, actual, columns, "", ())
        at = {c: i for i, c in enumerate(columns)}
        if canonical in {"META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV"}:
            rows = [r for r in rows if metadata_row(r[at["name"]], r[at["value"]])]
        if canonical == "OSRT_API":
            rows = [r for r in rows if os_name.search(texts.get(r[at["nameId"]], ""))]
        if canonical == "TARGET_INFO_GPU_METRICS":
            rows = [r for r in rows if re.search(options.metrics, r[at["metricName"]])]
            kept_metrics = {(r[at["typeId"]], r[at["metricId"]]) for r in rows}
        if canonical == "GPU_METRICS" and busy is not None:
            margin = options.metrics_margin_ms * 1_000_000
            rows = [
                r
                for r in rows
                if (r[at["typeId"]], r[at["metricId"]]) in kept_metrics
                and busy[0] - margin <= r[at["timestamp"]] <= busy[1] + margin
            ]
        if canonical == "ProcessStreams":
            rows = [r for r in rows if log_lines([texts.get(r[at["contentId"]], "")])]
            for row in rows:
                content = row[at["contentId"]]
                texts[content] = log_lines([texts[content]]) or ""
                texts[row[at["filenameId"]]] = Path(texts.get(row[at["filenameId"]], "")).name
        for table, column in TEXT_SCRUBBED:
            if canonical == table:
                rows = [(*r[: at[column]], scrub(r[at[column]]), *r[at[column] + 1 :]) for r in rows]
        if not rows:
            continue
        target.execute(f"CREATE TABLE {quoted(actual)} ({body})")
        target.executemany(f"INSERT INTO {quoted(actual)} VALUES ({', '.join('?' * len(columns))})", rows)
        for column in STRING_COLUMNS & set(columns):
            used.update((i, texts[i]) for i in {r[at[column]] for r in rows} if i in texts)
    target.execute(f"CREATE TABLE {quoted(names['StringIds'])} (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    streams = {texts[i] for i in used if "TIMELINE," in texts[i] or "starting cuzk" in texts[i]}
    kept = ((i, t if t in streams else scrub(t)) for i, t in sorted(used.items()))
    target.executemany(f"INSERT INTO {quoted(names['StringIds'])} VALUES (?, ?)", kept)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--os-calls", default=".", metavar="PATTERN", help="operating-system calls to keep")
    parser.add_argument("--metrics", default=LADDER, metavar="PATTERN", help="GPU metrics to keep")
    parser.add_argument("--metrics-margin-ms", type=int, default=20)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, open_guarded(options.source, DEFAULT_LIMITS) as source:
        plain = Path(folder) / "out.sqlite"
        target = sqlite3.connect(plain, isolation_level=None)
        target.execute("PRAGMA page_size=4096")
        target.execute("BEGIN")
        reduce(source, target, options)
        target.execute("COMMIT")
        target.execute("VACUUM")
        target.close()
        data = plain.read_bytes()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.out.suffix == ".xz":
        data = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    options.out.write_bytes(data)
    sys.stdout.write(f"{options.out}: {len(data):,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
