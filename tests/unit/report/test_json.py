"""The JSON contract: its schema, its keys' order, integers and nulls."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from importlib.resources import files

import attribution_samples as samples
import jsonschema
import pytest

from nvprof_tools.report.base import Report
from nvprof_tools.report.json_doc import SERIES_POINTS, JsonDocument, document, dumps

SCHEMA = json.loads((files("nvprof_tools.report") / "attribution.schema.json").read_text("utf-8"))

CONTRACT = {
    "": "schema inputs pipeline window clock ladder devices partitions jobs overheads latency memory gaps counters "
    "quality",
    "window": "start_ns end_ns wall_ns from",
    "clock": "method offset_ns uncertainty_ns drift_ppm",
    "ladder": "device rung busy_ns fraction evidence",
    "devices": "device name wall_ns categories stages",
    "partitions": "job partition worker device start_ns end_ns wall_ns bracket_start_ns bracket_end_ns categories open",
    "jobs": "job partitions wall_ns synthesis_ns queue_ns gpu_ns cold",
    "overheads": "category calls total_ns mean_ns p50_ns p95_ns max_ns section_fraction device_idle_ns driver_lock_ns "
    "blockers evidence",
    "latency": "stage launches p50_ns p95_ns max_ns",
    "memory": "device peak_bytes at_ns",
    "gaps": "device start_ns end_ns category before after",
    "counters": "kernel stage launches total_ns sm_throughput_pct dram_throughput_pct occupancy_pct bound "
    "matched_launches",
    "quality": "slug severity count message hint",
}
"""The published keys in their order; further ones may only follow them."""


def written(report: Report) -> str:
    out = io.BytesIO()
    JsonDocument().render(report, out)
    return out.getvalue().decode("ascii")


@pytest.mark.parametrize("name", samples.AWKWARD)
def test_every_document_fits_the_schema(name: str) -> None:
    data = json.loads(written(Report(*samples.AWKWARD[name]())))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)


@pytest.mark.parametrize("payload", samples.HOSTILE)
def test_hostile_strings_come_back_unchanged(payload: str) -> None:
    data = json.loads(written(Report(samples.hostile(payload))))
    assert data["pipeline"] == payload
    assert data["quality"][0]["message"] == payload
    assert data["gaps"][0]["before"] == payload


@pytest.mark.parametrize("place", CONTRACT)
def test_keys_keep_their_order(place: str) -> None:
    data = document(samples.rich())
    part = data[place] if place else data
    first = part[0] if isinstance(part, list) else part
    wanted = CONTRACT[place].split()
    assert isinstance(first, dict)
    assert list(first)[: len(wanted)] == wanted


def test_figures_arrive_exactly() -> None:
    data = json.loads(written(Report(samples.rich())))
    device = data["devices"][0]
    assert device["categories"]["kernel"] == 735_600_000
    assert sum(device["categories"].values()) == device["wall_ns"] == data["window"]["wall_ns"]
    for partition in data["partitions"]:
        assert sum(partition["categories"].values()) == partition["wall_ns"]
    launch = next(o for o in data["overheads"] if o["category"] == "launch")
    assert (launch["calls"], launch["total_ns"], launch["driver_lock_ns"]) == (1798, 81_100_000, 71_700_000)


def test_times_past_what_a_double_holds_stay_exact() -> None:
    a = samples.one_event()
    far = replace(a, window=replace(a.window, start_ns=2**62 + 1, end_ns=2**62 + 2))
    assert json.loads(written(Report(far)))["window"]["start_ns"] == 2**62 + 1


def test_not_measured_is_null() -> None:
    data = json.loads(written(Report(samples.no_metrics())))
    rungs = {r["rung"]: r for r in data["ladder"]}
    assert rungs["sm_active"]["fraction"] is None
    assert rungs["sm_active"]["busy_ns"] is None
    assert data["memory"][0]["peak_bytes"] is None
    assert all(o["driver_lock_ns"] is None for o in data["overheads"])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_no_number_is_null(value: float) -> None:
    a = samples.rich()
    broken = replace(a, counters=(replace(a.counters[0], sm_throughput_pct=value),))
    assert json.loads(written(Report(broken)))["counters"][0]["sm_throughput_pct"] is None


def test_only_ascii_and_no_control_character_is_written() -> None:
    text = dumps({"a": "\x7f\x9b\x1b\u202e\u2028"})
    assert all(character == "\n" or " " <= character <= "~" for character in text)


def test_the_memory_series_keeps_its_peak() -> None:
    a = samples.rich()
    points = 10 * SERIES_POINTS + 7
    used = tuple(5 if k != 1234 else 99 for k in range(points))
    memory = replace(a.memory[0], times_ns=tuple(range(points)), bytes_in_use=used)
    series = document(replace(a, memory=(memory,)))["memory"][0]["series"]  # type: ignore[index, call-overload]
    assert len(series) <= SERIES_POINTS
    assert [1234, 99] in series
