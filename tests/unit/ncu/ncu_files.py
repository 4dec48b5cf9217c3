"""Counter fixtures unpacked, and small pages written by hand."""

from __future__ import annotations

import csv
import functools
import io
import lzma
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "ncu"
HEAD = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip
PUSH_POP = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
START_END = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"


@functools.cache
def content(name: str) -> bytes:
    """An xz-packed fixture."""
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes())


def unpack(name: str, folder: Path) -> Path:
    """A fixture as a file."""
    path = folder / name
    path.write_bytes(content(name))
    return path


def ten_pages() -> list[str]:
    """The ten raw pages of ``p9_ten_kernels``, apart."""
    text = content("p9_ten_kernels.raw.csv").decode()
    return [f'"ID",{piece}' for piece in text.split('"ID",')[1:]]


def line(cells: Sequence[str]) -> str:
    """One row, every cell quoted as the profiler does."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    return out.getvalue()


def launch(index: int, kernel: str, block: str = "(256, 1, 1)", grid: str = "(120, 1, 1)") -> list[str]:
    """The leading cells of a row."""
    return [str(index), "4711", "prog", "127.0.0.1", kernel, "1", "7", block, grid, "0", "9.0"]


def raw_page(metrics: Sequence[str], units: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[str]]]) -> str:
    """A raw page: rows are (leading cells, values)."""
    lines = [line([*HEAD, *metrics]), line(["", *[""] * (len(HEAD) - 1), *units])]
    return "".join([*lines, *(line([*head, *values]) for head, values in rows)])


def details_page(rows: Sequence[tuple[Sequence[str], str, str, str, str]]) -> str:
    """A details page: rows are (leading cells, section, name, unit, value), ragged as the profiler's are."""
    rule = ["Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"]
    header = line([*HEAD, "Section Name", "Metric Name", "Metric Unit", "Metric Value", *rule])
    return header + "".join(
        line([*head, section, name, unit, value]).rstrip("\n") + ",\n" for head, section, name, unit, value in rows
    )


def write(folder: Path, text: str, name: str = "page.csv", encoding: str = "utf-8") -> Path:
    """A page as a file."""
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


NUMBER = r"-?[\d,]+(\.\d+)?"
UNIT_FACTORS = {
    "us": ("ns", "1e3"), "ms": ("ns", "1e6"), "Ghz": ("hz", "1e9"), "Mhz": ("hz", "1e6"), "Kbyte": ("byte", "1e3"),
    "Mbyte": ("byte", "1e6"), "Gbyte": ("byte", "1e9"), "Tbyte": ("byte", "1e12"), "Mbyte/s": ("byte/s", "1e6"),
    "Gbyte/s": ("byte/s", "1e9"), "Tbyte/s": ("byte/s", "1e12"), "Kbyte/block": ("byte/block", "1e3"),
    "Kbyte/cycle": ("byte/cycle", "1e3"), "sector/ns": ("sector/s", "1e9"), "sector/us": ("sector/s", "1e6"),
    "sector/ms": ("sector/s", "1e3"), "%/Kbyte": ("%/byte", "1e3"),
}  # fmt: skip


def printed(cell: str, unit: str) -> tuple[str, Decimal, Decimal]:
    """(base unit, value, half a unit of its last digit) of a cell of an English page, by decimal arithmetic."""
    base, factor = UNIT_FACTORS.get(unit, (unit, "1"))
    plain = Decimal(cell.replace(",", ""))
    digits = -int(plain.as_tuple().exponent)
    half = Decimal(5).scaleb(-digits - 1) if digits else Decimal(0)
    return base, plain * Decimal(factor), half * Decimal(factor)


def details_halves(name: str) -> Callable[[int, str, float], Decimal]:
    """Half a unit of the last digit that a details page prints for ``(launch, base unit, value)``."""
    rows = list(csv.reader(content(name).decode().splitlines()))
    at = {column: i for i, column in enumerate(rows[0])}
    cells: dict[tuple[int, str], list[tuple[float, Decimal]]] = {}
    for row in rows[1:]:
        cell, unit = row[at["Metric Value"]], row[at["Metric Unit"]]
        if row[at["Metric Name"]] and re.fullmatch(NUMBER, cell):
            base, value, half = printed(cell, unit)
            cells.setdefault((int(row[0]), base), []).append((float(value), half))

    def half_of(launch_number: int, unit: str, value: float) -> Decimal:
        return max(half for v, half in cells[launch_number, unit] if math.isclose(v, value, rel_tol=1e-12))

    return half_of


def chosen(launch_number: int, column: int) -> bool:
    """Which cells of the real raw page the slow comparisons look at: some launches whole, a tenth of the others."""
    return launch_number in {0, 29, 48} or column % 10 == 0


def raw_cells(name: str) -> dict[tuple[int, str], tuple[str, str]]:
    """``(printed unit, cell)`` by launch and metric, of the chosen cells of a raw page."""
    rows = list(csv.reader(content(name).decode().splitlines()))
    return {
        (number, rows[0][i]): (rows[1][i], row[i])
        for number, row in enumerate(rows[2:])
        for i in range(13, len(row))
        if chosen(number, i)
    }
