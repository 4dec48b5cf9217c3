"""Counter reports through the vendor's reader; left out where its package is not installed."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import ncu_files
import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.counters import LAUNCHES, VALUES
from nvprof_tools.sources import ncu_blocks, ncu_report, ncu_report_worker
from nvprof_tools.sources.ncu import read_counters, read_instances, sniff
from nvprof_tools.sources.ncu_rows import value_table

package: Any = pytest.importorskip("ncu_report")

TIME = "gpu__time_duration.sum"
RENAMED_UNITS = {"derived__memory_l2_theoretical_sectors_global_excessive", "idc__requests.sum"}
"""The package, newer than the ncu that printed the pages, has another word for the unit of these."""


@pytest.fixture
def launches(tmp_path: Path) -> Path:
    return ncu_files.unpack("p9_launches.ncu-rep", tmp_path)


@pytest.fixture
def sections(tmp_path: Path) -> Path:
    return ncu_files.unpack("p9_sections.ncu-rep", tmp_path)


def actions(path: Path) -> list[Any]:
    """Every launch as the package itself gives it."""
    context = package.load_report(str(path))
    ranges = [context.range_by_idx(i) for i in range(context.num_ranges())]
    return [r.action_by_idx(i) for r in ranges for i in range(r.num_actions())]


def test_the_49_launches_read_the_same_from_all_three(launches: Path, tmp_path: Path) -> None:
    """Report, raw page and details page of the same run: equal within what the pages print."""
    report = read_counters([launches])
    raw = read_counters([ncu_files.unpack("p9_launches.raw.csv", tmp_path)])
    details = read_counters([ncu_files.unpack("p9_launches.details.csv", tmp_path)])
    assert len(report) == len(raw) == len(details) == 49
    assert report.source.kind == "ncu-report"
    for name in LAUNCHES.schema.names:
        if name in {"signature", "mangled"}:
            continue  # the pages spell names their own way
        assert report.launches.column(name).to_pylist() == raw.launches.column(name).to_pylist(), name
        assert report.launches.column(name).to_pylist() == details.launches.column(name).to_pylist(), name
    exact = {(r["launch"], r["metric"]): r for r in report.values.to_pylist()}
    # The report's fixture was reduced by the PM-sampling metrics; p9_sections has them.
    of_raw = {(r["launch"], r["metric"]): r for r in raw.values.to_pylist() if "Triage" not in r["metric"]}
    assert of_raw.keys() == exact.keys()
    for key, (unit, cell) in ncu_files.raw_cells("p9_launches.raw.csv").items():
        if key not in exact:
            continue
        found, same = of_raw[key], exact[key]
        assert found["text"] == same["text"]
        assert found["unit"] == same["unit"] or key[1] in RENAMED_UNITS
        if found["value"] is not None:
            slack = float(ncu_files.printed(cell, unit)[2]) * (1 + 1e-9)
            assert abs(found["value"] - same["value"]) <= slack + 1e-12 * abs(same["value"]), (found, same)
    half_of = ncu_files.details_halves("p9_launches.details.csv")
    compared = 0
    for found in details.values.to_pylist():
        if (found["launch"], found["metric"]) not in exact:
            assert "/" in found["metric"]
            continue
        same = exact[found["launch"], found["metric"]]
        assert (found["unit"], found["text"]) == (same["unit"], same["text"])
        if found["value"] is not None:
            slack = half_of(found["launch"], found["unit"], found["value"])
            assert abs(found["value"] - same["value"]) <= float(slack) * (1 + 1e-9), (found, same)
            compared += 1
    assert compared > 49 * 70


def test_every_scalar_is_the_packages_own(sections: Path) -> None:
    table = read_counters([sections])
    got = {(r["launch"], r["metric"]): r for r in table.values.to_pylist()}
    expected = 0
    for number, action in enumerate(actions(sections)):
        for name in action.metric_names():
            value = action.metric_by_name(name).value()
            lacking = value in {None, ""} or value != value or not action.metric_by_name(name).has_value()  # noqa: PLR0124
            if name.startswith(("breakdown:", "group:")) or lacking:
                assert (number, name) not in got
                continue
            expected += 1
            found = got[number, name]
            assert (found["text"] or found["value"]) == (value if isinstance(value, str) else value or 0.0)
    assert expected == table.values.num_rows > 4_000
    assert table.launches.schema.equals(LAUNCHES.schema)
    assert table.values.schema.equals(VALUES.schema)


def test_launch_facts(sections: Path) -> None:
    first, second = read_counters([sections]).launches.to_pylist()
    assert (first["kernel"], second["kernel"]) == ("_GS_NTT", "batch_addition")
    assert first["mangled"].startswith("_Z7_GS_NTTILi1EN9bls12_3814fr_tEE")
    assert first["signature"].startswith("void _GS_NTT<(int)1, bls12_381::fr_t>(")
    assert [first[c] for c in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")] == [4096, 1, 1, 64, 1, 1]
    assert (first["process"], first["device"], first["context"], first["stream"]) == (1393, 0, 1, 14)
    assert first["nvtx"] == "ntt_msm_h"


def test_the_smaller_copy_says_the_same(sections: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A large report is read from a copy without its sections; the answer is the whole report's."""
    assert sections.stat().st_size > ncu_report.SMALL
    quick, _ = ncu_report.read(sections, DEFAULT_LIMITS)
    monkeypatch.setattr(ncu_report, "SMALL", 1 << 60)
    whole, _ = ncu_report.read(sections, DEFAULT_LIMITS)
    assert value_table(quick).equals(value_table(whole))
    assert [(x.mangled, x.nvtx, x.grid) for x in quick.launches] == [
        (x.mangled, x.nvtx, x.grid) for x in whole.launches
    ]
    copy = tmp_path / "copy"
    with copy.open("wb", buffering=0) as file:
        assert ncu_blocks.write_slim(sections, file.fileno())
    assert copy.stat().st_size < 0.8 * sections.stat().st_size
    assert ncu_blocks.read_frame(copy) == ncu_blocks.read_frame(sections)


def test_a_copy_that_differs_is_not_used(sections: Path, launches: Path) -> None:
    whole, other = (package.load_report(str(p)) for p in (sections, launches))
    assert ncu_report_worker._trusted(whole, other) is whole
    assert ncu_report_worker._trusted(whole, package.load_report(str(sections))) is not whole


def test_parts_add_up(launches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many workers share a report, the answer is one."""
    expected, _ = ncu_report.read(launches, DEFAULT_LIMITS)
    monkeypatch.setattr(ncu_report, "BYTES_A_WORKER", launches.stat().st_size // 4)
    found, _ = ncu_report.read(launches, DEFAULT_LIMITS)
    assert [x.launch_index for x in found.launches] == list(range(49))
    assert value_table(found).equals(value_table(expected))


def test_values_by_instance(sections: Path) -> None:
    table = read_instances(sections, ["sass__inst_executed_per_opcode", "inst_executed", "not a metric"])
    table.validate(full=True)
    rows = table.to_pylist()
    for number, action in enumerate(actions(sections)):
        for name in ("sass__inst_executed_per_opcode", "inst_executed"):
            metric = action.metric_by_name(name)
            mine = [r for r in rows if r["launch_index"] == number and r["metric"] == name]
            assert len(mine) == metric.num_instances() > 5
            assert [r["value"] for r in mine] == [float(metric.value(i)) for i in range(len(mine))]
            ids = metric.correlation_ids()
            key = "label" if name.startswith("sass") else "id"
            assert [r[key] for r in mine] == [ids.value(i) for i in range(len(mine))]
            assert sum(r["value"] for r in mine) == pytest.approx(float(metric.value()))
    held = {r["metric"]: r["instances"] for r in read_counters([sections]).values.to_pylist() if r["launch"] == 0}
    assert held["inst_executed"] == sum(r["launch_index"] == 0 and r["metric"] == "inst_executed" for r in rows)


def test_no_instances_is_an_empty_table(launches: Path) -> None:
    assert read_instances(launches, ["no such metric"]).num_rows == 0


def test_reports_are_known_by_their_content(launches: Path, tmp_path: Path) -> None:
    assert sniff(launches) == "report"
    renamed = launches.rename(tmp_path / "page.csv")
    assert sniff(renamed) == "report"


@pytest.mark.parametrize("content", [b"NVR\0", b"NVR\0" + b"\xff" * 64, b"NVR\0\x02\0\0\0\x08\x07"])
def test_reports_without_a_launch(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        read_counters([path])
    assert caught.value.slug == "ncu-report-damaged"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_report_says_so(launches: Path, share: float) -> None:
    data = launches.read_bytes()
    launches.write_bytes(data[: int(len(data) * share)])
    try:
        table = read_counters([launches])
    except SourceError as error:
        assert error.slug == "ncu-report-damaged"
        return
    assert len(table) < 49 or share > 0.99
    assert "ncu-report-truncated" in {item.slug for item in table.quality}


def test_a_worker_that_takes_too_long(sections: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_counters([sections], replace(DEFAULT_LIMITS, read_seconds=0.001))
    assert caught.value.slug == "limit-time"


def test_a_worker_that_dies(sections: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No address space left: whatever the native library then does, it is one error."""
    monkeypatch.setattr(ncu_report, "GIB", 0)
    monkeypatch.setattr(ncu_report, "MEMORY_A_BYTE", 3)
    with pytest.raises(SourceError) as caught:
        read_counters([sections])
    assert caught.value.slug in {"ncu-report-damaged", "ncu-report-missing"}


def test_the_report_is_not_touched(sections: Path) -> None:
    before = sections.read_bytes(), sections.stat().st_mtime_ns
    read_counters([sections])
    assert (sections.read_bytes(), sections.stat().st_mtime_ns) == before


def test_numbers_are_decimal(sections: Path) -> None:
    """A guard of the guard: the helper's halves are what the page prints."""
    assert ncu_files.printed("106.30", "us") == ("ns", Decimal("106300.00"), Decimal("5.0"))
    assert math.isclose(float(read_counters([sections]).metric(TIME)[1]), 106304.0)
