"""Counter pages that ``ncu --csv`` prints: raw (a row a launch, a column a metric) and details (a row a value)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.arrays import Bools, strings, to_numpy
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import ncu_text
from nvprof_tools.sources.ncu_labels import metric_of
from nvprof_tools.sources.ncu_numbers import Marks, parse
from nvprof_tools.sources.ncu_rows import Chunk, Launch, Rows, fill_shapes, named
from nvprof_tools.sources.ncu_units import base_unit

_CELLS_A_CHUNK = 400_000
_PLAIN = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream")
_SHAPE = ("Block Size", "Grid Size", "Device", "CC")
_DETAIL = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_PUSH_POP = "Push/Pop_Range"
_START_END = "Start/Stop_Range"
_INSTANCES = r"^([^()]*[^()\s])\s+\(([^()]*)\)$"
_LONGEST_TEXT = 4096
Codes: TypeAlias = npt.NDArray[np.int32]


@dataclass
class Page:
    """One header and the rows under it: where its columns are, and its values until they can be read as numbers.

    ``metrics``: a raw page's metric columns. ``keys``: the distinct (section, name, printed unit). Cells at hand stand
    in ``cells`` as numbers of the distinct ``texts``; ``spans`` says of each run of them launch, count and keys.
    """

    columns: dict[str, int]
    width: int
    metrics: list[tuple[int, str]]
    nvtx: list[int]
    units: list[str] | None = None
    marks: Marks = field(default_factory=Marks)
    pending: list[tuple[Codes, Codes, Codes, pa.Array]] = field(default_factory=list)
    keys: list[tuple[str, str, str]] = field(default_factory=list)
    key_codes: dict[tuple[str, str, str], int] = field(default_factory=dict)
    cells: list[int] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    spans: list[tuple[int, int, Codes]] = field(default_factory=list)
    _metric_keys: Codes | None = None

    @property
    def details(self) -> bool:
        """Whether it is the details page."""
        return "Metric Value" in self.columns

    def key(self, section: str, name: str, unit: str) -> int:
        """Number of a (section, name, printed unit)."""
        known = (section, name, unit)
        code = self.key_codes.get(known)
        if code is None:
            code = self.key_codes[known] = len(self.keys)
            self.keys.append(known)
        return code

    @property
    def metric_keys(self) -> Codes:
        """Key of each metric column of a raw page; ask when the units row has been seen, or is known to be absent."""
        if self._metric_keys is None:
            units = self.units or []
            found = [self.key("", name, units[at] if at < len(units) else "") for at, name in self.metrics]
            self._metric_keys = np.array(found, np.int32)
        return self._metric_keys

    def metric_cells(self, cells: Sequence[str]) -> Sequence[str]:
        """The metric columns of a raw page's row, as many as the row has."""
        at = [position for position, _ in self.metrics]
        if len(at) > 1 and at[-1] == at[0] + len(at) - 1:
            return cells[at[0] : at[-1] + 1]
        return [cells[position] for position in at if position < len(cells)]

    def add(self, launch: int, keys: Codes, cells: Sequence[str]) -> None:
        """Keep some cells of one launch."""
        texts = self.texts
        self.cells.extend([texts.setdefault(cell, len(texts)) for cell in cells])
        self.spans.append((launch, len(cells), keys))

    def flush(self) -> None:
        """Move the cells at hand into arrays."""
        if not self.cells:
            return
        distinct = strings(self.texts)
        self.marks.observe(_heads(distinct))
        launch = np.repeat(
            np.array([span[0] for span in self.spans], np.int32), np.array([span[1] for span in self.spans])
        )
        keys = np.concatenate([span[2] for span in self.spans])
        self.pending.append((launch, keys, np.array(self.cells, np.int32), distinct))
        self.cells, self.texts, self.spans = [], {}, []


def open_page(header: Sequence[str]) -> Page:
    """What a header's columns are.

    :raises SourceError: it is a summary page, whose rows are of no single launch.
    """
    cells = [cell.strip() for cell in header]
    columns = {name: i for i, name in reversed(list(enumerate(cells))) if name}
    if ncu_text.INVOCATIONS in columns and "Metric Value" not in columns:
        raise SourceError(
            "ncu-summary-page",
            "the counter page is a summary over launches, not a page of launches",
            "print it without --print-summary: ncu --import REPORT.ncu-rep --csv --page raw",
        )
    special = {*_PLAIN, *_SHAPE, *_DETAIL}
    metrics = [
        (i, cell)
        for i, cell in enumerate(cells)
        if cell and cell not in special and _PUSH_POP not in cell and _START_END not in cell
    ]
    nvtx = [i for kind in (_PUSH_POP, _START_END) for i, cell in enumerate(cells) if kind in cell]
    return Page(columns, len(cells), [] if "Metric Value" in columns else metrics, nvtx)


def read(path: Path, limits: Limits) -> tuple[str, Rows, list[QualityItem]]:
    """``(kind, rows, quality items)`` of a page: kind is ``ncu-csv-raw`` or ``ncu-csv-details``.

    :raises SourceError: no page in it, a summary page, or a limit.
    """
    rows, kinds, pages = Rows(), set[str](), list[Page]()
    with ncu_text.opened(path, limits) as text:
        page: Page | None = None
        launches: dict[tuple[str, str], int] = {}
        total = 0
        for record in text.records():
            if record.header:
                page = open_page(record.cells)
                launches = {}
                pages.append(page)
                kinds.add("ncu-csv-details" if page.details else "ncu-csv-raw")
                continue
            assert page is not None
            if not _row(page, record.cells, rows, launches):
                text.losses.broken_rows += 1
            if total + len(page.cells) > limits.table_rows:
                raise SourceError(
                    "limit-rows",
                    f"the counter page has more than {limits.table_rows} values",
                    "export fewer launches or metrics",
                )
            if len(page.cells) >= _CELLS_A_CHUNK:
                total += len(page.cells)
                page.flush()
        losses = text.losses
    if not pages:
        raise SourceError(
            "not-a-counter-report",
            "no header of a counter page was found",
            "print one with: ncu --import REPORT.ncu-rep --csv --page raw",
        )
    quality = _quality(losses)
    for page in pages:
        page.flush()
        _values(page, rows)
        quality += _mark_items(page.marks)
    fill_shapes(rows)
    return (kinds.pop() if len(kinds) == 1 else "ncu-csv"), rows, quality


def _row(page: Page, cells: Sequence[str], rows: Rows, launches: dict[tuple[str, str], int]) -> bool:
    """Take one row; whether it could be read."""
    index = _whole(_cell(page, cells, "ID"))
    if index is None and "ID" in page.columns:
        # The row under a raw page's header holds the units; its own columns are empty.
        if page.units is None and not page.details and not _cell(page, cells, "ID"):
            page.units = [cell.strip() for cell in cells]
            return True
        return False
    process = _cell(page, cells, "Process ID")
    identity = (process, _cell(page, cells, "ID") if "ID" in page.columns else _cell(page, cells, "Kernel Name"))
    launch = launches.get(identity)
    if launch is None or not page.details:
        launch = len(rows.launches)
        launches[identity] = launch
        rows.launches.append(_launch(page, cells, index if index is not None else launch))
    if page.details:
        name, value = _cell(page, cells, "Metric Name"), _cell(page, cells, "Metric Value")
        if name and value:
            key = page.key(_cell(page, cells, "Section Name"), name, _cell(page, cells, "Metric Unit"))
            page.add(launch, np.array([key], np.int32), [value])
        return len(cells) <= page.width + 1 and (bool(name) or len(cells) > page.columns.get("Metric Name", page.width))
    taken = page.metric_cells(cells)
    page.add(launch, page.metric_keys[: len(taken)], taken)
    return len(cells) == page.width


def _cell(page: Page, cells: Sequence[str], name: str) -> str:
    at = page.columns.get(name)
    return cells[at].strip() if at is not None and at < len(cells) else ""


def _launch(page: Page, cells: Sequence[str], index: int) -> Launch:
    return named(
        _cell(page, cells, "Kernel Name"),
        Launch(
            launch_index=index,
            process=_whole(_cell(page, cells, "Process ID")),
            device=_whole(_cell(page, cells, "Device"), 2**31),
            context=_whole(_cell(page, cells, "Context")),
            stream=_whole(_cell(page, cells, "Stream")),
            grid=shape(_cell(page, cells, "Grid Size")),
            block=shape(_cell(page, cells, "Block Size")),
            nvtx=_nvtx(page, cells),
        ),
    )


def _whole(text: str, below: int = 2**63) -> int | None:
    """A whole number, digits possibly grouped; None for anything else."""
    digits = re.sub(r"(?<=[0-9])[.,'’\u00a0\u202f ](?=[0-9]{3})", "", text)
    if not digits.isascii() or not digits.isdigit() or len(digits) > 20:
        return None
    value = int(digits)
    return value if value < below else None


def shape(text: str) -> tuple[int, int, int] | None:
    """``(256, 1, 1)``, with or without spaces, its numbers possibly grouped."""
    inner = text.strip().strip("()")
    for separator in (r"\s*;\s*", r",\s+", r","):
        parts = [_whole(part.strip(), 2**32) for part in re.split(separator, inner)]
        if len(parts) == 3:
            x, y, z = parts
            return None if x is None or y is None or z is None else (x, y, z)
    return None


def _nvtx(page: Page, cells: Sequence[str]) -> str | None:
    """The open ranges in the two ``--nvtx`` columns, push/pop ranges first; None where the page has no such column."""
    if not page.nvtx:
        return None
    return "/".join(name for at in page.nvtx if at < len(cells) for name in nvtx_names(cells[at]))


def nvtx_names(cell: str) -> list[str]:
    """Range names of ``1421  "<default domain>:name:none:…" "domain:inner:…"``: the domain is dropped where default."""
    out: list[str] = []
    for quoted in re.findall(r'"([^"]*)"', cell):
        parts = quoted.rsplit(":", 6)
        if len(parts) == 7:
            domain, _, name = parts[0].partition(":")
            out.append(nvtx_name(domain, name))
    return out


def nvtx_name(domain: str, name: str) -> str:
    """One range as the ``nvtx`` column has it."""
    return name if not domain or domain == "<default domain>" else f"{domain}:{name}"


def _heads(cells: pa.Array) -> pa.Array:
    """Cells without their instance lists: ``1698 (16; 16)`` → ``1698``."""
    listed = pc.match_substring_regex(cells, _INSTANCES)
    if not pc.any(listed).as_py():
        return cells
    return pc.if_else(listed, pc.replace_substring_regex(cells, _INSTANCES, r"\1"), cells)


def _values(page: Page, rows: Rows) -> None:
    """Read the page's cells as numbers, now that all of them have told which mark is the decimal one."""
    bases = [base_unit(unit) for _, _, unit in page.keys]
    metric = np.array(
        [rows.metrics.code(metric_of(s, n, b[0]) if page.details else n)
         for (s, n, _), b in zip(page.keys, bases, strict=True)],
        np.int32,
    )  # fmt: skip
    unit = np.array([rows.units.code(b[0]) for b in bases], np.int32)
    factor = np.array([b[1] for b in bases], np.float64)
    for launch, key, cell, distinct in page.pending:
        read = parse(_heads(distinct), page.marks)
        listed = read.number & _flag(pc.match_substring_regex(distinct, _INSTANCES))
        count = np.where(listed, np.asarray(to_numpy(pc.count_substring(distinct, ";")), np.int32) + 1, 0)
        # An empty cell of a raw page says nothing: the launch was profiled without that metric.
        no_data = read.empty & ~_flag(pc.equal(distinct, ""))
        is_text = ~(read.number | read.nan | read.empty)
        text = np.full(len(distinct), -1, np.int32)
        for i in np.flatnonzero(is_text).tolist():
            text[i] = rows.texts.code(distinct[i].as_py()[:_LONGEST_TEXT])
        with np.errstate(over="ignore"):
            value = read.value[cell] * factor[key]
        too_large = read.number[cell] & ~np.isfinite(value)
        rows.not_numbers += int(np.count_nonzero(read.nan[cell] | too_large))
        rows.no_data += int(np.count_nonzero(no_data[cell]))
        keep = (read.number[cell] & ~too_large) | is_text[cell]
        launch, key, cell = launch[keep], key[keep], cell[keep]  # noqa: PLW2901
        rows.chunks.append(
            Chunk(
                launch,
                metric[key],
                unit[key],
                np.where(is_text[cell], np.nan, value[keep]),
                text[cell],
                count.astype(np.int32)[cell],
            )
        )
    page.pending = []


def _flag(mask: pa.Array) -> Bools:
    return np.asarray(to_numpy(pc.fill_null(mask, False)), np.bool_)


def _quality(losses: ncu_text.Losses) -> list[QualityItem]:
    out: list[QualityItem] = []
    if losses.broken_rows:
        out.append(
            QualityItem(
                "ncu-broken-rows",
                Severity.DATA_LOSS,
                losses.broken_rows,
                f"{losses.broken_rows} rows of the counter page are torn or have another number of columns",
                "print the page to a file of its own: ncu --import REPORT.ncu-rep --csv --page raw --log-file PAGE.csv",
            )
        )
    if losses.error_lines:
        out.append(
            QualityItem(
                "ncu-reported-errors",
                Severity.DATA_LOSS,
                losses.error_lines,
                f"the counter profiler reported {losses.error_lines} errors between its rows",
                "read them in the page; launches after an error are missing",
            )
        )
    if losses.replaced:
        out.append(
            QualityItem(
                "ncu-undecodable",
                Severity.NOTICE,
                losses.replaced,
                f"{losses.replaced} lines of the counter page hold bytes that are no text",
            )
        )
    return out


def _mark_items(marks: Marks) -> list[QualityItem]:
    out: list[QualityItem] = []
    if marks.guessed:
        out.append(
            QualityItem(
                "ncu-locale-guessed",
                Severity.NOTICE,
                marks.ambiguous,
                f"{marks.ambiguous} numbers such as 117.344 were read as 117344: nothing in the page tells its locale",
                "print the page with LC_ALL=C",
            )
        )
    if marks.conflicting:
        out.append(
            QualityItem(
                "ncu-locale-conflict",
                Severity.DATA_LOSS,
                marks.conflicting,
                f"{marks.conflicting} numbers of the counter page contradict the decimal mark of the others",
                "print the page again with LC_ALL=C",
            )
        )
    return out


def instances(
    path: Path, metrics: Sequence[str], limits: Limits
) -> Iterator[tuple[int, str, str, list[str], list[float]]]:
    """Values by instance of some metrics: ``(launch index, metric, printed unit, labels, values)``, NaN unreadable.

    The raw page must have been printed with ``--print-metric-instances values`` (labels are empty) or ``details``.
    """
    wanted = frozenset(metrics)
    with ncu_text.opened(path, limits) as text:
        page: Page | None = None
        for record in text.records():
            if record.header:
                page = open_page(record.cells)
                continue
            if page is None or page.details:
                continue
            index = _whole(_cell(page, record.cells, "ID"))
            if index is None:
                page.units = page.units or [cell.strip() for cell in record.cells]
                continue
            for at, metric in page.metrics:
                if metric not in wanted or at >= len(record.cells):
                    continue
                found = re.match(_INSTANCES, record.cells[at].strip())
                if found is None:
                    continue
                pieces = [piece.strip().rpartition(":") for piece in found.group(2).split(";")]
                cells = strings([piece[2].strip() for piece in pieces])
                marks = Marks()
                marks.observe(cells)
                unit = page.units[at] if page.units and at < len(page.units) else ""
                yield index, metric, unit, [piece[0].strip() for piece in pieces], parse(cells, marks).value.tolist()
