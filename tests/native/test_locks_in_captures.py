"""Lock waits without nsys: the preload library's ranges go through the collector's NVTX part into its file, and its
reader has them as waits, holds and the driver's own locks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nvprof_tools.capture import collector
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.normalise import load_trace
from nvtx_markers import conventions
from tests.native.conftest import Kit

pytestmark = pytest.mark.skipif(collector.library({}) is None, reason="the collector is not built")


def captured(kit: Kit, command: list[str | Path], folder: Path) -> Trace:
    """What the collector wrote of a run with the preload library."""
    folder.mkdir()
    library = collector.library({})
    assert library is not None
    plain = kit.run(command, preload=[], tool=False)
    run = kit.run(command, env=collector.environment(library, folder, {}), tool=False)
    assert (run.code, run.out) == (plain.code, plain.out)
    return load_trace(folder)


def ranges(trace: Trace) -> Counter[str]:
    table = trace["nvtx_ranges"]
    pairs = zip(table["domain"].to_pylist(), table["name"].to_pylist(), strict=True)
    return Counter(name for domain, name in pairs if domain == conventions.DOMAIN)


def test_waits_and_holds_of_the_program_s_mutexes(kit: Kit, scenario: Path, tmp_path: Path) -> None:
    trace = captured(kit, [scenario, "contend"], tmp_path / "capture")
    found = ranges(trace)
    assert found[conventions.WAIT_RANGE] > 0
    assert found[conventions.HELD_RANGE] > 0
    assert trace["nvtx_ranges"].num_rows == trace["nvtx_ranges"]["payload"].null_count + sum(
        found[name] for name in (conventions.WAIT_RANGE, conventions.HELD_RANGE)
    )
    assert set(trace["nvtx_ranges"]["category"].to_pylist()) >= {"mutex_wait", "mutex_held"}
    assert trace.session.utc_epoch_ns is not None
    assert not [i for i in trace.quality if i.slug in {"capture-truncated", "capture-unfinished", "records-dropped"}]


def test_waits_inside_the_driver(kit: Kit, scenario: Path, tmp_path: Path) -> None:
    trace = captured(kit, [scenario, "driver"], tmp_path / "capture")
    assert 2 <= ranges(trace)[conventions.DRIVER_LOCK_RANGE] <= 6


def test_the_log_s_lines_arrive_as_marks(kit: Kit, scenario: Path, tmp_path: Path) -> None:
    trace = captured(kit, [scenario, "lines"], tmp_path / "capture")
    marks = [name for name in trace["nvtx_marks"]["name"].to_pylist() if name.startswith("TIMELINE,1,WHOLE,job,")]
    assert len(marks) == 1
