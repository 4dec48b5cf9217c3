"""The page: self-contained, small enough, and nothing in a trace becomes part of its structure."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import attribution_samples as samples
import html5lib
import pytest

from nvprof_tools.report.base import Report
from nvprof_tools.report.html import HtmlPage, embedded

UPLOT_SHA256 = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""Of the files in the published package uplot 1.6.32."""


def page(report: Report) -> str:
    out = io.BytesIO()
    HtmlPage().render(report, out)
    return out.getvalue().decode("utf-8")


@cache
def rich_page() -> str:
    return page(Report(samples.rich(), samples.rich_trace()))


def elements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Every element and the names of its attributes, as a browser's parser sees them."""
    root = html5lib.parse(text, namespaceHTMLElements=False)
    return [(node.tag, tuple(sorted(node.attrib))) for node in root.iter() if isinstance(node.tag, str)]


def data_of(text: str) -> Any:
    root = html5lib.parse(text, namespaceHTMLElements=False)
    return json.loads(next(n for n in root.iter("script") if n.get("type") == "application/json").text)


@cache
def plain_elements() -> list[tuple[str, tuple[str, ...]]]:
    return elements(page(Report(samples.hostile("plain"), samples.hostile_trace("plain"))))


@pytest.mark.parametrize("payload", samples.HOSTILE)
def test_no_payload_changes_the_page(payload: str) -> None:
    text = page(Report(samples.hostile(payload), samples.hostile_trace(payload)))
    got = elements(text)
    assert got == plain_elements()
    assert not any(a.startswith("on") or a in {"style", "srcdoc", "action"} for _, names in got for a in names)


def test_scripts_and_styles_are_ours_and_the_policy_names_their_hashes() -> None:
    root = html5lib.parse(rich_page(), namespaceHTMLElements=False)
    policy = next(n.get("content") for n in root.iter("meta") if n.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    code = [n.text for n in root.iter("script") if n.get("type") is None]
    assert len(code) == 3
    for text in [*code, *(n.text for n in root.iter("style"))]:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_nothing_is_fetched() -> None:
    root = html5lib.parse(rich_page(), namespaceHTMLElements=False)
    for node in root.iter():
        for name in ("src", "href", "data", "poster", "srcset"):
            value = node.get(name) if isinstance(node.tag, str) else None
            assert value is None or value.startswith(("#", "data:,"))
    style = " ".join(n.text for n in root.iter("style"))
    assert not re.search(r"url\(|@import", style)


def test_the_plotting_library_is_the_published_one() -> None:
    for name, digest in UPLOT_SHA256.items():
        data = (files("nvprof_tools.report") / "templates" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest


def test_finding_and_loss_come_first() -> None:
    root = html5lib.parse(rich_page(), namespaceHTMLElements=False)
    text = " ".join(t for n in root.iter("body") for t in n.itertext())
    assert "The log says 100 %, SMs were active 56 %" in text
    order = [text.index(t) for t in ("The log says 100", "dropped 12 records", "Utilisation ladder", "Overheads in")]
    assert order == sorted(order)


def test_lanes_hold_every_event_at_the_finest_level() -> None:
    data = data_of(rich_page())
    lanes = {lane["label"]: lane for lane in data["lanes"]}
    assert lanes["GPU 0 kernels"]["levels"][0]["n"] == 960
    assert {"GPU 0 copies", "GPU 0 idle", "GPU 0 in charge", "worker 0: sections", "worker 1: what they do"} <= set(
        lanes
    )
    assert {c["label"] for c in data["curves"]} == {"GPU 0, % of peak", "device memory, MiB"}
    assert {s["label"] for s in data["curves"][0]["series"]} == {"SMs Active", "DRAM Read", "DRAM Write"}


def test_names_of_kernels_and_causes_are_there_to_hover() -> None:
    names = data_of(rich_page())["names"]
    assert {"accumulate", "_CT_NTT", "cudaLaunchKernel", "launch, waits in the driver for host_register"} <= set(names)


@pytest.mark.parametrize("count", [200_000, 1_000_000])
def test_a_large_run_stays_under_5_mb(count: int) -> None:
    text = page(Report(samples.many_segments(count), samples.many_kernels_trace(count)))
    assert len(text.encode()) < 5_000_000
    lanes = data_of(text)["lanes"]
    assert sum(lane["levels"][0]["n"] for lane in lanes) <= 250_000
    assert sum(lane["events"] for lane in lanes) >= count
    assert all(lane["levels"][-1]["n"] <= 20_000 for lane in lanes)


def test_embedded_data_cannot_end_its_element() -> None:
    text = embedded({"a": "</script><!-- & ' \u2028"})
    assert not set(text) & set("<>&'")
    assert json.loads(text) == {"a": "</script><!-- & ' \u2028"}
