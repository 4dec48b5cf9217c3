"""Comparisons and log summaries with a payload in every text a file could fill, in every format, parsed back.

The same for attributions stands in ``tests/unit/report``.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from attribution_samples import HOSTILE
from markdown_it import MarkdownIt

from nvprof_tools.attribution.log_summary import summarise
from nvprof_tools.cli.comparing import compare_paths
from nvprof_tools.model.comparison import Comparison
from nvprof_tools.model.log_summary import LogSummary
from nvprof_tools.report.log_formats import renderer
from tests.fixture_files import ROOT, fixture_log
from tests.log_samples import CUZK, read

OURS = {
    "unit", "verdict", "level", "weight", "grounds", "measure", "aspect", "name", "severity", "slug", "kind", "cause",
    "category", "schema", "idle_cause",
}  # fmt: skip
"""Fields that hold words of the tool's own, chosen by code and never by a file."""


def poisoned(value: Any, payload: str) -> Any:
    """The same object with every text a file could fill become the payload."""
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for field in fields(value):
            inner = getattr(value, field.name)
            if not (isinstance(inner, str) and field.name in OURS):
                changed[field.name] = poisoned(inner, payload)
        return replace(value, **changed)
    if type(value) is str:
        return payload
    if isinstance(value, tuple):
        return tuple(poisoned(item, payload) for item in value)
    if isinstance(value, Mapping):
        return {key: poisoned(item, payload) for key, item in value.items()}
    return value


@cache
def comparison() -> Comparison:
    runs = ROOT / "runs"
    found = compare_paths([str(runs / "pageable_1.log"), str(runs / "pinned_1.log")])
    assert isinstance(found, Comparison)
    return found


@cache
def summary() -> LogSummary:
    return summarise(read(fixture_log("p9_cut").read_bytes()), CUZK)


def compared(form: str, payload: str) -> str:
    out = io.BytesIO()
    import_module(f"nvprof_tools.report.compare_{form}").render(poisoned(comparison(), payload), out)
    return out.getvalue().decode("utf-8")


def summarised(form: str, payload: str) -> str:
    payload = payload.encode("utf-8", "replace").decode("utf-8")
    table = summary().partitions
    at = table.schema.get_field_index("job")
    jobs = pa.array([payload] * len(table)).cast(table.schema.field("job").type)
    changed = replace(poisoned(summary(), payload), partitions=table.set_column(at, table.schema.field("job"), jobs))
    out = io.BytesIO()
    renderer(form).render(changed, out)
    return out.getvalue().decode("utf-8")


MAKERS = {"compare": compared, "log": summarised}
Maker = Callable[[str, str], str]


def tokens(text: str) -> list[str]:
    kinds = {
        "link_open",
        "image",
        "html_inline",
        "html_block",
        "fence",
        "code_block",
        "heading_open",
        "table_open",
        "tr_open",
        "td_open",
    }
    parsed = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [c.type for t in parsed for c in (t, *(t.children or [])) if c.type in kinds]


@pytest.mark.parametrize("payload", HOSTILE)
@pytest.mark.parametrize("what", MAKERS)
def test_no_payload_acts(what: str, payload: str) -> None:
    make = MAKERS[what]
    for line in make("table", payload).split("\n"):
        assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in line)
    assert tokens(make("markdown", payload)) == tokens(make("markdown", "plain"))
    rows = list(csv.reader(io.StringIO(make("csv", payload), newline="")))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == len(list(csv.reader(io.StringIO(make("csv", "plain"), newline=""))))
    for cell in (cell for row in rows for cell in row):
        assert cell.lstrip()[:1] not in {"=", "+", "@", "\t", "\r"}
        assert not cell.startswith("-") or cell[1:].replace(".", "").replace("e-", "").isdigit()
    text = make("json", payload)
    assert text.isascii()
    assert type(json.loads(text)) is dict


def test_payloads_are_shown() -> None:
    """The walk reaches what is printed: a plain word in every field is seen in every format that shows such fields."""
    for make in MAKERS.values():
        for form in ("table", "markdown", "json", "csv"):
            assert "visible" in make(form, "visible") or (make is compared and form == "csv")
