"""``reports/`` is what the golden traces give today: ``make reports`` brings it up to date."""

from __future__ import annotations

import io
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nvprof_tools.errors import ToolError
from nvprof_tools.report.base import Report
from nvprof_tools.report.registry import by_name, make

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import make_reports  # noqa: E402

TOLERANCE = 8.0
"""Mean difference of a pixel, of 255: another version of the font renderer moves edges, never bars."""


@cache
def made(name: str) -> Report | ToolError:
    try:
        return make_reports.report(name)
    except ToolError as error:
        return error


def rendered(name: str, form: str) -> bytes:
    report = made(name)
    if isinstance(report, ToolError):
        return make_reports.refusal(report).encode()
    out = io.BytesIO()
    make(by_name(form)).render(report, out)
    return out.getvalue()


def committed(name: str, form: str) -> Path:
    return ROOT / "reports" / f"{name}{make_reports.SUFFIX[form]}"


@pytest.mark.parametrize("name", make_reports.names())
def test_the_text_is_up_to_date(name: str) -> None:
    assert committed(name, "markdown").read_bytes() == rendered(name, "markdown"), "run `make reports` and look at it"


@pytest.mark.parametrize("name", sorted(make_reports.WITH_PAGE))
def test_the_page_is_up_to_date(name: str) -> None:
    assert committed(name, "html").read_bytes() == rendered(name, "html"), "run `make reports` and look at it"


@pytest.mark.parametrize("name", [n for n in make_reports.names() if not n.startswith("public_")])
def test_the_picture_is_up_to_date(name: str) -> None:
    image = pytest.importorskip("matplotlib.image")
    want = image.imread(committed(name, "png"))
    got = image.imread(io.BytesIO(rendered(name, "png")))
    assert got.shape == want.shape
    assert np.abs(got - want).mean() * 255 < TOLERANCE, "run `make reports` and look at it"


def test_nothing_else_lies_there() -> None:
    names = make_reports.names()
    wanted = {"README.md"} | {f"{n}.md" for n in names}
    optional = {f"{n}.png" for n in names} | {f"{n}.html" for n in make_reports.WITH_PAGE} | {"light.png", "dark.png"}
    found = {p.name for p in (ROOT / "reports").iterdir()}
    assert wanted <= found
    assert found <= wanted | optional
