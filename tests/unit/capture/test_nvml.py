"""NVML: sampled by a thread, put on the trace's clock, a rung, a curve and a doubt."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nvprof_tools.attribution.nvml import merged, watch
from nvprof_tools.capture import nvml
from nvprof_tools.capture.nvml import Sampler
from nvprof_tools.cli.main import run
from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.attribution import MemoryUse, Window
from nvprof_tools.model.nvml import NVML_SCHEMA
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources.nvml_samples import read_nvml
from nvprof_tools.timeline.intervals import Spans, union
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_trace

MS = 1_000_000


class NVMLError(Exception):
    """As the library's."""


def library(**changes: object) -> SimpleNamespace:
    """A stand-in for pynvml with one board."""
    parts: dict[str, object] = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: b"580.1",
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda i: i,
        "nvmlDeviceGetName": lambda _: "Board",
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=50, memory=10),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=1 << 30),
        "nvmlDeviceGetClockInfo": lambda _h, _k: 1980,
        "nvmlDeviceGetPowerUsage": lambda _: 300_000,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 0x4,
    }
    return SimpleNamespace(**{**parts, **changes})


def refuse(*_: object) -> object:
    raise NVMLError("not supported")


def test_samples_are_taken_until_told_to_stop(tmp_path: Path) -> None:
    sampler = Sampler(library(), period_s=0.001)
    before = time.time_ns()
    sampler.start()
    while len(sampler._rows) < 3:
        time.sleep(0.001)
    table = sampler.stop()
    assert (sampler.missing, sampler.devices, sampler.driver) == ("", ["Board"], "580.1")
    assert table.schema == NVML_SCHEMA
    row = table.to_pylist()[0]
    assert before <= row.pop("time_utc_ns") <= time.time_ns()
    assert row == {
        "device": 0, "gpu_pct": 50, "memory_pct": 10, "used_bytes": 1 << 30, "sm_mhz": 1980, "power_mw": 300_000,
        "throttle_reasons": 4,
    }  # fmt: skip
    nvml.write(table, tmp_path / "nvml.parquet")
    assert read_nvml(tmp_path / "nvml.parquet", DEFAULT_LIMITS).equals(table)


def test_what_a_board_does_not_tell_is_null() -> None:
    silent = {name: refuse for name in vars(library()) if name.startswith("nvmlDeviceGet") and "Count" not in name}
    silent |= {"nvmlDeviceGetHandleByIndex": lambda i: i, "nvmlDeviceGetName": lambda _: "Board"}
    sampler = Sampler(library(**silent))
    row = sampler._one(0, 0)
    assert {name for name, value in row.items() if value is not None} == {"time_utc_ns", "device"}


def test_no_driver_is_said() -> None:
    sampler = Sampler(library(nvmlInit=refuse))
    sampler.start()
    assert len(sampler.stop()) == 0
    assert "not supported" in sampler.missing


def test_no_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(nvml, "import_module", absent)
    assert "pip install" in Sampler().missing


@pytest.mark.parametrize("damage", ["no parquet", "other columns", "nulls"])
def test_damaged_samples_are_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "nvml.parquet"
    if damage == "no parquet":
        path.write_bytes(b"words")
    elif damage == "other columns":
        pq.write_table(pa.table({"a": [1]}), path)
    else:
        columns = {field.name: pa.array([None], field.type) for field in NVML_SCHEMA}
        pq.write_table(pa.table(columns), path)
    with pytest.raises(SourceError) as caught:
        read_nvml(path, DEFAULT_LIMITS)
    assert caught.value.slug == "nvml-unreadable"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_trace(fixture_trace("prover_two_workers"))


def samples(trace: Trace, rows: list[tuple[int, int | None, int | None, int]], device: int = 0) -> pa.Table:
    """(ms on the trace's clock, utilisation, memory, throttle bits) as NVML has it."""
    epoch = trace.session.utc_epoch_ns
    assert epoch is not None
    return pa.Table.from_pylist(
        [
            {
                "time_utc_ns": epoch + at * MS, "device": device, "gpu_pct": busy, "memory_pct": None,
                "used_bytes": used, "sm_mhz": None, "power_mw": None, "throttle_reasons": bits,
            }
            for at, busy, used, bits in rows
        ],
        schema=NVML_SCHEMA,
    )  # fmt: skip


WINDOW = Window(0, 400 * MS, "option")


def span(low: int, high: int) -> Spans:
    import numpy as np

    return union(np.array([low * MS], np.int64), np.array([high * MS], np.int64))


def test_a_sample_tells_of_the_time_before_it(trace: Trace) -> None:
    table = samples(trace, [(100, 0, 10, 0), (200, 40, 30, 0), (300, 80, 20, 0)])
    found = watch(table, trace, WINDOW)
    rung = found.samples[0]
    assert rung.mean(span(100, 200)) == pytest.approx(40)
    assert rung.mean(span(200, 300)) == pytest.approx(80)
    assert rung.mean(span(150, 250)) == pytest.approx(60)
    assert found.memory[0] == MemoryUse(0, 30, 200 * MS, "NVML", (100 * MS, 200 * MS, 300 * MS), (10, 30, 20))
    assert found.quality == ()


def test_throttling_counts_where_it_matters(trace: Trace) -> None:
    rows = [(100, 1, 1, 0), (200, 1, 1, 0x4), (300, 1, 1, 0x1), (350, 1, 1, 0x40), (900, 1, 1, 0x4)]
    (item,) = watch(samples(trace, rows), trace, WINDOW).quality
    assert (item.slug, item.count) == ("gpu-throttled", 2)
    assert "50%" in item.message
    assert "power cap, thermal limit (hardware)" in item.message


def test_what_cannot_be_placed_is_said(trace: Trace) -> None:
    table = samples(trace, [(100, 1, 1, 0), (200, 1, 1, 0)])
    timeless = dataclasses.replace(trace, session=dataclasses.replace(trace.session, utc_epoch_ns=None))
    two = pa.concat_tables([table, samples(trace, [(100, 1, 1, 0)], device=1)])
    for answer in (watch(table, timeless, WINDOW), watch(two, trace, WINDOW)):
        assert [item.slug for item in answer.quality] == ["nvml-unplaced"]
        assert not answer.samples
    assert watch(None, trace, WINDOW) == watch(table.slice(0, 0), trace, WINDOW)


def test_nulls_are_not_zeros(trace: Trace) -> None:
    found = watch(samples(trace, [(100, None, None, 0), (200, None, None, 0)]), trace, WINDOW)
    assert not found.samples
    assert not found.memory


def test_traced_allocations_come_before_what_nvml_saw() -> None:
    traced, seen = MemoryUse(0, 5, 1, "traced"), MemoryUse(0, 9, 1, "NVML")
    unknown = MemoryUse(1, None, None, "not measured")
    assert merged([traced, unknown], {0: seen}) == [traced, unknown]
    assert merged([MemoryUse(0, None, None, "x")], {0: seen}) == [seen]


def test_samples_join_a_report_made_later(trace: Trace, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`--nvml` gives the rung that `profile` gave; without it there is none."""
    path = tmp_path / "nvml.parquet"
    pq.write_table(samples(trace, [(at, 50, 10, 0) for at in range(0, 3000, 20)]), path)
    capture = str(fixture_trace("prover_two_workers"))
    for options, expected in ((["--nvml", str(path)], 0.5), ([], None)):
        assert run(["attribute", capture, *options, "-f", "json"]) == 0
        document = json.loads(capfd.readouterr().out)
        assert {r["rung"]: r["fraction"] for r in document["ladder"]}.get("nvml_utilisation") == expected
