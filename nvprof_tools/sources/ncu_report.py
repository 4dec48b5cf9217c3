"""Counter reports (``.ncu-rep``), through the vendor's own reader: the optional package ``ncu-report``."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import GIB, MIB, Limits
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import ncu_blocks, ncu_report_worker
from nvprof_tools.sources.ncu_csv import nvtx_name
from nvprof_tools.sources.ncu_rows import Chunk, Launch, Rows, fill_shapes
from nvprof_tools.sources.ncu_units import base_unit

PACKAGE: Final = "ncu_report"
INSTALL: Final = (
    "install it with pip install 'nvprof-tools[ncu]', or print the report as text: "
    "ncu --import REPORT.ncu-rep --csv --page raw"
)
BYTES_A_WORKER: Final = 36 * MIB
"""A worker grows to three times the bytes of its part, to twelve where the report cannot be cut down."""
MEMORY_A_BYTE: Final = 40
WORKERS: Final = 2
_ROOM: Final = threading.BoundedSemaphore(WORKERS)
"""So many workers run at once, whoever asks: their memory adds up."""
SMALL: Final = 4 * MIB
"""A report below this is read whole by one worker."""
SECONDS_A_MIB: Final = 1.0
"""Processor time a report may take, over ``check_seconds``; an honest one takes a tenth."""
LONGEST_TEXT: Final = 4096
_KERNEL = 0


def sniff(path: Path) -> bool:
    """Whether the file begins as a report does."""
    try:
        with path.open("rb") as file:
            return file.read(len(ncu_blocks.MAGIC)) == ncu_blocks.MAGIC
    except OSError:
        return False


def available() -> bool:
    """Whether the reader package is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def read(path: Path, limits: Limits) -> tuple[Rows, list[QualityItem]]:
    """Launches and scalars of a report. ``process`` is set where the whole report is of one process.

    :raises SourceError: ``ncu-report-missing`` (the package), ``ncu-report-damaged``, ``limit-time``.
    """
    frame = ncu_blocks.read_frame(path)
    rows = Rows()
    not_kernels = actions = 0
    for document in _run(path, limits, None):
        actions = int(document["actions"])
        rows.not_numbers += int(document["not_numbers"])
        rows.no_data += int(document["no_data"])
        bases = [base_unit(unit) for unit in document["units"]]
        metric = np.array([rows.metrics.code(name) for name in document["metrics"]], np.int32)
        unit = np.array([rows.units.code(base) for base, _ in bases], np.int32)
        factor = np.array([scale for _, scale in bases], np.float64)
        for launch in document["launches"]:
            not_kernels += launch["kind"] != _KERNEL
            _add(rows, launch, frame.process, metric, unit, factor)
    fill_shapes(rows)
    _fill_ids(rows)
    if not actions:
        raise SourceError(
            "ncu-report-damaged",
            "the counter report holds no launch that can be read",
            "profile again, or check that the copy of the report is whole",
        )
    return rows, _quality(frame, actions, not_kernels)


def instances(path: Path, metrics: Sequence[str], limits: Limits) -> Iterator[Mapping[str, Any]]:
    """Values by instance: mappings with ``index``, ``metric``, ``unit``, ``values``, ``ids`` and ``labels`` (or null).

    :raises SourceError: as :func:`read`.
    """
    for document in _run(path, limits, list(metrics)):
        yield from document["instances"]


def _add(rows: Rows, launch: Mapping[str, Any], process: int | None, metric: Any, unit: Any, factor: Any) -> None:
    number = len(rows.launches)
    rows.launches.append(
        Launch(
            launch_index=int(launch["index"]),
            process=process,
            kernel=launch["function"] or None,
            signature=launch["signature"] or None,
            mangled=launch["mangled"] or None,
            nvtx=_nvtx(launch["nvtx"]),
        )
    )
    codes = np.array(launch["metrics"], np.int64)
    text = np.full(len(codes), -1, np.int32)
    for at, word in launch["texts"].items():
        text[int(at)] = rows.texts.code(word)
    count = np.zeros(len(codes), np.int32)
    for at, instances_there in launch["instances"].items():
        count[int(at)] = instances_there
    with np.errstate(over="ignore"):
        value = np.array(launch["values"], np.float64) * factor[codes]
    keep = np.isfinite(value) | (text >= 0)
    rows.not_numbers += int(np.count_nonzero(~keep))
    rows.chunks.append(
        Chunk(
            np.full(int(np.count_nonzero(keep)), number, np.int32),
            metric[codes][keep],
            unit[codes][keep],
            np.where(text >= 0, np.nan, value)[keep],
            text[keep],
            count[keep],
        )
    )


def _nvtx(domains: Sequence[Sequence[Any]] | None) -> str | None:
    if domains is None:
        return None
    stacks = [(domain, push_pop) for domain, push_pop, _ in domains]
    stacks += [(domain, start_end) for domain, _, start_end in domains]
    return "/".join(nvtx_name(domain, name) for domain, names in stacks for name in names)


_IDS: Final = {"launch__device_id": "device", "launch__context_id": "context", "launch__stream_id": "stream"}


def _fill_ids(rows: Rows) -> None:
    """Device, context and stream are metrics in a report, where a page has columns."""
    wanted = {code: _IDS[word] for word, code in rows.metrics.codes.items() if word in _IDS}
    for chunk in rows.chunks:
        for i in np.flatnonzero(np.isin(chunk.metric, list(wanted)) & np.isfinite(chunk.value)).tolist():
            value = int(chunk.value[i])
            if 0 <= value < 2**31:
                setattr(rows.launches[int(chunk.launch[i])], wanted[int(chunk.metric[i])], value)


def _run(path: Path, limits: Limits, metrics: list[str] | None) -> list[dict[str, Any]]:
    """The workers' answers, in order of the launches."""
    if not available():
        raise SourceError("ncu-report-missing", "reading a .ncu-rep needs the package ncu-report", INSTALL)
    size = path.stat().st_size
    processors = max(len(os.sched_getaffinity(0)), 1)
    parts = max(-(-size // BYTES_A_WORKER), min(processors, WORKERS) if size > SMALL else 1)
    seconds = math.ceil(limits.check_seconds + size / MIB * SECONDS_A_MIB)
    with _slim(path, size) as slim:
        requests = [
            {
                "path": str(path.resolve()),
                "slim": None if slim is None or metrics is not None else f"/proc/self/fd/{slim}",
                "part": part,
                "parts": parts,
                "memory": GIB + size * MEMORY_A_BYTE,
                "seconds": seconds,
                "instances": metrics,
                "longest": LONGEST_TEXT,
            }
            for part in range(parts)
        ]
        with ThreadPoolExecutor(max_workers=min(processors, WORKERS, parts)) as pool:
            return list(pool.map(lambda request: _ask(request, limits.read_seconds, slim), requests))


@contextmanager
def _slim(path: Path, size: int) -> Iterator[int | None]:
    """Descriptor of a nameless smaller copy of a large report; None where there is none."""
    if size < SMALL:
        yield None
        return
    with tempfile.TemporaryFile(buffering=0) as file:
        try:
            made = ncu_blocks.write_slim(path, file.fileno())
        except OSError:  # no room: the report itself will do
            made = False
        yield file.fileno() if made else None


def _ask(request: Mapping[str, Any], seconds: float, slim: int | None) -> dict[str, Any]:
    command = [sys.executable, "-P", "-X", "utf8", str(Path(ncu_report_worker.__file__)), json.dumps(request)]
    with (
        _ROOM,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=() if slim is None else (slim,),
        ) as worker,
    ):
        late = threading.Timer(seconds, worker.kill)
        late.start()
        try:
            answer, _ = worker.communicate()
        finally:
            expired = late.finished.is_set()
            late.cancel()
    if expired or worker.returncode == -signal.SIGXCPU:
        raise SourceError(
            "limit-time",
            f"reading the counter report took more than {seconds if expired else request['seconds']:g} s",
            "profile fewer launches, or print the report as CSV",
        )
    if worker.returncode == ncu_report_worker.NO_PACKAGE:
        raise SourceError("ncu-report-missing", "the package ncu-report cannot be loaded", INSTALL)
    if worker.returncode:
        raise SourceError(
            "ncu-report-damaged",
            "the counter report cannot be read",
            "check that the copy of the report is whole, or print it as CSV with the ncu that wrote it",
        )
    document: dict[str, Any] = json.loads(answer)
    return document


def _quality(frame: ncu_blocks.Frame, actions: int, not_kernels: int) -> list[QualityItem]:
    out: list[QualityItem] = []
    if not frame.whole or frame.results > actions:
        lost = max(frame.results - actions, 0)
        out.append(
            QualityItem(
                "ncu-report-truncated",
                Severity.DATA_LOSS,
                max(lost, 1),
                f"the counter report ends early or is damaged: {actions} launches were read, others may be lost",
                "copy the report again, or profile again",
            )
        )
    if not_kernels:
        out.append(
            QualityItem(
                "ncu-not-kernels",
                Severity.NOTICE,
                not_kernels,
                f"{not_kernels} profiled workloads are graphs or ranges, not kernels, and match no launch",
                "profile with --replay-mode kernel and --graph-profiling node",
            )
        )
    return out
