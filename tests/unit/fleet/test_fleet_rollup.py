"""Groups, outliers and failures of a batch, from its runs' summaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nvprof_tools.fleet import ledger
from nvprof_tools.fleet.batch import document
from nvprof_tools.fleet.ledger import RunResult
from nvprof_tools.fleet.rollup import outliers, roll_up, table
from nvprof_tools.fleet.runs import Run


def outcome(name: str, **figures: Any) -> RunResult:
    summary = {"day": "2026-01-01", "pipeline": "p", "kernel_busy": 0.5, "ns_a_partition": 100, "wall_ns": 1000}
    return RunResult(name, name.partition("/")[0], "id", {**summary, "data_loss": 0, **figures})


def failed(name: str) -> RunResult:
    return RunResult(name, name.partition("/")[0], "id", None, "database-corrupt", "it is damaged", "export it again")


def test_groups_by_node_and_day() -> None:
    runs = [
        outcome("n1/a", kernel_busy=0.4),
        outcome("n1/b", kernel_busy=0.6, data_loss=2),
        outcome("n2/a", day="2026-01-02", kernel_busy=None),
        failed("n2/b"),
    ]
    rolled = roll_up(runs)
    assert {(g.kind, g.name): (g.runs, g.failed, g.kernel_busy, g.data_loss) for g in rolled.groups} == {
        ("node", "n1"): (2, 0, 0.5, 1),
        ("node", "n2"): (2, 1, None, 0),
        ("day", ""): (1, 1, None, 0),
        ("day", "2026-01-01"): (2, 0, 0.5, 1),
        ("day", "2026-01-02"): (1, 0, None, 0),
    }
    assert [one.name for one in rolled.failures] == ["n2/b"]


def test_what_stands_apart() -> None:
    """One of ten is off by half; small steps among the others are nothing, and so is one of seven."""
    usual = [outcome(f"n/{i}", ns_a_partition=1000 + i) for i in range(9)]
    odd = outcome("n/odd", ns_a_partition=1500)
    found = outliers([*usual, odd])
    assert [(one.run, one.figure, one.value, one.median) for one in found] == [
        ("n/odd", "ns_a_partition", 1500, 1004.5)
    ]
    assert found[0].deviations == pytest.approx(495.5 / (1.4826 * 2.5))
    assert outliers([*usual[:6], odd]) == []


def test_what_is_hardly_off_does_not_stand_apart() -> None:
    equal = [outcome(f"n/{i}") for i in range(20)]
    assert outliers([*equal, outcome("n/x", ns_a_partition=101)]) == []
    found = outliers([*equal, outcome("n/x", ns_a_partition=150)])
    assert [one.run for one in found] == ["n/x"]
    body = json.loads(document(roll_up([*equal, outcome("n/x", ns_a_partition=150)])))
    assert body["outliers"][0]["deviations"] is None


def test_pipelines_are_not_compared_with_each_other() -> None:
    one = [outcome(f"a/{i}") for i in range(10)]
    other = [outcome(f"b/{i}", pipeline="q", ns_a_partition=9000) for i in range(2)]
    assert outliers([*one, *other]) == []


def test_a_row_a_run() -> None:
    rows = table([outcome("n/a"), failed("n/b")]).to_pylist()
    assert [row["run"] for row in rows] == ["n/a", "n/b"]
    assert rows[0]["slug"] is None and rows[0]["wall_ns"] == 1000
    assert rows[1]["slug"] == "database-corrupt" and rows[1]["wall_ns"] is None


def test_the_record_of_a_run(tmp_path: Path) -> None:
    for one in (outcome("n1/a"), failed("n1/b")):
        ledger.write(tmp_path, one)
        assert ledger.read(tmp_path, one.name) == one
    assert ledger.read(tmp_path, "n1/c") is None
    ledger.place(tmp_path, "n1/a").write_text('{"format": 1, "name": ')
    assert ledger.read(tmp_path, "n1/a") is None
    ledger.place(tmp_path, "n1/b").write_text('{"format": 99}')
    assert ledger.read(tmp_path, "n1/b") is None


def test_a_run_is_another_when_its_files_or_options_are(tmp_path: Path) -> None:
    trace, log = tmp_path / "t.sqlite", tmp_path / "t.log"
    trace.write_bytes(b"1")
    run = Run("t", "", trace, None)
    seen = {ledger.identity(run, {})}
    seen.add(ledger.identity(run, {"pipeline": "cuzk"}))
    trace.write_bytes(b"22")
    seen.add(ledger.identity(run, {}))
    log.write_bytes(b"x")
    seen.add(ledger.identity(Run("t", "", trace, log), {}))
    assert len(seen) == 4
