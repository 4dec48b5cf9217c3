"""``batch`` from the outside: a dataset by run, failures that do not stop it, a stop that does not lose it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import dataset

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.cli.main import run
from nvprof_tools.fleet import pool
from nvprof_tools.fleet.one import attribute_run
from nvprof_tools.fleet.runs import Run
from tests.fixture_files import fixture_log, fixture_trace

COMMAND = [sys.executable, "-c", "from nvprof_tools.cli.main import main\nif __name__ == '__main__': main()"]
FIXTURE = "p9_gw2"


def fleet(folder: Path, runs: int) -> Path:
    for i in range(runs):
        own = folder / f"node{i % 2}" / f"night{i}"
        own.mkdir(parents=True)
        os.link(fixture_trace(FIXTURE), own / "trace.sqlite")
        shutil.copy(fixture_log(FIXTURE), own / "app.log")
    return folder


def quietly(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def batch(folder: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "batch", str(folder), "-o", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_batch(tmp_path: Path) -> None:
    folder, out = fleet(tmp_path / "fleet", 3), tmp_path / "out"
    (folder / "node1" / "broken").mkdir()
    (folder / "node1" / "broken" / "trace.sqlite").write_bytes(fixture_trace(FIXTURE).read_bytes()[:9000])
    done = batch(folder, out, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "4 runs: 3 attributed, 1 failed" in done.stdout
    assert "node1/broken: database-truncated" in done.stdout
    expected, _ = attribute_files(fixture_trace(FIXTURE), log=fixture_log(FIXTURE))
    rows = dataset.dataset(out / "device_segments", partitioning="hive").to_table()
    assert set(rows["run"].to_pylist()) == {"node0~night0", "node1~night1", "node0~night2"}
    one = rows.filter(pa.compute.equal(rows["run"], "node0~night2")).drop_columns("run")
    assert one.to_pylist() == expected.device_segments.to_pylist()
    ladder = dataset.dataset(out / "ladder", partitioning="hive").to_table().to_pylist()
    assert [row["busy_ns"] for row in ladder if row["run"] == "node0~night0"] == [r.busy_ns for r in expected.ladder]
    rolled = json.loads((out / "rollup.json").read_text())
    assert [f["run"] for f in rolled["failures"]] == ["node1/broken"]
    assert rolled["runs"] == 4

    # What is done is not done again; what failed is; and then --strict is content.
    before = {p.name: p.stat().st_mtime_ns for p in (out / "runs").iterdir()}
    shutil.copy(fixture_trace(FIXTURE), folder / "node1" / "broken" / "trace.sqlite")
    again = batch(folder, out, "--workers", "1", "--strict")
    assert again.returncode == 0, again.stderr
    changed = {p.name for p in (out / "runs").iterdir() if p.stat().st_mtime_ns != before.get(p.name)}
    assert changed == {"node1~broken.json"}


def test_a_batch_that_is_killed_goes_on(tmp_path: Path) -> None:
    folder, out = fleet(tmp_path / "fleet", 6), tmp_path / "out"
    command = [*COMMAND, "batch", str(folder), "-o", str(out), "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        until = time.monotonic() + 120
        while not list((out / "runs").glob("*.json")) and started.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        started.send_signal(signal.SIGKILL)
    kept = {p.name: p.stat().st_mtime_ns for p in (out / "runs").glob("*.json")}
    assert kept
    done = batch(folder, out, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "6 runs: 6 attributed, 0 failed" in done.stdout
    assert all((out / "runs" / name).stat().st_mtime_ns == at for name, at in kept.items())
    assert len(dataset.dataset(out / "overheads", partitioning="hive").to_table().group_by("run").aggregate([])) == 6


def test_an_interrupt_from_the_terminal(tmp_path: Path) -> None:
    """It reaches all processes at once; one line says how to go on, and nothing is left running."""
    folder, out = fleet(tmp_path / "fleet", 12), tmp_path / "out"
    command = [*COMMAND, "batch", str(folder), "-o", str(out), "--workers", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        until = time.monotonic() + 120
        while not list((out / "runs").glob("*.json")) and started.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(started.pid, signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "interrupted: what is done is kept, run the same command to go on" in said.splitlines()
    assert "Traceback" not in said
    until = time.monotonic() + 20
    with pytest.raises(ProcessLookupError):  # the last of its helpers end a moment later
        while time.monotonic() < until:
            os.killpg(started.pid, 0)
            time.sleep(0.05)


def test_rows_of_a_run_whose_trace_broke_are_dropped(tmp_path: Path) -> None:
    trace, out = tmp_path / "t.sqlite", tmp_path / "out"
    shutil.copy(fixture_trace(FIXTURE), trace)
    assert attribute_run(Run("t", "", trace, None), out, {}).done
    trace.write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    broken = attribute_run(Run("t", "", trace, None), out, {})
    assert broken.slug == "database-corrupt"
    assert list(out.rglob("*.parquet")) == []


def test_options_reach_the_runs(tmp_path: Path) -> None:
    lost = attribute_run(Run("t", "", fixture_trace(FIXTURE), None), tmp_path, {"limits": "rows=10"})
    assert lost.slug == "limit-rows"
    assert attribute_run(Run("t", "", fixture_trace(FIXTURE), None), tmp_path, {"device": 9}).slug == "unknown-device"


def test_a_worker_that_dies_is_a_failed_run(tmp_path: Path) -> None:
    lost = pool._lost(tmp_path, Run("t", "", tmp_path / "t.sqlite", None), {}, RuntimeError("killed\nby the system"))
    assert (lost.slug, lost.message) == ("worker-failed", "its worker failed: RuntimeError: killed")


def test_nobody_at_the_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["batch", str(fleet(tmp_path / "f", 1)), "-o", str(tmp_path / "o"), "--scheduler", "nowhere://x:1"])
    assert code == 2
    assert "error[scheduler-unreachable]" in capsys.readouterr().err


def test_a_cluster_that_is_there(tmp_path: Path) -> None:
    """Without workers it is said; with one the work is done; nothing of the cluster is ours to end."""
    folder, out, known = fleet(tmp_path / "fleet", 2), tmp_path / "out", tmp_path / "scheduler.json"
    asked = "import sys; from nvprof_tools.fleet import pool; from nvprof_tools.cli.main import run; "
    asked += "pool.WORKERS_SECONDS = 1; sys.exit(run(['batch', *sys.argv[1:]]))"
    head_of = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    with quietly([*head_of, "--no-dashboard", "--scheduler-file", str(known)], tmp_path) as head:
        try:
            until = time.monotonic() + 60
            while not known.exists() and time.monotonic() < until:
                time.sleep(0.05)
            address = json.loads(known.read_text())["address"]
            command = [sys.executable, "-c", asked, str(folder), "-o", str(out), "--scheduler", address]
            alone = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert alone.returncode == 3
            assert "error[no-workers]" in alone.stderr
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
            with quietly([*worker, "--no-nanny"], tmp_path) as hand:
                done = batch(folder, out, "--scheduler", address)
                assert done.returncode == 0, done.stderr
                assert "2 runs: 2 attributed, 0 failed" in done.stdout
                assert head.poll() is None
                assert hand.poll() is None
                hand.terminate()
        finally:
            head.terminate()


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run(["batch", str(fleet(tmp_path / "f", 1)), "-o", str(tmp_path / "o")]) == 3
    assert "pip install 'nvprof-tools[fleet]'" in capsys.readouterr().err


def test_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", str(tmp_path / "*.sqlite"), "-o", str(tmp_path / "o")]) == 2
    assert "error[no-runs]" in capsys.readouterr().err
