"""``reports/`` is what the golden traces give today: ``make reports`` brings it up to date."""

from __future__ import annotations

import io
import sys
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


def rendered(report: Report, form: str) -> bytes:
    out = io.BytesIO()
    make(by_name(form)).render(report, out)
    return out.getvalue()


def close_enough(got: bytes, want: Path) -> bool:
    image = pytest.importorskip("matplotlib.image")
    left, right = image.imread(io.BytesIO(got)), image.imread(want)
    return bool(left.shape == right.shape and np.abs(left - right).mean() * 255 < TOLERANCE)


@pytest.mark.parametrize("name", make_reports.names())
def test_what_is_committed_is_what_comes_out(name: str) -> None:
    again = "run `make reports` and look at what changed"
    folder = ROOT / "reports"
    try:
        report = make_reports.report(name)
    except ToolError as error:
        assert (folder / f"{name}.md").read_text("utf-8") == make_reports.refusal(error), again
        return
    assert (folder / f"{name}.md").read_bytes() == rendered(report, "markdown"), again
    if not name.startswith("public_"):
        assert close_enough(rendered(report, "png"), folder / f"{name}.png"), again
    if name in make_reports.WITH_PAGE:
        assert (folder / f"{name}.html").read_bytes() == rendered(report, "html"), again


def test_nothing_else_lies_there() -> None:
    names = make_reports.names()
    wanted = {"README.md"} | {f"{n}.md" for n in names}
    optional = {f"{n}.png" for n in names} | {f"{n}.html" for n in make_reports.WITH_PAGE} | {"light.png", "dark.png"}
    found = {p.name for p in (ROOT / "reports").iterdir()}
    assert wanted <= found
    assert found <= wanted | optional
