"""Captures of our own collector: one file a process, or a folder of them (docs/capture-format.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.sources import capture_facts, capture_process, capture_quality, digest
from nvprof_tools.sources.base import RawTables
from nvprof_tools.sources.capture_blocks import MAGIC, MOST_BLOCKS, SUFFIX
from nvprof_tools.sources.capture_process import Process
from nvprof_tools.sources.capture_tables import CaptureTables
from nvprof_tools.sources.columnar import begins_with

MOST_FILES = 4096
"""Processes of one capture; a shell script may start many that do nothing of interest."""
KIND = "nvprof-capture"


def files(path: Path) -> list[Path]:
    """The files of a capture: ``path`` itself, or those in it, by name; none where it is no capture."""
    if path.is_dir():
        return [p for p in sorted(path.glob(f"*{SUFFIX}")) if p.is_file() and begins_with(p, MAGIC)]
    return [path] if path.is_file() and begins_with(path, MAGIC) else []


class CaptureFile:
    """One ``.nvcap`` file, or a folder of them."""

    kind = KIND

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        return bool(files(path))

    def read(self, path: Path, limits: Limits) -> RawTables:
        """See :class:`nvprof_tools.sources.base.Source`."""
        found = files(path)
        processes, unusable = _processes(found, limits)
        if path.is_dir():  # whatever has the name of a capture file and is none was one
            unusable += sum(p.is_file() for p in path.glob(f"*{SUFFIX}")) - len(found)
        quality: list[QualityItem] = []
        span = capture_facts.session(processes)
        small = capture_facts.small_tables(processes, span)
        reader = CaptureTables(processes, small, span.origin, span.end, limits, quality)
        names = [p.name for p in found]

        def sha256() -> str:
            return digest.of_directory(path, names) if path.is_dir() else digest.of_file(path)

        raw = RawTables(self.kind, reader, {name: name for name in reader.columns}, sha256, limits)
        quality.extend(capture_quality.items(processes, span, unusable))
        raw.quality = quality
        return raw


def _processes(found: list[Path], limits: Limits) -> tuple[list[Process], int]:
    """Every file that can be used, and how many cannot.

    :raises SourceError: none can, or there is too much.
    """
    if len(found) > MOST_FILES:
        raise SourceError(
            "limit-tables", f"the capture has {len(found):,} files, more than allowed", "give some of the files"
        )
    if sum(p.stat().st_size for p in found) > limits.file_bytes:
        raise SourceError("limit-file", "the capture's files are larger than allowed", "capture a shorter time")
    processes: list[Process] = []
    first: SourceError | None = None
    left = MOST_BLOCKS
    for number, path in enumerate(found):
        try:
            processes.append(capture_process.read(path, number, limits, left))
            left -= len(processes[-1].contents.blocks)
        except SourceError as error:
            if error.slug == "limit-blocks":
                raise
            first = first or error
    if first is not None and not processes:
        raise first
    return processes, len(found) - len(processes)


def facts_of(path: Path, limits: Limits) -> dict[str, Any]:
    """Versions and options that one file states, as plain words.

    :raises SourceError: it cannot be read.
    """
    process = capture_process.read(path, 0, limits)
    names = {"version": "collector", "cupti": "cupti", "driver_api": "driver"}
    return {key: capture_facts.fact(process.info, name) for key, name in names.items()}
