"""Measures import, attribution and reports, prints ratios, and keeps the figures with the machine they were taken on.

    python -m benchmarks.speed.run [--kernels 100000 1000000 5000000] [--repeat 5] [--results DIR] [--scratch DIR]

Every figure is taken in a fresh process with the file in the page cache; rounds go over all readers, so that what else
the machine does falls on all alike, and the least of all rounds counts. Processor time is kept beside wall time: on a
machine with other work it is the steadier of the two. Generated files lie in the scratch folder and are removed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.generate import write
from benchmarks.speed.readers import CALLS, KERNELS, READERS

ROOT = Path(__file__).resolve().parents[2]
ATTRIBUTED = ROOT / "fixtures" / "traces"
OURS, THEIRS, YARDSTICK = "pages, two threads", "connectorx, two partitions", "bare, two threads"
SLOW = ("pandas.read_sql",)
"""Measured once, not every round: it takes most of a minute."""

Figures = dict[str, Any]


def machine() -> Figures:
    """What the figures were taken on; no name of a host or a user."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line.partition(":") for line in info.read_text().splitlines())
        model = next((value.strip() for key, _, value in lines if "model name" in key), "")
    return {
        "processor": model or platform.processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "load_before": [round(load, 1) for load in os.getloadavg()],
    }


def measured(module: str, *arguments: str) -> Figures:
    """One line of JSON from a fresh process."""
    command = [sys.executable, "-m", f"benchmarks.speed.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def least(rounds: Sequence[Figures]) -> Figures:
    """Each figure's least over the rounds."""
    return {key: min(one[key] for one in rounds) for key in rounds[0]}


def readers(path: Path, repeat: int) -> dict[str, dict[str, Figures]]:
    """Table → reader → figures."""
    rounds: dict[tuple[str, str], list[Figures]] = {}
    measured("readers", "file copied", str(path), KERNELS)  # into the page cache
    for number in range(repeat):
        for table in (KERNELS, CALLS):
            for name in READERS:
                if number == 0 or name not in SLOW:
                    rounds.setdefault((table, name), []).append(measured("readers", name, str(path), table))
    return {t: {n: least(rounds[t, n]) for n in READERS} for t in (KERNELS, CALLS)}


def generated(kernels: int, repeat: int, scratch: Path, whole: bool) -> Figures:
    """Readers, and whole runs where asked for, over one generated export."""
    path = scratch / f"{kernels}.sqlite"
    write(path, kernels)
    try:
        found: Figures = {"bytes": path.stat().st_size, "readers": readers(path, repeat)}
        report = scratch / "report.md"
        log = ("--log", str(path.with_suffix(".log")))
        for name, extra in (("attribute", ()), ("attribute with its log", log)) if whole else ():
            rounds = [measured("whole", str(path), *extra, "--report", str(report)) for _ in range(min(repeat, 3))]
            found[name] = least(rounds)
        if whole:
            # Not changed within the last seconds, or its digest is not kept.
            os.utime(path, (time.time() - 60,) * 2)
            time.sleep(4)
            cache = scratch / "cache"
            rounds = [measured("whole", str(path), "--cache", str(cache)) for _ in range(3)]
            found["attribute from the cache"] = least(rounds[1:])
            shutil.rmtree(cache)
        return found
    finally:
        for made in (path, path.with_suffix(".log"), scratch / "report.md"):
            made.unlink(missing_ok=True)


def fixtures(repeat: int, scratch: Path) -> dict[str, Figures]:
    """Whole runs over the committed traces."""
    found = {}
    for packed in sorted(ATTRIBUTED.rglob("trace.sqlite.xz")):
        path, log = scratch / "trace.sqlite", packed.with_name("app.log")
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        extra = ("--log", str(log)) if log.exists() else ()
        name = str(packed.parent.relative_to(ATTRIBUTED))
        try:
            found[name] = least([measured("whole", str(path), *extra) for _ in range(repeat)])
        except SystemExit as refused:
            found[name] = {"refused": str(refused).splitlines()[-1]}
        path.unlink()
    return found


def sums(tables: dict[str, dict[str, Figures]], name: str, figure: str = "wall_s") -> float:
    """A reader's figure over both tables."""
    return float(sum(of_table[name][figure] for of_table in tables.values()))


def ratios(found: Figures) -> Figures:
    """What the figures are held to, both in wall and in processor time."""
    tables = found["readers"]
    out: Figures = {}
    for figure in ("wall_s", "processor_s"):
        ours, bare = sums(tables, OURS, figure), sums(tables, YARDSTICK, figure)
        out[figure] = {
            "connectorx / pages": round(sums(tables, THEIRS, figure) / ours, 2),
            "pages / bare": round(ours / bare, 2),
            "ADBC / pages": round(sums(tables, "ADBC", figure) / ours, 2),
            "structure check / pages": round(sums(tables, "structure check alone", figure) / ours, 2),
        }
        if "attribute" in found:
            slow = sums(tables, "pandas.read_sql", figure)
            out[figure]["pandas.read_sql / attribute"] = round(slow / found["attribute"][figure], 2)
    return out


def show(kernels: int, found: Figures) -> None:
    """Print one export's figures."""
    print(f"\n{kernels:,} kernels, {found['bytes'] / 2**20:,.0f} MiB: needed columns of the kernel and the API table")
    print(f"{'reader':<28}{'wall s':>9}{'processor s':>13}{'peak MiB':>10}")
    for name in READERS:
        tables = found["readers"]
        peak = max(tables[t][name]["peak_mib"] for t in tables)
        print(f"{name:<28}{sums(tables, name):>9.2f}{sums(tables, name, 'processor_s'):>13.2f}{peak:>10,}")
    for name in ("attribute", "attribute with its log", "attribute from the cache"):
        if name not in found:
            continue
        one = found[name]
        print(
            f"{name}: {one['wall_s']:.2f} s wall, {one['processor_s']:.2f} s processor, {one['peak_mib']:,} MiB, "
            f"{one['events']:,} events; import {one['import_s']:.2f} s"
            + (f", report {one['report_s']:.2f} s" if "report_s" in one else "")
        )
    for figure, values in found["ratios"].items():
        print(f"ratios by {figure}: " + ", ".join(f"{k} {v}" for k, v in values.items()))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--results", type=Path, help="folder for the figures as JSON")
    parser.add_argument("--scratch", type=Path, help="folder for generated files (1.2 GB for 5,000,000 kernels)")
    parser.add_argument("--readers-only", action="store_true", help="no whole runs")
    options = parser.parse_args()
    figures: Figures = {"machine": machine(), "repeat": options.repeat, "generated": {}}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.scratch) as folder:
        for kernels in options.kernels:
            found = generated(kernels, options.repeat, Path(folder), not options.readers_only)
            found["ratios"] = ratios(found)
            figures["generated"][str(kernels)] = found
            show(kernels, found)
        figures["fixtures"] = {} if options.readers_only else fixtures(options.repeat, Path(folder))
    for name, one in figures["fixtures"].items():
        print(f"{name}: " + (one.get("refused") or f"{one['wall_s']:.2f} s wall, {one['peak_mib']} MiB"))
    figures["machine"]["load_after"] = [round(load, 1) for load in os.getloadavg()]
    if options.results is not None:
        options.results.mkdir(parents=True, exist_ok=True)
        name = time.strftime("%Y-%m-%d-%H%M%S", time.gmtime())
        (options.results / f"speed-{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
