"""Every format over the same awkward runs: it gives something, the same twice, and never "not measured" as zero."""

from __future__ import annotations

import io
from functools import cache

import pytest
from attribution_samples import AWKWARD

from nvprof_tools.report.base import Report
from nvprof_tools.report.registry import FORMATS, by_name, make

NAMES = [f.name for f in FORMATS]


@cache
def run(name: str) -> Report:
    return Report(*AWKWARD[name]())


def rendered(name: str, run_name: str) -> bytes:
    out = io.BytesIO()
    make(by_name(name)).render(run(run_name), out)
    return out.getvalue()


@pytest.mark.parametrize("name", ["png", "svg"])
def test_pictures_are_the_same_bytes_twice(name: str) -> None:
    assert rendered(name, "rich") == rendered(name, "rich")


@pytest.mark.parametrize("run_name", AWKWARD)
@pytest.mark.parametrize("name", NAMES)
def test_every_run_renders_to_the_same_bytes_twice(name: str, run_name: str) -> None:
    first = rendered(name, run_name)
    assert first
    if name not in {"png", "svg"} and run_name != "many_segments":
        assert rendered(name, run_name) == first


@pytest.mark.parametrize("name", [f.name for f in FORMATS if not f.binary and f.name != "svg"])
@pytest.mark.parametrize("run_name", AWKWARD)
def test_text_formats_are_utf8_and_end_with_a_newline(name: str, run_name: str) -> None:
    text = rendered(name, run_name).decode("utf-8")
    assert text.endswith("\n")
    assert "\x1b" not in text
    assert "nan" not in text.lower().split()


@pytest.mark.parametrize("name", ["table", "markdown", "html"])
def test_what_was_not_measured_is_named_as_such(name: str) -> None:
    text = rendered(name, "no_metrics").decode()
    assert "not measured" in text
    lines = [line for line in text.splitlines() if "sm_active" in line and "during" not in line]
    assert lines
    assert not any("0.0 %" in line for line in lines)


@pytest.mark.parametrize("name", ["table", "markdown"])
def test_data_loss_stands_before_the_figures(name: str) -> None:
    text = rendered(name, "rich").decode()
    assert text.index("dropped 12 records") < text.index("timeline_bracket")
