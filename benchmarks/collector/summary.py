"""What `run.sh` left, as one JSON object: wall times, counts, durations of kernels under both tools, samples."""

from __future__ import annotations

import json
import sqlite3
import statistics
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

Rows = dict[str, np.ndarray[Any, np.dtype[Any]]]


def blocks(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Whole blocks of a capture file: kind, rows, payload."""
    at = 64
    while at + 32 <= len(data):
        magic, kind, _, rows, size, payload_sum = struct.unpack_from("<IHHIII", data, at)
        payload = data[at + 32 : at + 32 + size]
        if magic != 0x4B4C4256 or len(payload) != size or zlib.crc32(payload) != payload_sum:
            return
        yield kind, rows, payload
        at += 32 + size + -size % 8


def read_capture(path: Path) -> tuple[Rows, dict[int, str], list[Any], dict[str, Any], dict[str, Any] | None]:
    """Tables, texts, notices, facts and end of one capture file."""
    layouts: dict[int, tuple[str, np.dtype[Any]]] = {}
    parts: dict[str, list[np.ndarray[Any, np.dtype[Any]]]] = {}
    texts: dict[int, str] = {}
    notices: list[Any] = []
    facts: dict[str, Any] = {}
    end = None
    for kind, rows, payload in blocks(path.read_bytes()):
        if kind == 1:
            for table in json.loads(payload)["tables"]:
                names = [one["name"] for one in table["fields"]]
                formats = ["<" + one["type"] for one in table["fields"]]
                offsets = [one["offset"] for one in table["fields"]]
                layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": table["row_bytes"]}
                layouts[table["kind"]] = table["name"], np.dtype(layout)  # type: ignore[call-overload]
        elif kind == 2:
            facts |= json.loads(payload)
        elif kind == 3:
            at = 0
            for _ in range(rows):
                number, size = struct.unpack_from("<II", payload, at)
                texts[number] = payload[at + 8 : at + 8 + size].decode("utf-8", "replace")
                at += 8 + size
        elif kind == 4:
            end = json.loads(payload)
        elif kind == 5:
            notices.append(json.loads(payload))
        elif kind in layouts:
            name, dtype = layouts[kind]
            parts.setdefault(name, []).append(np.frombuffer(payload, dtype, rows))
    return {name: np.concatenate(some) for name, some in parts.items()}, texts, notices, facts, end


def by_name(names: Any, texts: dict[int, str], values: Any = None) -> dict[str, Any]:
    """Counts, or medians of values, by text."""
    result: dict[str, Any] = {}
    for number in np.unique(names):
        mask = names == number
        text = texts.get(int(number), f"#{number}")
        result[text] = int(mask.sum()) if values is None else float(np.median(values[mask]))
    return result


def of_capture(folder: Path) -> dict[str, Any]:
    """Figures of a folder of captures."""
    paths = sorted(folder.glob("*.nvcap"), key=lambda path: path.stat().st_size)
    if not paths:
        return {"files": 0}
    tables, texts, notices, facts, end = read_capture(paths[-1])
    kernels, calls, samples = tables.get("kernel"), tables.get("runtime"), tables.get("gpu_metric")
    found: dict[str, Any] = {"files": len(paths), "bytes": paths[-1].stat().st_size, "notices": notices, "end": end}
    found["facts"] = {name: facts.get(name) for name in ("cupti", "driver", "cupti_clock", "refused", "pm", "enabled")}
    found["rows"] = {name: len(rows) for name, rows in sorted(tables.items())}
    for name in ("runtime", "driver"):
        if name in tables:
            found[name] = by_name(tables[name]["name"], texts)
    if kernels is not None:
        timed = kernels[kernels["start"] > 0]
        found["kernels"] = by_name(kernels["name"], texts)
        found["kernel_median_ns"] = by_name(timed["name"], texts, (timed["end"] - timed["start"]).astype(np.int64))
        found["kernels_without_times"] = len(kernels) - len(timed)
        if calls is not None and len(timed):
            order = np.argsort(calls["correlationId"])
            at = np.searchsorted(calls["correlationId"][order], timed["correlationId"]).clip(max=len(calls) - 1)
            match = order[at]
            same = calls["correlationId"][match] == timed["correlationId"]
            lead = timed["start"].astype(np.int64) - calls["start"][match].astype(np.int64)
            found["kernels_with_their_call"] = int(same.sum())
            found["kernel_starts_before_its_call"] = int((lead[same] < 0).sum())
            found["call_to_kernel_median_ns"] = float(np.median(lead[same])) if same.any() else None
    if samples is not None:
        metrics = tables["gpu_metric_name"]
        found["pm"] = {
            texts[int(row["name"])]: {
                "source": texts[int(row["source"])],
                "samples": int((mine := samples["metricId"] == row["metricId"]).sum()),
                "mean": float(samples["value"][mine].mean() / row["scale"]) if mine.any() else None,
                "period_ns": float(np.median(np.diff(np.sort(samples["gpuStart"][mine])))) if mine.sum() > 1 else None,
            }
            for row in metrics
        }
        if kernels is not None and len(kernels):
            first, last = int(kernels["start"].min()), int(kernels["end"].max())
            found["pm_covers"] = [int(samples["start"].min()) - first, int(samples["end"].max()) - last]
    return found


def of_nsys(path: Path) -> dict[str, Any]:
    """Figures of an nsys export."""
    found: dict[str, Any] = {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        for table in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION"):
            try:
                found[table.lower()] = base.execute(f"select count(*) from CUPTI_ACTIVITY_KIND_{table}").fetchone()[0]
            except sqlite3.Error:
                found[table.lower()] = 0
        try:
            query = "select value, count(*) from CUPTI_ACTIVITY_KIND_RUNTIME join StringIds on nameId = id group by 1"
            found["calls"] = dict(base.execute(query).fetchall())
            query = "select value, end - start from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on mangledName = id"
            durations: dict[str, list[int]] = {}
            for name, duration in base.execute(query):
                durations.setdefault(name, []).append(duration)
            found["kernels"] = {name: len(some) for name, some in durations.items()}
            found["kernel_median_ns"] = {name: statistics.median(some) for name, some in durations.items()}
        except sqlite3.Error as error:
            found["error"] = str(error)
    return found


def difference(nsys: dict[str, Any], cupti: dict[str, Any]) -> dict[str, Any]:
    """Where the two disagree."""
    ours, theirs = cupti.get("kernel_median_ns", {}), nsys.get("kernel_median_ns", {})
    medians = {
        name: {"nsys": theirs[name], "cupti": ours[name], "percent": 100 * (ours[name] / theirs[name] - 1)}
        for name in sorted(ours.keys() & theirs.keys())
        if theirs[name]
    }
    within = all(abs(one["percent"]) <= 2 or abs(one["cupti"] - one["nsys"]) <= 100 for one in medians.values())
    mine, calls = cupti.get("runtime", {}) | cupti.get("driver", {}), nsys.get("calls", {})
    apart = {name: [calls.get(name, 0), mine.get(name, 0)] for name in sorted(mine.keys() | calls.keys())}
    return {
        "kernels": [nsys.get("kernel"), cupti.get("rows", {}).get("kernel", 0)],
        "copies": [nsys.get("memcpy"), cupti.get("rows", {}).get("memcpy", 0)],
        "memsets": [nsys.get("memset"), cupti.get("rows", {}).get("memset", 0)],
        "calls_that_differ": {name: pair for name, pair in apart.items() if pair[0] != pair[1]},
        "kernel_medians": medians,
        "within_2_percent_or_100_ns": within if medians else None,
    }


def shares(path: Path) -> dict[str, float]:
    """Percent of a run's device wall, and of its sections' walls, by category."""
    document = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, float] = {}
    for view, parts in (("device", document["devices"]), ("sections", document["partitions"])):
        wall = sum(sum(part["categories"].values()) for part in parts)
        for category in {name for part in parts for name in part["categories"]}:
            share = 100 * sum(part["categories"].get(category, 0) for part in parts) / wall
            found[f"{view} {category}"] = share
    for overhead in document["overheads"]:
        if overhead.get("driver_lock_ns") is not None:
            found[f"driver lock in {overhead['category']}, ms"] = overhead["driver_lock_ns"] / 1e6
    return found


def attributions(out: Path) -> dict[str, Any]:
    """By category: the median share under each tool, how far its own runs lie apart, and how far the medians."""
    runs = {
        tool: [shares(path) for path in sorted(out.glob(f"prover-{tool}-*.json"))] for tool in ("nsys", "cupti", "pm")
    }
    found: dict[str, Any] = {"runs": {tool: len(some) for tool, some in runs.items()}}
    if not runs["nsys"] or not runs["cupti"]:
        return found
    for name in sorted({name for some in runs.values() for one in some for name in one}):
        values = {tool: [one.get(name, 0.0) for one in some] for tool, some in runs.items() if some}
        found[name] = {tool: round(statistics.median(some), 3) for tool, some in values.items()}
        found[name]["own_spread"] = round(max(max(some) - min(some) for some in values.values()), 3)
        found[name]["apart"] = round(abs(found[name]["nsys"] - found[name]["cupti"]), 3)
    return found


def main(out: Path) -> None:
    """Prints the summary of a folder of runs."""
    runs = [json.loads(line) for line in (out / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    summary: dict[str, Any] = {"runs": runs, "wall_ms": {}, "launch": {}, "captures": {}, "differences": {}}
    for run in runs:
        if run["code"] == 0:
            summary["wall_ms"].setdefault(run["name"].rpartition("-")[0] or run["name"], []).append(run["wall_ms"])
        try:
            # nsys writes words of its own after the program's.
            words = (out / f"{run['name']}.out").read_text(encoding="utf-8").splitlines()
            figures = json.loads(next(line for line in words if '"ns_per_launch"' in line))
            summary["launch"].setdefault(run["name"], [figures["ns_per_launch"], figures["best_ns_per_launch"]])
        except (OSError, ValueError, StopIteration, KeyError):
            pass
        try:
            if run["tool"].startswith("cupti"):
                summary["captures"][run["name"]] = of_capture(out / f"{run['name']}.capture")
        except Exception as error:  # a summary of the rest is worth more than a traceback
            summary["captures"][run["name"]] = {"error": repr(error)}
    for program in ("prover", "launches"):
        export, capture = out / f"{program}-nsys-1.sqlite", summary["captures"].get(f"{program}-cupti-1")
        if export.exists() and capture:
            summary["differences"][program] = difference(of_nsys(export), capture)
    summary["attribution"] = attributions(out)
    for name in list(summary["captures"])[2:]:  # the first of each program is enough in full
        for long in ("kernel_median_ns", "runtime", "driver", "kernels"):
            if len(runs) > 10:
                summary["captures"][name].pop(long, None)
    print(json.dumps(summary, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
