"""Records of a page that Nsight Compute printed as CSV, out of whatever else stands in the same file.

Such a file is often a terminal's: the program's own output and ``==PROF==`` lines stand before, between and after the
rows, several runs may follow one another, a line may be torn, and a shell may have written UTF-16. Rows are therefore
taken one record at a time, so that one broken quote costs one row and not the rest of the file.
"""

from __future__ import annotations

import csv
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits

KERNEL: Final = "Kernel Name"
METRIC: Final = "Metric Name"
INVOCATIONS: Final = "Invocations"
_HEADER_NAMES: Final = frozenset((KERNEL, METRIC))
_SNIFF_LINES: Final = 200_000
_SNIFF_BYTES: Final = 64 * 1024 * 1024
_COLUMNS_A_LIMIT: Final = 64
"""A raw page has a column a metric, some thousands: this many times the cap on a database table's columns."""
_OPEN_LINES: Final = 10_000
_ROW_START = re.compile(r'^\s*"?[0-9][0-9.,]*"?\s*[,;\t]')
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass
class Losses:
    """What was met beside readable rows."""

    broken_rows: int = 0
    error_lines: int = 0
    replaced: int = 0


@dataclass
class Record:
    """One record; ``header``: it is a header line, and the rows after it follow it."""

    cells: list[str]
    header: bool = False


@dataclass
class Text:
    """An open page. ``columns`` caps the cells of a record."""

    file: IO[str]
    limits: Limits
    losses: Losses = field(default_factory=Losses)
    delimiter: str = ","

    @property
    def columns(self) -> int:
        """How many cells a record may have."""
        return self.limits.columns_per_table * _COLUMNS_A_LIMIT

    def lines(self) -> Iterator[str]:
        """Lines with their ends.

        :raises SourceError: ``limit-string`` for an endless line, ``limit-time`` for a file that takes too long.
        """
        cap = self.limits.string_bytes
        until = time.monotonic() + self.limits.read_seconds
        while line := self.file.readline(cap + 1):
            if len(line) > cap:
                raise SourceError(
                    "limit-string", f"a line of the counter page is longer than {cap} bytes", "raise string_bytes"
                )
            if time.monotonic() > until:
                raise SourceError(
                    "limit-time",
                    f"reading the counter page took more than {self.limits.read_seconds:g} s",
                    "export fewer launches or metrics",
                )
            yield line

    def records(self) -> Iterator[Record]:
        """Headers and rows in file order; nothing before the first header."""
        begun = False
        pending = ""
        pending_lines = 0
        for line in self.lines():
            if "\ufffd" in line:
                self.losses.replaced += 1
            if pending and _ROW_START.match(line) and line.lstrip().startswith('"'):
                # A row begins inside an open quote: the quote was torn, and that costs its own row only.
                self.losses.broken_rows += 1
                pending, pending_lines = "", 0
            if not pending:
                if line.startswith("==ERROR=="):
                    self.losses.error_lines += 1
                if is_header(line):
                    self.delimiter = header_delimiter(line)
                    begun = True
                    cells = self._split(line)
                    if cells:
                        yield Record(cells, header=True)
                    continue
                if not begun or not _may_start_row(line, self.delimiter):
                    continue
            pending += line
            pending_lines += 1
            if pending.count('"') % 2 == 0:
                cells = self._split(pending)
                if cells:
                    yield Record(cells)
                else:
                    self.losses.broken_rows += 1
                pending, pending_lines = "", 0
            elif pending_lines > _OPEN_LINES or len(pending) > self.limits.string_bytes:
                self.losses.broken_rows += 1
                pending, pending_lines = "", 0
        if pending:
            self.losses.broken_rows += 1

    def _split(self, record: str) -> list[str]:
        """Cells of a record; none where it is torn."""
        if record.count(self.delimiter) > 16 * self.columns:
            raise SourceError(
                "limit-columns",
                f"a row of the counter page has more than {self.columns} columns",
                "export fewer metrics",
            )
        with _field_limit(len(record) + 1):
            return split(record.replace("\0", ""), self.delimiter)


@contextmanager
def _field_limit(size: int) -> Iterator[None]:
    """Let the csv module take a cell of ``size``: instance lists are long, and the line is capped already."""
    before = csv.field_size_limit()
    if size <= before:
        yield
        return
    csv.field_size_limit(size)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def split(record: str, delimiter: str) -> list[str]:
    """Cells of one record; none where it is not one."""
    try:
        rows = list(csv.reader([record], delimiter=delimiter))
    except csv.Error:
        return []
    return rows[0] if len(rows) == 1 else []


def is_header(line: str) -> bool:
    """Whether a line is the header of a page: it names the kernel's column and is quoted or comma-separated text."""
    if KERNEL not in line:
        return False
    delimiter = header_delimiter(line)
    if len(line) < 100_000:
        cells = split(line.strip(), delimiter)
    else:
        cells = [cell.strip().strip('"') for cell in line[:4096].split(delimiter)]
    return KERNEL in cells and len(cells) > 1


def header_delimiter(line: str) -> str:
    """The delimiter of a header line: a spreadsheet of some locales saves semicolons or tabs."""
    head = line[: max(line.find(KERNEL), 0) + len(KERNEL) + 2]
    found = max(",;\t", key=lambda d: (head.count(d), -",;\t".index(d)))
    return found if head.count(found) else ","


def _may_start_row(line: str, delimiter: str) -> bool:
    """Whether a line may be a row's: quoted, or at least as many delimiters as a row needs."""
    start = line.lstrip()
    return start.startswith(('"', delimiter)) or (start[:1].isdigit() and start.count(delimiter) >= 2)


@contextmanager
def opened(path: Path, limits: Limits) -> Iterator[Text]:
    """Open a page as text.

    :raises SourceError: ``file-missing``, ``not-a-file``, ``limit-file``.
    """
    check_file(path, limits)
    with path.open("rb") as probe:
        head = probe.read(4)
    encoding = next((name for bom, name in _BOMS if head.startswith(bom)), "utf-8")
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        yield Text(file, limits)


def check_file(path: Path, limits: Limits) -> int:
    """Size of a regular file.

    :raises SourceError: it is missing, not a regular file, or larger than the cap.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise SourceError(
            "file-missing", f"the counter report cannot be opened: {error.strerror}", "check its name"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise SourceError("not-a-file", "the counter report is not a regular file", "give a file, or a directory")
    if status.st_size > limits.file_bytes:
        raise SourceError(
            "limit-file", f"the counter report is larger than {limits.file_bytes} bytes", "profile fewer launches"
        )
    return status.st_size


def sniff(path: Path, limits: Limits) -> bool:
    """Whether a page's header stands within the first lines; the program's output may come before it."""
    taken = 0
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return False
        with opened(path, limits) as text:
            for count, line in enumerate(text.lines()):
                taken += len(line)
                if is_header(line):
                    return True
                if count >= _SNIFF_LINES or taken > _SNIFF_BYTES:
                    return False
    except (SourceError, UnicodeError, OSError):
        return False
    return False
