"""One file of a capture: one process, its words, its facts, and rows of any kind as structured arrays."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.arrays import Ints
from nvprof_tools.sources import capture_blocks as blocks
from nvprof_tools.sources import capture_columns as columns
from nvprof_tools.sources.capture_blocks import AGAIN, Block, Contents
from nvprof_tools.sources.capture_clock import Snapshots, usable
from nvprof_tools.sources.capture_layout import Layout, layouts, parsed, text, whole
from nvprof_tools.sources.demangle import readable

Rows = np.ndarray
WORD_BITS = 40
"""Ids of words are unique in a capture: the file's number, from 1, stands above these bits."""
SIGNATURE, BASE = 1 << 36, 2 << 36
"""Added to a mangled word's id: its readable form, and the function's own name."""
MOST_SMALL_ROWS = 1_000_000
"""Of clocks, devices, contexts and thread names no more are looked at."""
MOST_NOTES = 100_000
"""A notice a second for a day."""
MOST_TEXT = (1 << 31) - 1
_WORD = struct.Struct("<II")
_CLOCK = "monotonic"


@dataclass
class Process:
    """One file, opened only while something is read of it.

    ``word_ids`` and ``word_bytes`` are its texts; ``malformed`` blocks contradict the schema or themselves.
    """

    path: Path
    number: int
    contents: Contents
    layouts: Mapping[int, Layout] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    notices: list[Mapping[str, Any]] = field(default_factory=list)
    end: Mapping[str, Any] | None = None
    malformed: int = 0
    word_ids: list[int] = field(default_factory=list)
    word_bytes: list[bytes] = field(default_factory=list)
    readable: dict[int, str] = field(default_factory=dict)
    clocks: Snapshots = field(default_factory=lambda: usable(np.empty(0, np.int64), np.empty(0, np.int64)))
    sound: dict[int, list[Block]] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        """The process; 0 where the file does not say."""
        return (whole(self.info, "pid") or 0) & 0xFF_FFFF

    @property
    def global_pid(self) -> int:
        """As nsys packs it."""
        return 1 << 56 | self.pid << 24

    @property
    def word_base(self) -> int:
        """What is added to ids of words."""
        return (self.number + 1) << WORD_BITS

    @cached_property
    def _words(self) -> dict[int, bytes]:
        # Of a repeated id the first text counts, as in the table of strings.
        return dict(zip(reversed(self.word_ids), reversed(self.word_bytes), strict=True))

    def word(self, number: int) -> str | None:
        """One text; null where there is none."""
        found = self._words.get(number)
        return None if found is None else found.decode("utf-8", "replace")

    def count(self, kind: int) -> int:
        """Rows of a kind in whole blocks."""
        return sum(block.rows for block in self.sound.get(kind, ()))

    def has(self, kind: int, name: str) -> bool:
        """Whether rows of a kind have a field."""
        layout = self.layouts.get(kind)
        return layout is not None and name in (layout.dtype.names or ())

    def rows(self, kind: int, most: int | None = None) -> Iterator[Rows]:
        """Rows of a kind, block by block.

        :param most: leave out blocks once so many rows were given.
        :raises SourceError: ``file-changed``.
        """
        given = 0
        if not self.sound.get(kind):
            return
        with opened(self.path) as descriptor:
            for block in self.sound[kind]:
                if most is not None and given >= most:
                    return
                given += block.rows
                yield np.frombuffer(blocks.exactly(descriptor, block.size, block.at), self.layouts[kind].dtype)

    def small(self, kind: int, *names: str) -> list[Ints]:
        """Fields of a small table as int64, all bits set where the file lacks one; rows in file order."""
        parts: list[list[np.ndarray]] = [[] for _ in names]
        for rows in self.rows(kind, MOST_SMALL_ROWS):
            for part, name in zip(parts, names, strict=True):
                part.append(
                    rows[name].astype(np.int64)
                    if name in (rows.dtype.names or ())
                    else np.full(len(rows), -1, np.int64)
                )
        return [np.concatenate([np.empty(0, np.int64), *part]) for part in parts]


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of the file.

    :raises SourceError: ``file-unreadable``.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SourceError("file-unreadable", "the capture cannot be opened", "check its permissions") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(path: Path, number: int, limits: Limits, most_blocks: int = blocks.MOST_BLOCKS) -> Process:
    """Read all of a file but its events.

    :param most_blocks: that it may have.
    :raises SourceError: it cannot be used.
    """
    with opened(path) as descriptor:
        process = Process(path, number, blocks.scan(descriptor, limits, most_blocks))
        _read(process, descriptor, limits)
    return process


def _read(process: Process, descriptor: int, limits: Limits) -> None:
    schema = next(process.contents.of(blocks.SCHEMA), None)
    if schema is None:
        raise SourceError(
            "capture-damaged", "the capture has no whole block that says how its rows are laid out", AGAIN
        )
    process.layouts = layouts(_payload(descriptor, schema), limits)
    _notes(process, descriptor, limits)
    clock = process.info.get("clock", _CLOCK)
    if clock != _CLOCK:
        raise SourceError(
            "capture-version", f"the capture's clock is unknown: {text(process.info, 'clock') or 'not a name'}", AGAIN
        )
    for block in process.contents.blocks:
        if block.kind >= blocks.FIRST_EVENT:
            layout = process.layouts.get(block.kind)
            if layout is None:
                continue  # a table of a newer collector
            if block.rows * layout.dtype.itemsize != block.size:
                process.malformed += 1
                continue
            process.sound.setdefault(block.kind, []).append(block)
    _words(process, descriptor, limits)
    realtime, monotonic = process.small(columns.CLOCK, "realtime", "monotonic")
    process.clocks = usable(realtime, monotonic)


def _payload(descriptor: int, block: Block) -> bytes:
    return blocks.exactly(descriptor, block.size, block.at)


def _notes(process: Process, descriptor: int, limits: Limits) -> None:
    """The JSON blocks; one that cannot be read counts as malformed."""
    notes = [block for block in process.contents.blocks if block.kind in (blocks.INFO, blocks.NOTICE)]
    for block in [*notes[:MOST_NOTES], *list(process.contents.of(blocks.END))[-1:]]:
        said = parsed(_payload(descriptor, block), limits.json_depth)
        if not isinstance(said, dict):
            process.malformed += 1
        elif block.kind == blocks.INFO:
            process.info.update(said)
        elif block.kind == blocks.NOTICE:
            process.notices.append(said)
        else:
            process.end = said


def _words(process: Process, descriptor: int, limits: Limits) -> None:
    total = 0
    for block in process.contents.of(blocks.STRINGS):
        data, at = _payload(descriptor, block), 0
        for _ in range(block.rows):
            if len(data) - at < _WORD.size:
                process.malformed += 1
                break
            word, size = _WORD.unpack_from(data, at)
            at += _WORD.size
            if size > len(data) - at:
                process.malformed += 1
                break
            process.word_ids.append(word)
            process.word_bytes.append(data[at : at + size])
            at += size
            total += size
        if total > min(limits.string_bytes * 16, MOST_TEXT):
            raise SourceError("limit-string", f"the capture's texts have {total:,} bytes, more than allowed", AGAIN)
        if len(process.word_ids) > limits.distinct_strings:
            raise SourceError(
                "limit-strings", f"the capture has more than the {limits.distinct_strings:,} texts allowed", AGAIN
            )
    used = _kernel_words(process)
    mangled = [(i, word) for i, word in zip(process.word_ids, process.word_bytes, strict=True) if i in used]
    for (word, _), name in zip(mangled, readable([name for _, name in mangled]), strict=True):
        if name is not None:
            process.readable.setdefault(word, name)


def _kernel_words(process: Process) -> set[int]:
    """Ids of the words that name kernels."""
    used: set[int] = set()
    if process.has(columns.KERNEL, "name"):
        for rows in process.rows(columns.KERNEL):
            used.update(np.unique(rows["name"]).tolist())
    return used
