"""``compare -f csv``: one row a measure, untested pairs after them; times in ns, empty: not measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO, Final, TypeAlias

from nvprof_tools.files.safe_text import csv_cell
from nvprof_tools.model.comparison import Comparison
from nvprof_tools.report.compare_json import document
from nvprof_tools.report.json_doc import Json

HEADER: Final = (
    "kind", "name", "a", "b", "change", "low", "high", "fraction", "own_fraction", "p_value", "p_permutation",
    "p_adjusted", "detectable", "share_a", "share_b", "cold_a", "cold_b", "verdict",
)  # fmt: skip

Row: TypeAlias = tuple[Json, ...]


def render(c: Comparison, out: BinaryIO) -> None:
    """Write header and rows, UTF-8, lines ended by ``\\n``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for row in _rows(c):
        padded = (*row, *([None] * (len(HEADER) - len(row))))
        writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in padded])
    out.write(text.getvalue().encode("utf-8", "replace"))


def _rows(c: Comparison) -> Iterator[Row]:
    data = document(c)
    yield ("verdict", c.verdict, None, None, None, None, None, data["size"])
    changes = data["changes"]
    for x in (data["headline"], *(changes if isinstance(changes, list) else ())):
        if isinstance(x, dict):
            keys = ("level", "measure", "a_ns", "b_ns", "change_ns", "low_ns", "high_ns", "fraction", "own_fraction")
            rest = ("p_value", "p_permutation", "p_adjusted", "detectable_ns", "share_a", "share_b")
            yield tuple(x[k] for k in (*keys, *rest, "cold_a_ns", "cold_b_ns", "verdict"))
    for p in c.ladder:
        yield ("ladder", p.name, p.a, p.b, None if p.a is None or p.b is None else p.b - p.a)
    for p in c.device:
        yield ("device", p.name, p.a, p.b, None if p.a is None or p.b is None else p.b - p.a)
    for d in c.differences:
        yield ("difference", d.aspect, d.a, d.b, d.message)
