"""Goldens of real traces: recorded, checked, changed, cut, hidden, and the same bytes wherever they are recorded."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.cli.golden_forms import forms
from nvprof_tools.golden import manifest
from nvprof_tools.golden import record as recording
from nvprof_tools.golden.check import against, check
from nvprof_tools.golden.diff import event_lines
from nvprof_tools.golden.recompute import pipeline_of, recompute
from nvprof_tools.golden.record import Request, record, update
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import Trace
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.report.json_doc import document
from nvprof_tools.sources.arrow_dir import write_tables
from nvprof_tools.sources.timeline_log import read_log
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_log, fixture_trace
from tests.golden.generated import generated
from tests.golden.planted import one_ns, slower_pinning

ROOT = Path(__file__).resolve().parents[2]
WITH_LOG = ["p9_gw2", "p9_cut", "sim_w2"]
WITHOUT = ["torch_graph"]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """Golden directories by trace, recorded once; never changed by a test."""
    place = tmp_path_factory.mktemp("goldens")

    @cache
    def one(name: str) -> Path:
        folder = place / name.replace("/", "_")
        record(Request(fixture_trace(name), fixture_log(name) if name in WITH_LOG else None), folder, forms())
        return folder

    return one


@pytest.fixture
def copied(recorded, tmp_path: Path):
    """A copy that a test may spoil."""

    def one(name: str) -> Path:
        shutil.copytree(recorded(name), tmp_path / "golden")
        return tmp_path / "golden"

    return one


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@cache
def whole(name: str) -> tuple[Attribution, Trace]:
    return attribute_files(fixture_trace(name), log=fixture_log(name) if name in WITH_LOG else None)


# --- record and check ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*WITH_LOG, *WITHOUT])
def test_a_golden_checks_out_and_holds_the_whole_attribution(recorded, name: str) -> None:
    folder = recorded(name)
    result = check(folder, forms())
    assert result.lines() == []
    assert result.passed
    found, _ = whole(name)
    kept, _ = recompute(folder)
    before, after = document(found), document(kept)
    for key in before:
        if key not in {"inputs", "quality"}:  # the log is written anew, and the profiler's own words are gone
            assert after[key] == before[key], key
    assert kept.section_segments.equals(found.section_segments)
    assert kept.device_segments.equals(found.device_segments)
    assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) < 500_000


def test_ten_partitions_of_fifty_thousand_events_fit(tmp_path: Path) -> None:
    trace = generated(3, steps=5, launches=2_490)
    assert sum(len(t) for t in trace.tables.values()) >= 49_800
    write_tables(trace, tmp_path / "trace")
    assert record(Request(tmp_path / "trace"), tmp_path / "golden", forms()) < 500_000


def test_the_expected_document_keeps_its_schema(recorded) -> None:
    import jsonschema

    schema = json.loads((ROOT / "nvprof_tools" / "report" / "attribution.schema.json").read_text())
    for name in ("p9_gw2", "torch_graph"):
        jsonschema.validate(json.loads((recorded(name) / manifest.EXPECTED).read_bytes()), schema)


@pytest.mark.parametrize("name", ["sim_w2"])
def test_the_same_bytes_under_other_hash_seeds_time_zones_locales_and_folders(
    tmp_path: Path, recorded, name: str
) -> None:
    log = ["--log", str(fixture_log(name))] if name in WITH_LOG else []
    for i, extra in enumerate(
        (
            {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"},
            {"PYTHONHASHSEED": "4242", "TZ": "America/Los_Angeles", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"},
        )
    ):
        place = tmp_path / str(i)
        place.mkdir()
        code = "from nvprof_tools.cli.main import main; main()"
        command = [sys.executable, "-c", code, "golden", "record", str(fixture_trace(name)), *log, "-o", "golden"]
        subprocess.run(command, cwd=place, env={**os.environ, **extra}, check=True, capture_output=True)
        assert contents(place / "golden") == contents(recorded(name))


# --- what is caught --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p9_gw2", "torch_graph"])
def test_a_flipped_bit_in_any_file_is_caught(copied, name: str) -> None:
    folder = copied(name)
    rng = random.Random(5)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        good = path.read_bytes()
        if not good:
            continue
        spoilt = bytearray(good)
        spoilt[rng.randrange(len(good))] ^= 1 << rng.randrange(7)
        path.write_bytes(bytes(spoilt))
        result = check(folder, forms())
        assert not result.passed, path.name
        assert result.error is not None
        assert result.error.slug in {"golden-changed", "golden-damaged", "golden-version"}
        path.write_bytes(good)
    assert check(folder, forms()).passed


def test_a_missing_and_a_stray_file_are_named(copied) -> None:
    folder = copied("sim_w2")
    (folder / "tables" / "kernels.parquet").rename(folder / "tables" / "grains.parquet")
    result = check(folder, forms())
    assert result.error is not None
    assert "tables/grains.parquet, tables/kernels.parquet" in result.error.message


def test_one_nanosecond_in_one_event_is_caught(recorded) -> None:
    """By the figures or the segments where the event shows in them; else by the event itself."""
    folder = recorded("sim_w2")
    _, kept = recompute(folder)
    known = manifest.read(folder)
    pipeline = pipeline_of(folder, known)
    log = read_log(folder / manifest.LOG, pipeline)
    rng = random.Random(3)
    for table in ("kernels", "api_calls", "nvtx_ranges", "os_calls", "copies"):
        row = rng.randrange(len(kept[table]))
        moved = one_ns(kept, table, row)
        found = attribute(moved, log, (pipeline,), Options())
        lines = against(folder, known, found, kept, forms()).lines() or list(event_lines(kept, moved))
        assert lines


def test_a_change_reads_like_a_report(recorded) -> None:
    folder = recorded("p9_gw2")
    found, kept = recompute(folder)
    slower = attribute(
        slower_pinning(kept, 1.5), read_log(folder / manifest.LOG, load_pipeline("cuzk")), (load_pipeline("cuzk"),)
    )
    lines = against(folder, manifest.read(folder), slower, kept, forms()).lines()
    third = found.partitions[2]
    before = third.categories["host_register"]
    after = slower.partitions[2].categories["host_register"]
    own = next(line for line in lines if line.startswith(f"partition {third.job}/{third.partition}:"))
    assert f"host_register {before / 1e6:,.6f} -> {after / 1e6:,.6f} ms ({(after - before) / 1e6:+,.6f})" in own
    assert after == pytest.approx(1.5 * before, rel=1e-4)
    assert len(lines) < 62
    rows = zip(found.section_segments.to_pylist(), slower.section_segments.to_pylist(), strict=False)
    expected, actual = next((a, b) for a, b in rows if a != b)
    assert lines[-1].startswith(f"first differing section segment: expected {expected['category']}")
    assert f"from {expected['start_ns']:,} to {expected['end_ns']:,} ns, found {actual['category']}" in lines[-1]


def test_update_rewrites_what_is_expected_and_keeps_the_rest(copied, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("p9_gw2")
    (folder / "budget.toml").write_text('[budget]\nhost_register = "< 50 %"\n')
    text = (folder / manifest.FILE).read_text()
    (folder / manifest.FILE).write_text(text.replace("[tolerances]\n", '[tolerances]\n"gaps.*" = "ignore"\n'))
    before = contents(folder)
    true = recording.attributed

    def changed(place: Path, known: manifest.Manifest, limits: object = None) -> tuple[Attribution, Trace]:
        found, trace = true(place, known)
        views = tuple(replace(v, name="another board") for v in found.devices)
        return replace(found, devices=views), trace

    monkeypatch.setattr("nvprof_tools.golden.check.attributed", changed)
    monkeypatch.setattr("nvprof_tools.golden.record.attributed", changed)
    result = check(folder, forms())
    assert result.lines()[0] == "device 0: name 'NVIDIA H200' -> 'another board'"
    update(folder, forms())
    assert check(folder, forms()).passed
    after = contents(folder)
    moved = {name for name in before if before[name] != after[name]}
    assert before.keys() == after.keys()
    assert moved == {manifest.EXPECTED, manifest.PAGE, manifest.FILE}
    assert '"gaps.*" = "ignore"' in after[manifest.FILE].decode()


def test_tolerances_let_figures_move_and_no_further(copied, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("p9_gw2")
    true = recording.attributed

    def moved(place: Path, known: manifest.Manifest, limits: object = None) -> tuple[Attribution, Trace]:
        found, trace = true(place, known)
        first, *rest = found.ladder
        return replace(found, ladder=(replace(first, fraction=(first.fraction or 0) + 0.001), *rest)), trace

    monkeypatch.setattr("nvprof_tools.golden.check.attributed", moved)
    assert check(folder, forms()).lines()[0].startswith("ladder 0.timeline_sum: fraction ")
    text = (folder / manifest.FILE).read_text()
    for limit, passes in (("{ points = 0.2 }", True), ("{ points = 0.05 }", False), ('{ share = "1 %" }', True)):
        (folder / manifest.FILE).write_text(text.replace("[tolerances]\n", f'[tolerances]\n"ladder.*" = {limit}\n'))
        assert check(folder, forms()).passed is passes


def test_a_broken_budget_fails_with_one_clear_line(copied) -> None:
    folder = copied("p9_gw2")
    (folder / "budget.toml").write_text(
        '[budget]\nhost_register = "< 5 %"\nsm_active = "> 50 %"\nnvml_utilisation = "> 1 %"\n'
    )
    result = check(folder, forms())
    assert not result.passed
    assert result.lines() == [
        "budget of host_register broken: 5.25 % of the sections, asked for < 5 %",
        "budget of nvml_utilisation broken: not measured, asked for > 1 %",
    ]


# --- cut and hidden --------------------------------------------------------------------------------------------------


def test_a_window_keeps_its_sections_and_little_else(tmp_path: Path, recorded) -> None:
    found, _ = whole("p9_gw2")
    start = found.window.start_ns + found.window.wall_ns // 3
    window = f"{start}:{start + found.window.wall_ns // 5}"
    size = record(Request(fixture_trace("p9_gw2"), fixture_log("p9_gw2"), window=window), tmp_path / "cut", forms())
    assert size < sum(p.stat().st_size for p in recorded("p9_gw2").rglob("*") if p.is_file())
    kept, trace = recompute(tmp_path / "cut")
    plain, full = attribute_files(fixture_trace("p9_gw2"), log=fixture_log("p9_gw2"), window=window)
    assert kept.window == plain.window
    inside = {(p.job, p.partition): p for p in plain.partitions if p.section is not None}
    again = {(p.job, p.partition): p for p in kept.partitions if p.section is not None}
    assert again.keys() == inside.keys()
    for key, p in inside.items():
        assert again[key].categories == p.categories
        assert (again[key].start_ns, again[key].end_ns) == (p.start_ns, p.end_ns)
    assert [d.categories for d in kept.devices] == [d.categories for d in plain.devices]
    assert len(trace["kernels"]) < len(full["kernels"]) / 2


def test_a_job_keeps_its_own_partitions(tmp_path: Path) -> None:
    found, _ = whole("p9_gw2")
    job = found.jobs[1].job
    assert job is not None
    record(Request(fixture_trace("p9_gw2"), fixture_log("p9_gw2"), jobs=(job,)), tmp_path / "job", forms())
    kept, _ = recompute(tmp_path / "job")
    own = {p.partition: p.categories for p in kept.partitions if p.job == job}
    assert own == {p.partition: p.categories for p in found.partitions if p.job == job}
    assert check(tmp_path / "job", forms()).passed


def test_hidden_kernel_names_are_nowhere_and_every_figure_stays(tmp_path: Path) -> None:
    folder = tmp_path / "hidden"
    record(Request(fixture_trace("p9_gw2"), fixture_log("p9_gw2"), hash_kernels=True), folder, forms())
    found, trace = whole("p9_gw2")
    kept, hidden = recompute(folder)
    names = set(trace["kernels"]["name"].to_pylist())
    assert not names & set(hidden["kernels"]["name"].to_pylist())
    text = b"".join(contents(folder).values())
    for name in names - {"sort"}:  # also a common word
        assert name.encode() not in text
    assert [d.stages for d in kept.devices] == [d.stages for d in found.devices]
    assert [p.categories for p in kept.partitions] == [p.categories for p in found.partitions]
    assert check(folder, forms()).passed


def test_the_record_of_a_golden_is_that_golden(tmp_path: Path, recorded) -> None:
    """Tables written again come out the same: nothing is lost or added on the way."""
    folder = recorded("sim_w2")
    trace = load_trace(folder / manifest.TABLES)
    write_tables(trace, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(folder / manifest.TABLES)
