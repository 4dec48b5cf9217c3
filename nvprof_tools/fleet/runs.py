"""Which runs there are: traces under a folder, of a pattern or on a list, each with its name, its node and its log.

A run's name is its trace's path below what all traces have in common, without the suffix; a trace called ``trace`` or
``report`` is named after its folder. The first part of a name of several parts is the run's node.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nvprof_tools.errors import UsageError

SUFFIXES = (".sqlite", ".nsys-rep", ".db")
"""What a folder is searched for."""
MANIFEST = "manifest.json"
"""What a directory written by ``import`` holds."""
NAMELESS = frozenset({"trace", "report", "profile", "export"})
MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Run:
    """One trace to attribute.

    :param name: unique; parts are joined by ``/`` and are safe as names of folders.
    :param node: the machine or rank it came from, as its name tells; empty where it does not.
    """

    name: str
    node: str
    trace: Path
    log: Path | None


def find(given: str) -> list[Run]:
    """The runs of a folder, of a pattern, of a list (a text file: a trace a line, its log after a tab), or one trace.

    :raises UsageError: ``no-runs``.
    """
    pairs = _given(given)
    if not pairs:
        raise UsageError("no-runs", f"{given!r} holds no trace", "give a folder, a quoted pattern or a list of traces")
    if len(pairs) > MOST_RUNS:
        raise UsageError("no-runs", f"{given!r} holds more than {MOST_RUNS:,} traces", "split the batch")
    pairs.sort(key=lambda pair: str(pair[0]))
    names = _names([trace for trace, _ in pairs])
    return [
        Run(name, name.partition("/")[0] if "/" in name else "", trace, log if log is not None else beside(trace))
        for name, (trace, log) in zip(names, pairs, strict=True)
    ]


def _given(given: str) -> list[tuple[Path, Path | None]]:
    path = Path(given)
    if path.is_dir() and not (path / MANIFEST).is_file():
        return [(trace, None) for trace in _below(path)]
    if path.is_dir() or (path.suffix in SUFFIXES and path.is_file()):
        return [(path, None)]
    if path.is_file():
        listed = list(_listed(path))
        # Of a log, each line would be a trace that is missing.
        likely = any(trace.suffix in SUFFIXES or os.path.exists(trace) for trace, _ in listed)  # noqa: PTH110 - never raises
        return listed if likely else []
    found = [Path(name) for name in glob.glob(given, recursive=True)]  # noqa: PTH207 - patterns may be absolute
    return [(trace, None) for trace in found if trace.is_file() or (trace / MANIFEST).is_file()]


def _below(folder: Path) -> Iterable[Path]:
    """Traces below a folder; of a report and its export, the export."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        if MANIFEST in files and here != folder:
            folders.clear()
            yield here
            continue
        folders.sort()
        exported = {Path(name).stem for name in files if name.endswith((".sqlite", ".db"))}
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not (name.endswith(".nsys-rep") and Path(name).stem in exported):
                yield here / name


def _listed(path: Path) -> Iterable[tuple[Path, Path | None]]:
    for line in path.read_text("utf-8", "surrogateescape").splitlines():
        trace, _, log = line.partition("\t")
        if trace.strip() and not trace.startswith("#"):
            yield path.parent / trace.strip(), path.parent / log.strip() if log.strip() else None


def beside(trace: Path) -> Path | None:
    """The log that lies beside a trace: of the same name, else the only one in its folder."""
    own = trace.with_suffix(".log")
    if own.is_file():
        return own
    logs = sorted(trace.parent.glob("*.log")) if trace.parent.is_dir() else []
    traces = sum(1 for name in os.listdir(trace.parent) if name.endswith(SUFFIXES)) if logs else 0  # noqa: PTH208
    return logs[0] if len(logs) == 1 and traces <= 1 else None


def _names(traces: Sequence[Path]) -> list[str]:
    """One name a trace, unique; repeats are numbered."""
    absolute = [trace.absolute() for trace in traces]
    below = len(Path(os.path.commonpath([trace.parent for trace in absolute])).parts)
    parts = [[*trace.parts[below:-1], trace.stem if trace.suffix in SUFFIXES else trace.name] for trace in absolute]
    plain = [own[:-1] if len(own) > 1 and own[-1] in NAMELESS else own for own in parts]
    names = ["/".join(re.sub(r"[^\w.=+-]|^\.+", "_", part) for part in own) for own in plain]
    taken: set[str] = set()
    out = []
    for name in names:
        own = next(n for i in itertools.count(1) if (n := name if i == 1 else f"{name}.{i}") not in taken)
        taken.add(own)
        out.append(own)
    return out
