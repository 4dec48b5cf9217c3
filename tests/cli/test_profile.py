"""``profile`` whole, with stand-ins for nsys and ncu that replay recorded output and fail in every listed way."""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from nvprof_tools.cli.main import run
from tests.fixture_files import ROOT, fixture_log

STAND_INS = Path(__file__).resolve().parents[1] / "capture_stand_ins"
LOG = fixture_log("prover_two_workers")
TRACE = ROOT / "traces" / "prover_two_workers" / "trace.sqlite.xz"
STDOUT = b"first words, \xff no text, no newline at the end"


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(STAND_INS), str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("NVPROF_TOOLS_ONLY_PATH", "1")
    monkeypatch.setenv("NVPROF_TOOLS_COLLECTOR", "0")
    monkeypatch.setenv("NSYS_RECORDED", str(TRACE))
    monkeypatch.setenv("A_SECRET", "do-not-keep-this")


def profile(folder: Path, *options: str, command: Sequence[str] = ("program", str(LOG))) -> int:
    return run(["profile", "-o", str(folder), *options, "--", *command])


def document(folder: Path, name: str = "attribution.json") -> dict:
    return json.loads((folder / name).read_text("utf-8"))


def slugs(folder: Path) -> set[str]:
    return {item["slug"] for item in document(folder)["quality"]}


def test_one_command_from_a_program_to_its_report(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = tmp_path / "run"
    assert profile(folder) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(STDOUT)
    assert b"Utilisation ladder" in out
    assert LOG.read_bytes() in err or all(line in err for line in LOG.read_bytes().splitlines())
    assert (folder / "stdout.log").read_bytes() == STDOUT
    assert (folder / "stderr.log").read_bytes() == LOG.read_bytes()
    lines = (folder / "app.log").read_bytes().splitlines()
    assert sorted(lines) == sorted([*LOG.read_bytes().splitlines(), STDOUT])
    found = document(folder)
    assert len(found["partitions"]) == 10
    assert found["clock"]["method"] == "marks"
    assert b"<html" in (folder / "report.html").read_bytes()
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


def test_the_manifest_says_what_was_run_and_keeps_no_environment(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    profile(folder, "--metrics", "--expect", "100")
    manifest = document(folder, "manifest.json")
    assert manifest["command"] == ["program", str(LOG)]
    assert (manifest["exit_code"], manifest["failure"], manifest["environment"]) == (0, None, None)
    assert manifest["nsys"]["version"] == "2025.3.2.0"
    assert "--gpu-metrics-devices=all" in manifest["nsys"]["options"]
    assert "--gpu-metrics-frequency=5000" in manifest["nsys"]["options"]
    assert manifest["wall_ns"] > 0
    assert {"app.log", "trace.sqlite", "trace.nsys-rep", "report.html"} <= set(manifest["files"])
    for path in folder.rglob("*"):
        assert not path.is_file() or b"do-not-keep-this" not in path.read_bytes(), path


def test_the_environment_is_kept_when_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    profile(folder, "--keep-environment")
    manifest = document(folder, "manifest.json")
    assert manifest["environment"]["A_SECRET"] == "do-not-keep-this"
    assert "--discard-environment=true" not in manifest["nsys"]["options"]


@pytest.mark.parametrize(("end", "code", "kept"), [("3", 3, 3), ("kill", 137, -9)])
def test_a_program_that_fails_is_reported_and_its_code_passed_on(
    tmp_path: Path, end: str, code: int, kept: int
) -> None:
    folder = tmp_path / "run"
    assert profile(folder, command=("program", str(LOG), end)) == code
    assert "program-failed" in slugs(folder)
    assert document(folder, "manifest.json")["exit_code"] == kept
    assert (folder / "report.html").is_file()


FAILURES = {
    "libdw": ("nsys-import-failed", "libdw1"),
    "import": ("nsys-import-failed", "trace.qdstrm"),
    "disk": ("capture-disk-full", "free some space"),
    "nothing": ("nsys-failed", "app.log"),
    "range": ("capture-empty", "the range's name"),
    "options": ("nsys-failed", "app.log"),
    "export": ("nsys-export-failed", "newer report"),
    "export-disk": ("capture-disk-full", "free some space"),
    "export-libdw": ("nsys-import-failed", "libelf1"),
}


@pytest.mark.parametrize("way", FAILURES)
def test_when_nsys_fails_its_reason_is_given_and_the_output_kept(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NSYS_FAILS", way)
    folder = tmp_path / "run"
    assert profile(folder) == 3
    slug, hint = FAILURES[way]
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith(("error[", "hint:"))]
    assert len(lines) == 2
    assert lines[0].startswith(f"error[{slug}]: ")
    assert hint in lines[1]
    assert document(folder, "manifest.json")["failure"] == slug
    assert (folder / "stderr.log").read_bytes() == (b"" if way == "options" else LOG.read_bytes())
    assert not (folder / "report.html").exists()


def test_the_program_s_own_code_wins_over_a_failure_of_nsys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NSYS_FAILS", "import")
    assert profile(tmp_path / "run", command=("program", str(LOG), "9")) == 9
    assert "error[nsys-import-failed]" in capfd.readouterr().err


def test_without_permission_for_gpu_metrics_the_run_is_made_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("NSYS_FAILS", "metrics")
    monkeypatch.setenv("NSYS_CALLS", str(calls))
    folder = tmp_path / "run"
    assert profile(folder, "--metrics") == 0
    (call,) = calls.read_text().splitlines()
    assert "gpu-metrics" not in call
    items = {item["slug"]: item for item in document(folder)["quality"]}
    assert "ERR_NVGPUCTRPERM" in items["gpu-metrics-refused"]["message"]
    assert (folder / "stderr.log").read_bytes() == LOG.read_bytes()


def test_an_nsys_that_explains_nothing_gets_the_options_all_versions_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS_FAILS", "help,version")
    folder = tmp_path / "run"
    assert profile(folder) == 0
    manifest = document(folder, "manifest.json")
    assert manifest["nsys"]["version"] is None
    assert "--cpuctxsw=none" not in manifest["nsys"]["options"]
    assert "--sample=none" in manifest["nsys"]["options"]


def test_nothing_runs_without_nsys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    only = tmp_path / "bin"
    only.mkdir()
    (only / "program").symlink_to(STAND_INS / "program")
    monkeypatch.setenv("PATH", str(only))
    assert profile(tmp_path / "run") == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert "error[nsys-missing]" in err
    assert "nvprof-tools doctor" in err
    assert not (tmp_path / "run").exists()


def test_wrong_requests_are_refused_before_anything_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert profile(tmp_path / "run", command=("no-such-program",)) == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert profile(tmp_path / "full") == 2
    assert profile(tmp_path / "range", "--capture-range", "nonsense") == 2
    err = capfd.readouterr().err
    assert "error[run-folder-exists]" in err
    assert "error[capture-range-malformed]" in err


def test_repeats_tell_what_profiling_costs(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    text = "cp $0 {run}/marker; exec program $0"
    assert profile(folder, "--repeat", "2", command=("sh", "-c", text, str(LOG))) == 0
    found = document(folder, "observer.json")
    assert [run["profiled"] for run in found["runs"]] == [False, True, False, True]
    assert [effect["figure"] for effect in found["effects"]] == ["process_ms", "window_ms", "partition_ms"]
    # All runs print the same log: what its figures say of profiling is nothing.
    assert all(effect["effect_ms"] == effect["spread_ms"] == 0 for effect in found["effects"][1:])
    assert "observer-effect" in slugs(folder)
    assert "below-observer-effect" not in slugs(folder)
    for name in ("", "repeats/plain-1", "repeats/plain-2", "repeats/profiled-2"):
        assert (folder / name / "marker").is_file(), name
    assert not list((folder / "repeats").rglob("*.nsys-rep"))


def test_a_repeat_that_fails_does_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    text = "program $0; case {run} in *plain-2) exit 1;; esac"
    assert profile(folder, "--repeat", "2", command=("sh", "-c", text, str(LOG))) == 0
    assert "repeat-failed" in slugs(folder)
    assert len(document(folder, "observer.json")["runs"]) == 3


@pytest.fixture
def p9(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The capture whose kernels have recorded counters."""
    monkeypatch.setenv("NSYS_RECORDED", str(ROOT / "traces" / "p9_gw2" / "trace.sqlite.xz"))
    page = tmp_path / "page.csv"
    page.write_bytes(lzma.decompress((ROOT / "ncu" / "p9_ten_kernels.raw.csv.xz").read_bytes()))
    monkeypatch.setenv("NCU_RECORDED", str(page))
    return fixture_log("p9_gw2")


def test_counters_of_the_kernels_that_took_the_time(tmp_path: Path, p9: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, folder = tmp_path / "calls", tmp_path / "run"
    monkeypatch.setenv("NCU_CALLS", str(calls))
    assert profile(folder, "--counters", "--counters-kernels", "4", command=("program", str(p9))) == 0
    options = calls.read_text().splitlines()
    assert "--clock-control=none" in options
    assert "--launch-count=3" in options
    assert "--filter-mode=per-launch-config" in options
    (kernels,) = [option for option in options if option.startswith("--kernel-name=")]
    assert kernels.count("|") == 3
    assert document(folder)["counters"]
    assert document(folder, "manifest.json")["ncu"]["version"] == "2025.3.1.0"


@pytest.mark.parametrize(
    ("way", "slug"),
    [
        ("permission", "counters-not-permitted"),
        ("page", "counters-failed"),
        ("missing", "ncu-missing"),
    ],
)
def test_without_counters_the_rest_of_the_report_stands(
    tmp_path: Path, p9: Path, monkeypatch: pytest.MonkeyPatch, way: str, slug: str
) -> None:
    monkeypatch.setenv("NCU_FAILS", way)
    if way == "missing":
        only = tmp_path / "bin"
        only.mkdir()
        for name in ("nsys", "program"):
            (only / name).symlink_to(STAND_INS / name)
        (only / "python3").symlink_to(sys.executable)
        monkeypatch.setenv("PATH", str(only))
    folder = tmp_path / "run"
    assert profile(folder, "--counters", command=("program", str(p9))) == 0
    assert slug in slugs(folder)
    assert document(folder)["counters"] == []
    assert len(document(folder)["partitions"]) == 10


def test_signals_reach_the_program_and_the_report_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ["profile", "-o", str(folder), "--", "program", str(LOG), "wait"]
    start = "from nvprof_tools.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parents[2],
    )
    ready = folder / "stderr.log"
    deadline = time.monotonic() + 60
    while not (ready.is_file() and b"ready" in ready.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 7
    assert document(folder, "manifest.json")["exit_code"] == 7
    assert (folder / "report.html").is_file()


def test_a_program_that_prints_no_log_is_reported_too(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert profile(folder, command=("program", os.devnull)) == 0
    # The marks inside the capture still hold the log.
    assert len(document(folder)["partitions"]) == 10
