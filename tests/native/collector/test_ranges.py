"""NVTX calls become ranges and marks."""

from __future__ import annotations

from collections.abc import Callable

from tests.native.collector.capture import NONE
from tests.native.collector.conftest import Ran

Run = Callable[..., Ran]


def test_ranges_marks_domains_and_names(run: Run) -> None:
    ran = run("ranges")
    assert ran.out == "1100 1\n", "levels of pushes and pops, and a pop too many"
    capture = ran.only()
    rows = {capture.text(row["text"]): row for row in capture.table("nvtx_range")}
    registered = [row for row in capture.table("nvtx_range") if capture.text(row["text"]) == "registered"]
    assert len(registered) == 2
    inner, outer = registered
    assert outer["start"] <= inner["start"] <= inner["end"] <= outer["end"]
    assert (capture.text(outer["domain"]), capture.text(outer["categoryName"]), outer["category"]) == (
        "a domain",
        "three",
        3,
    )
    assert (outer["payload"], outer["payloadType"], outer["color"]) == (0x123456789ABCDEF, 1, 0xFF00FF00)
    wide = rows["wide ä中😀"]
    assert (wide["domain"], wide["category"], wide["type"]) == (NONE, 0, 0)
    across = rows["across"]
    assert across["type"] == 1
    assert across["rangeId"] != 0
    assert across["tid"] != across["endTid"]
    assert across["end"] >= across["start"]
    assert rows["never ended"]["end"] == 0
    assert rows["left open"]["end"] == 0
    assert rows["left open"]["tid"] != across["tid"]
    assert rows["x" * 4096]["end"] > 0
    named, nameless = capture.table("nvtx_mark")
    assert capture.text(named["text"]) == "registered"
    assert nameless["text"] == NONE
    assert (nameless["payload"], nameless["payloadType"]) == (2**32 - 2, 5)
    assert (nameless["category"], nameless["categoryName"]) == (4, NONE)
    assert capture.slugs() == {}
    assert "cupti_clock" not in capture.infos, "CUDA was not started"


def test_a_flood_is_counted(run: Run) -> None:
    pairs = 100_000
    capture = run("flood", str(pairs)).only()
    ranges = capture.table("nvtx_range")
    closed = [row for row in ranges if row["end"] > 0]
    slugs = capture.slugs()
    lost, unmatched = slugs.get("nvtx-dropped", 0), slugs.get("nvtx-unmatched", 0)
    # Each call arrives in a range, or is dropped, or has lost its partner: nothing else becomes of it.
    assert 2 * len(closed) + (len(ranges) - len(closed)) + lost + unmatched == 2 * pairs
    assert all(row["end"] >= row["start"] > 0 for row in closed)
