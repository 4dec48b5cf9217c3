"""PNG and SVG: well-formed, the same twice, and nothing of a trace becomes markup or mathematics."""

from __future__ import annotations

import builtins
import io
import struct
from functools import cache
from typing import Any
from xml.etree import ElementTree

import attribution_samples as samples
import pytest

from nvprof_tools.errors import UsageError
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.report.base import Report
from nvprof_tools.report.chart import PngChart, SvgChart

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: PngChart | SvgChart, a: Attribution) -> bytes:
    out = io.BytesIO()
    chart.render(Report(a), out)
    return out.getvalue()


def texts(data: bytes) -> list[str]:
    return ["".join(node.itertext()).strip() for node in ElementTree.fromstring(data).iter(f"{SVG}text")]


def test_the_picture_names_the_finding_rungs_and_overheads() -> None:
    found = texts(drawn(SvgChart(), samples.rich()))
    joined = " ".join(found)
    assert "The log says 100 %, SMs were active 56 %; pinning costs 150 ms itself" in joined
    assert {"timeline_bracket", "sm_active", "launch", "host_register"} <= set(found)
    assert "nvml_utilisation" not in found
    assert "56.4 %" in found
    assert any(text.startswith("67.8 %   lost: cpu 193.7, launch 81.1") for text in found)


def test_a_png_is_a_png_of_some_size() -> None:
    data = drawn(PngChart(), samples.rich())
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height > 800) == (1440, True)


@cache
def shape(payload: str) -> list[str]:
    root = ElementTree.fromstring(drawn(SvgChart(), samples.hostile(payload)))
    return [node.tag for node in root.iter() if node.tag in {f"{SVG}text", f"{SVG}path", f"{SVG}a", f"{SVG}script"}]


DRAWN = (
    "<script>", "&lt;b&gt;", "]]>", "$\\frac{1}{$", "$$", "\x00\x1b[31m\x9b", "\u202eevil", "\ud800lone", "漢字🚀",
    "x" * 10_000,
)  # fmt: skip


@pytest.mark.parametrize("payload", DRAWN)
def test_no_payload_changes_the_drawing(payload: str) -> None:
    assert shape(payload) == shape("plain")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError) as raised:
        drawn(PngChart(), samples.rich())
    assert raised.value.slug == "plot-extra-missing"
    assert "nvprof-tools[plot]" in raised.value.hint
