"""``profile --collector``: our own collector in nsys' place, with a stand-in program that leaves recorded captures."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import nvtx_markers
from nvprof_tools.cli.main import run
from nvprof_tools.limits import MIB
from nvtx_markers.library import NativeStatus
from tests.capture_from_nsys import Converter
from tests.capture_writer import Capture
from tests.fixture_files import fixture_log, fixture_trace

STAND_INS = Path(__file__).resolve().parents[1] / "capture_stand_ins"
LOG = fixture_log("prover_two_workers")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of a real run."""
    return Converter(fixture_trace("prover_two_workers")).write(tmp_path_factory.mktemp("recorded") / "capture")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: Path) -> None:
    """One without nsys, where the collector was built."""
    only = tmp_path / "bin"
    only.mkdir()
    for name in ("collected", "program"):
        (only / name).symlink_to(STAND_INS / name)
    (only / "python3").symlink_to(sys.executable)
    library = tmp_path / "libnvprof_collector.so"
    library.write_bytes(b"")
    monkeypatch.setenv("PATH", os.pathsep.join([str(only), "/usr/bin", "/bin"]))
    monkeypatch.setenv("NVPROF_TOOLS_ONLY_PATH", "1")
    monkeypatch.setenv("NVPROF_TOOLS_COLLECTOR", str(library))
    monkeypatch.setenv("COLLECTOR_RECORDED", str(recorded))
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        monkeypatch.delenv(name, raising=False)


def profile(folder: Path, *options: str, command: Sequence[str] = ("collected", str(LOG))) -> int:
    return run(["profile", "-o", str(folder), "--no-markers", "--no-nvml", *options, "--", *command])


def document(folder: Path, name: str = "attribution.json") -> dict:
    return json.loads((folder / name).read_text("utf-8"))


def slugs(folder: Path) -> set[str]:
    return {item["slug"] for item in document(folder)["quality"]}


@pytest.mark.parametrize("choice", ["auto", "cupti"])
def test_without_nsys_the_collector_records(
    choice: str, tmp_path: Path, recorded: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = tmp_path / "run"
    assert profile(folder, "--collector", choice) == 0
    out, err = capfdbinary.readouterr()
    assert b"Utilisation ladder" in out
    assert b"under the collector" in err
    manifest = document(folder, "manifest.json")
    assert (manifest["collector"], manifest["nsys"], manifest["failure"]) == ("cupti", None, None)
    assert manifest["cupti"] == {
        "version": "0.1.0", "cupti": "130000", "driver_api": "13000", "options": ["NVPROF_COLLECTOR_GRAPH=graph"],
    }  # fmt: skip
    kept = {f"capture/{path.name}" for path in recorded.iterdir()}
    assert {"app.log", "stdout.log", "stderr.log", "report.html", "attribution.json", *kept} <= set(manifest["files"])
    assert (folder / "stderr.log").read_bytes() == LOG.read_bytes()
    found = document(folder)
    assert found["inputs"]["trace"]["kind"] == "nvprof-capture"
    assert len(found["partitions"]) == 10
    assert found["clock"]["method"] == "marks"


def test_what_the_program_s_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, folder = tmp_path / "calls", tmp_path / "run"
    monkeypatch.setenv("COLLECTOR_CALLS", str(calls))
    assert profile(folder, "--memory", "--graph-nodes", "--metrics", "--metrics-hz", "500") == 0
    library = tmp_path / "libnvprof_collector.so"
    said = calls.read_text()
    for part in (
        f"CUDA_INJECTION64_PATH={library}", f"NVTX_INJECTION64_PATH={library}", "NVPROF_COLLECTOR_GRAPH=node",
        "NVPROF_COLLECTOR_MEMORY=1", "NVPROF_COLLECTOR_PM=500", f"NVPROF_COLLECTOR_OUT={folder / 'capture'}",
    ):  # fmt: skip
        assert part in said


def test_where_nsys_is_it_is_taken_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin" / "nsys").symlink_to(STAND_INS / "nsys")
    monkeypatch.setenv("NSYS_RECORDED", str(fixture_log("prover_two_workers").with_name("trace.sqlite.xz")))
    assert profile(tmp_path / "auto") == 0
    assert "under nsys 2025.3" in capfd.readouterr().err
    assert document(tmp_path / "auto", "manifest.json")["collector"] == "nsys"
    assert profile(tmp_path / "told", "--collector", "cupti") == 0
    assert document(tmp_path / "told", "manifest.json")["collector"] == "cupti"


def test_an_nsys_that_can_write_no_report_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run the program, and leave a file that only another machine can read."""
    tools = tmp_path / "nsight" / "target-linux-x64"
    importer = tmp_path / "nsight" / "host-linux-x64" / "QdstrmImporter"
    for folder in (tools, importer.parent):
        folder.mkdir(parents=True)
    shutil.copy(STAND_INS / "nsys", tools / "nsys")
    importer.write_text("#!/bin/sh\necho 'x: error while loading shared libraries: libdw.so.1: no' >&2; exit 127\n")
    importer.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tools), os.environ["PATH"]]))
    assert profile(tmp_path / "auto") == 0
    assert document(tmp_path / "auto", "manifest.json")["collector"] == "cupti"


def error(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith(("error[", "hint:"))]


def test_a_library_that_was_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NVPROF_TOOLS_COLLECTOR", "0")
    monkeypatch.setattr(nvtx_markers, "native_status", lambda *_: NativeStatus(False, "not built: no CUPTI headers"))
    assert profile(tmp_path / "run", "--collector", "cupti") == 3
    first, hint = error(capfd)
    assert first == "error[collector-missing]: the collector's library is not there: not built: no CUPTI headers"
    assert "reinstall" in hint
    assert not (tmp_path / "run").exists()
    assert profile(tmp_path / "run", "--collector", "nsys") == 3
    assert error(capfd)[0].startswith("error[nsys-missing]")
    assert profile(tmp_path / "run") == 3
    assert error(capfd)[0].startswith("error[nsys-missing]")


@pytest.mark.parametrize("name", ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"])
def test_another_tool_is_named_and_not_pushed_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "/opt/somewhere/libOtherTool.so")
    assert profile(tmp_path / "run") == 2
    assert (
        error(capfd)[0] == "error[collector-not-alone]: another tool is to be loaded into the program: libOtherTool.so"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options",
    [["--os-calls"], ["--delay", "1"], ["--duration", "1"], ["--capture-range", "nvtx:x"], ["--nsys-option", "x"]],
)
def test_options_that_only_nsys_has(options: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert profile(tmp_path / "run", *options) == 2
    assert error(capfd)[0].startswith(f"error[collector-option]: {options[0]} ")


def test_a_program_that_leaves_no_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLLECTOR_RECORDED")
    folder = tmp_path / "run"
    assert profile(folder) == 3
    assert error(capfd)[0].startswith("error[collector-empty]: the program ended without a capture")
    assert document(folder, "manifest.json")["failure"] == "collector-empty"
    assert (folder / "stderr.log").read_bytes() == LOG.read_bytes()


def test_a_program_that_was_killed_is_reported_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Path
) -> None:
    cut = tmp_path / "cut"
    cut.mkdir()
    for path in recorded.iterdir():
        (cut / path.name).write_bytes(path.read_bytes()[: path.stat().st_size * 9 // 10])
    monkeypatch.setenv("COLLECTOR_RECORDED", str(cut))
    folder = tmp_path / "run"
    assert profile(folder, command=("collected", str(LOG), "kill")) == 137
    assert {"program-failed", "capture-truncated", "capture-unfinished"} <= slugs(folder)
    assert document(folder, "manifest.json")["exit_code"] == -9


def test_another_subscriber_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Capture(enabled=[])
    capture.clock(10**15, 17 * 10**17)
    capture.notice("subscriber-present", 1, "libToolsInjection64.so has CUPTI")
    for line in LOG.read_text().splitlines()[:3]:
        capture.row("nvtx_mark", start=10**15 + 5, tid=7, text=capture.word(line))
    capture.row("nvtx_range", start=10**15 + 5, end=10**15 + MIB, tid=7, text=capture.word("work"))
    capture.clock(10**15 + 2 * MIB, 17 * 10**17 + 2 * MIB)
    only = tmp_path / "only"
    only.mkdir()
    capture.write(only / "p-100.nvcap")
    monkeypatch.setenv("COLLECTOR_RECORDED", str(only))
    folder = tmp_path / "run"
    profile(folder, "--pipeline", "generic", command=("collected", os.devnull))
    said = {item["slug"]: item for item in document(folder)["quality"]}
    assert "libToolsInjection64.so" in said["collector-not-alone"]["message"]


def test_repeats_keep_no_captures(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert profile(folder, "--repeat", "2") == 0
    assert [run["profiled"] for run in document(folder, "observer.json")["runs"]] == [False, True, False, True]
    assert not list((folder / "repeats").rglob("*.nvcap"))
    assert list((folder / "capture").glob("*.nvcap"))
