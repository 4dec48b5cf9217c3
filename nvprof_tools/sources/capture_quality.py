"""What a capture lost, by its own account and by its blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources.capture_facts import Session
from nvprof_tools.sources.capture_layout import text, whole
from nvprof_tools.sources.capture_process import Process

MOST_SAID = 100
"""Different notices of one process; a collector has not that many words."""
STEPPED_NS = 1_000_000
"""A wall clock that moves further than this against the capture's was set meanwhile."""
_LOSS, _NOTICE, _INFO = Severity.DATA_LOSS, Severity.NOTICE, Severity.INFO
NO_CUDA = ("subscriber-present", "cupti-missing", "cupti-refused")
_NOTICES: Mapping[str, tuple[str, Severity, str, str]] = {
    # the file's slug: ours, severity, words, hint
    "subscriber-present": (
        "collector-not-alone", _LOSS, "another CUPTI client was in the program: no CUDA activity was recorded",
        "run without the other profiler (nsys, ncu, a framework's own)"),
    "cupti-missing": (
        "collector-without-cupti", _LOSS, "no libcupti was found: no CUDA activity was recorded",
        "install nvidia-cuda-cupti or the CUDA toolkit; see nvprof-tools doctor"),
    "cupti-refused": ("collector-refused", _LOSS, "CUPTI refused to record something", "see nvprof-tools doctor"),
    "buffer-declined": (
        "records-dropped", _LOSS, "the collector's buffers were full and CUPTI dropped records",
        "give it more room: NVPROF_COLLECTOR_POOL"),
    "records-dropped": ("records-dropped", _LOSS, "CUPTI dropped records", "give it more room: NVPROF_COLLECTOR_POOL"),
    "record-unknown": ("collector-note", _INFO, "records of a kind that was not asked for", ""),
    "nvtx-dropped": (
        "records-dropped", _LOSS, "NVTX calls were dropped: their thread made them faster than they could be written",
        "mark fewer ranges"),
    "nvtx-unmatched": ("collector-note", _INFO, "NVTX ranges ended that had not begun in the capture", ""),
    "driver-rows-late": (
        "collector-note", _NOTICE, "calls of the driver's API may be missing", "set NVPROF_COLLECTOR_DRIVER=all"),
    "pm-refused": ("gpu-metrics-refused", _NOTICE, "GPU metrics were not sampled", "see nvprof-tools doctor"),
    "pm-overflow": (
        "gpu-metrics-incomplete", _LOSS, "the GPU's buffer of samples overflowed: samples are missing",
        "sample less often: --metrics-hz"),
    "pm-stopped": ("gpu-metrics-incomplete", _LOSS, "GPU metrics were not sampled to the end", ""),
    "memory-short": (
        "records-dropped", _LOSS, "the program had no memory left for the collector", "give it more memory"),
    "flush-timeout": (
        "records-dropped", _LOSS, "CUPTI did not hand over its last records in time", "end the program regularly"),
    "write-failed": (
        "capture-disk-full", _LOSS, "the capture's file could not grow: what came later is missing",
        "free some space, or raise the limit of file sizes"),
}  # fmt: skip
"""What a collector says of itself."""


def items(processes: Sequence[Process], span: Session, unusable: int) -> Iterator[QualityItem]:
    """Everything a reader must know before trusting a figure.

    :param unusable: files of the folder that could not be read at all.
    """
    if unusable:
        yield QualityItem(
            "capture-file-unusable",
            _LOSS,
            unusable,
            f"{unusable:,} files of the capture cannot be read and were left out: what their processes did is not here",
            "",
        )
    latest = _latest(processes)
    for process in processes:
        # The same process wrote a later file: it replaced itself by another program.
        replaced = len(process.clocks) > 0 and latest[process.pid] > int(process.clocks.monotonic.max())
        yield from _blocks(process, replaced)
        yield from _said(process)
    if span.stepped > STEPPED_NS:
        yield QualityItem(
            "wall-clock-set",
            _NOTICE,
            1,
            f"the machine's wall clock was moved by {span.stepped / 1e6:,.1f} ms during the capture",
            "",
        )
    if span.end is None:
        yield QualityItem(
            "capture-clock-missing", _NOTICE, 1, "the capture holds no clock snapshot: it begins at its first event", ""
        )


def _latest(processes: Sequence[Process]) -> dict[int, int]:
    """Process → when its latest file begins."""
    found: dict[int, int] = {}
    for process in processes:
        if len(process.clocks):
            begins = int(process.clocks.monotonic.min())
            found[process.pid] = max(found.get(process.pid, begins), begins)
    return found


def _blocks(process: Process, replaced: bool) -> Iterator[QualityItem]:
    contents, who = process.contents, f"process {process.pid}"
    if contents.tail:
        yield QualityItem(
            "capture-truncated",
            _LOSS,
            contents.tail,
            f"the file of {who} ends within a block: its last {contents.tail:,} of {contents.size:,} bytes are lost",
            "let the program end by itself; a killed one loses about half a second",
        )
    if process.end is None and replaced:
        message = f"{who} replaced itself by another program (exec): of what it did last, half a second may be missing"
        yield QualityItem("capture-unfinished", _INFO, 1, message)
    elif process.end is None and not any(said.get("slug") == "write-failed" for said in process.notices):
        yield QualityItem(
            "capture-unfinished",
            _LOSS,
            1,
            f"the file of {who} has no end: the program was killed, ended by _exit or exec, or is still running",
            "let the program end by itself; a killed one loses about half a second",
        )
    if contents.damaged:
        yield QualityItem(
            "capture-blocks-damaged",
            _LOSS,
            contents.damaged,
            f"{contents.damaged:,} blocks of {who} have a wrong sum and were set aside, with "
            f"{contents.damaged_rows:,} rows",
            "check the disk, and copy the file again",
        )
    if contents.missing:
        yield QualityItem(
            "capture-blocks-missing",
            _LOSS,
            contents.missing,
            f"{contents.missing:,} blocks of {who} are not in its file",
            "",
        )
    if process.malformed:
        yield QualityItem(
            "capture-blocks-malformed",
            _LOSS,
            process.malformed,
            f"{process.malformed:,} blocks of {who} contradict themselves and were set aside in whole or part",
            "",
        )


def _counted(notices: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str | None], int]:
    """(slug, message) → how much in all: a loss that lasts is told every second."""
    found: dict[tuple[str, str | None], int] = {}
    for said in notices:
        key = (text(said, "slug", 80) or "", text(said, "message"))
        if key in found or len(found) < MOST_SAID:
            found[key] = found.get(key, 0) + max(whole(said, "count") or 1, 1)
    return found


def _said(process: Process) -> Iterator[QualityItem]:
    heard = set()
    for (name, told), count in _counted(process.notices).items():
        slug, severity, words, hint = _NOTICES.get(name, ("collector-note", _NOTICE, "the collector says", ""))
        heard.add(slug)
        counted = f" ({count:,})" if count > 1 else ""
        yield QualityItem(slug, severity, count, words + counted + (f": {told}" if told else ""), hint)
    end = process.end or {}
    for key, who in (
        ("dropped_by_cupti", "CUPTI"),
        ("dropped_by_us", "the collector"),
        ("nvtx_dropped", "NVTX markers"),
    ):
        count = whole(end, key) or 0
        if count and "records-dropped" not in heard:
            message = f"{who} dropped {count:,} records of process {process.pid}"
            yield QualityItem("records-dropped", _LOSS, count, message, "give it more room: NVPROF_COLLECTOR_POOL")
    pm = process.info.get("pm")
    if isinstance(pm, dict) and pm.get("state") == "on" and pm.get("gpu_clock") == "estimated":
        message = "the GPU's clock was estimated: metric samples lie late by some tens of µs to 1 ms"
        yield QualityItem("collector-note", _INFO, 1, message)
    if process.info.get("cupti_clock") == "converted":
        yield QualityItem(
            "collector-note",
            _INFO,
            1,
            "this CUPTI has a clock of its own: device times were moved by clock snapshots",
            "",
        )
