"""Traces of a program with the marker shim, from an H200, against what the program itself measured.

``preload``, ``shared``, ``osrt``: the unchanged program with the preload library; it has no section ranges, and threads
come from the marks of its own log lines. ``header``: built with the C header.
"""

from __future__ import annotations

import csv
import lzma
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.model.attribution import Attribution
from tests.fixture_files import ROOT

NAMES = ("preload", "shared", "header", "osrt")
STEPS = {
    "mutex_wait": "mutex_acquire",
    "host_register": "host_register",
    "host_unregister": "host_unregister",
    "mem_info": "mem_info",
    "free": "free",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("markers")


@cache
def answer(folder: Path, name: str) -> Attribution:
    path = folder / f"{name}.sqlite"
    path.write_bytes(lzma.decompress((ROOT / "markers" / name / "trace.sqlite.xz").read_bytes()))
    return attribute_files(path)[0]


def truth(name: str) -> dict[tuple[str, str], int]:
    out: Counter[tuple[str, str]] = Counter()
    with (ROOT / "markers" / name / "truth.csv").open() as lines:
        for row in csv.DictReader(lines):
            out[row["job"], row["step"]] += int(row["end_utc_ns"]) - int(row["start_utc_ns"])
    return out


@pytest.mark.parametrize("name", NAMES)
def test_the_log_needs_no_file_and_aligns_by_marks(folder: Path, name: str) -> None:
    found = answer(folder, name)
    assert found.clock.method == "marks"
    assert found.clock.uncertainty_ns is not None
    assert found.clock.uncertainty_ns < 5_000
    keys = {key for key, step in truth(name) if step == "gpu_prove"}
    assert {f"{p.job}/{p.partition}" for p in found.partitions} == keys


@pytest.mark.parametrize("name", NAMES)
def test_categories_are_what_the_program_measured(folder: Path, name: str) -> None:
    measured = truth(name)
    for partition in answer(folder, name).partitions:
        key = f"{partition.job}/{partition.partition}"
        for category, step in STEPS.items():
            want, got = measured[key, step], partition.categories.get(category, 0)
            assert abs(got - want) <= max(0.01 * want, 50_000), (name, key, category, got, want)
        assert partition.wall_ns == pytest.approx(measured[key, "gpu_prove"], abs=250_000)
        assert sum(partition.categories.values()) == partition.wall_ns


@pytest.mark.parametrize("name", NAMES)
def test_mutex_held_is_what_the_program_measured(folder: Path, name: str) -> None:
    measured = sum(ns for (_, step), ns in truth(name).items() if step == "gpu_mutex_held")
    found = answer(folder, name)
    held = next(r.busy_ns for r in found.ladder if r.rung == "mutex_held")
    assert held == pytest.approx(measured, rel=0.01, abs=50_000 * len(found.partitions))
