"""``doctor``: every lack is told with what to do, on a made-up machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

import nvtx_markers
from nvprof_tools.capture import collector, doctor
from nvprof_tools.capture.doctor import Check, able, examine
from nvprof_tools.cli.main import run
from nvtx_markers.library import NativeStatus

STAND_INS = Path(__file__).resolve().parents[1] / "capture_stand_ins"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine where everything is there."""
    machine = tmp_path / "root"
    for name, text in {
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release\n",
        "proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n",
        "proc/sys/kernel/perf_event_paranoid": "2\n",
        "usr/local/cuda-13/extras/CUPTI/lib64/libcupti.so.13": "",
        "usr/local/cuda/lib64/libcupti.so.13.2.75": "",
        "collector.so": "",
    }.items():
        (machine / name).parent.mkdir(parents=True, exist_ok=True)
        (machine / name).write_text(text)
    (machine / "usr/local/cuda/lib64/libcupti.so.13").symlink_to("libcupti.so.13.2.75")
    tools = machine / "nsight" / "target-linux-x64"
    tools.mkdir(parents=True)
    for name in ("nsys", "ncu"):
        shutil.copy(STAND_INS / name, tools / name)
    importer(machine, "exit 0")
    return machine


def importer(machine: Path, text: str, folder: str = "host-linux-x64") -> None:
    path = machine / "nsight" / folder / "QdstrmImporter"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def found(
    machine: Path, monkeypatch: pytest.MonkeyPatch, fails: str = "", tools: bool = True, **more: str
) -> dict[str, Check]:
    folders = [str(machine / "nsight" / "target-linux-x64")] if tools else []
    path = os.pathsep.join([*folders, str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    library = str(machine / "collector.so")
    environ = {"PATH": path, "NVPROF_TOOLS_ONLY_PATH": "1", "NVPROF_TOOLS_COLLECTOR": library} | more
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("NSYS_FAILS", fails)
    return {check.name: check for check in examine(machine, machine, environ)}


def test_a_machine_where_all_is_well(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx_markers, "native_status", lambda: NativeStatus(built=True, reason="built"))
    checks = found(root, monkeypatch)
    wrong = {name: check for name, check in checks.items() if check.status != "ok" and name not in {"NVML", "disk"}}
    assert wrong == {}
    assert checks["driver"].found == "580.159.04"
    assert checks["nsys"].found.startswith("2025.3.2.0 at ")
    assert "H200" in checks["GPU metrics"].found


def test_without_profilers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = found(root, monkeypatch, tools=False, NVPROF_TOOLS_COLLECTOR="0")
    assert (checks["nsys"].status, checks["ncu"].status) == ("fail", "note")
    assert "install" in checks["nsys"].advice
    assert not able(checks.values())


def test_the_collector_stands_in_for_nsys(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = found(root, monkeypatch, tools=False)
    assert (checks["nsys"].status, checks["collector"].status) == ("note", "ok")
    assert "records with the collector" in checks["nsys"].advice
    assert checks["collector's CUPTI"].found.startswith("13.2.75 at ")
    assert able(checks.values()) or checks["disk"].status == "fail"


def test_a_collector_that_was_not_built(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = NativeStatus(built=False, reason="not built: no CUPTI headers")
    monkeypatch.setattr(nvtx_markers, "native_status", lambda *_: reason)
    check = found(root, monkeypatch, NVPROF_TOOLS_COLLECTOR="0")["collector"]
    assert check.status == "note"
    assert "no CUPTI headers" in check.found


def test_where_the_collector_s_cupti_may_lie(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(root / "usr/local/cuda")
    monkeypatch.setattr(sys, "path", [str(root / "site")])
    name = "collector's CUPTI"
    check = found(root, monkeypatch)[name]
    assert check.status == "note"
    assert "nvidia-cuda-cupti" in check.advice
    library = root / "site/nvidia/cuda_cupti/lib/libcupti.so.12"
    library.parent.mkdir(parents=True)
    library.touch()
    assert found(root, monkeypatch)[name].found == f"12 at {library}"
    assert collector.packaged_cupti() == library
    home = root / "home/extras/CUPTI/lib64/libcupti.so.13"
    home.parent.mkdir(parents=True)
    home.touch()
    assert found(root, monkeypatch, CUDA_HOME=str(root / "home"))[name].found == f"13 at {home}"
    named = found(root, monkeypatch, NVPROF_COLLECTOR_CUPTI=str(root / "no such file"))[name]
    assert named.status == "note"


def test_another_tool_that_is_set(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = found(root, monkeypatch, CUDA_INJECTION64_PATH="/opt/other/libOther.so")["other tools"]
    assert check.status == "note"
    assert "libOther.so" in check.found
    assert "/opt" not in check.found
    assert found(root, monkeypatch, CUDA_INJECTION64_PATH="./.")["other tools"].status == "ok"


def test_an_nsys_that_does_not_answer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = found(root, monkeypatch, "version")["nsys"]
    assert check.status == "fail"
    assert "does not answer" in check.found


def test_an_importer_that_lacks_a_library(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importer(root, "echo 'QdstrmImporter: error while loading shared libraries: libdw.so.1: cannot open' >&2; exit 127")
    check = found(root, monkeypatch, NVPROF_TOOLS_COLLECTOR="0")["nsys importer"]
    assert check.status == "fail"
    assert "libdw.so.1" in check.found
    assert "libdw1" in check.advice
    check = found(root, monkeypatch)["nsys importer"]
    assert (check.status, check.advice.partition("; ")[2]) == ("note", "without it profile records with the collector")


def test_an_importer_under_another_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(root / "nsight" / "host-linux-x64")
    importer(root, "exit 0", "linux-desktop-glibc_2_11_3-x64")
    check = found(root, monkeypatch, NVPROF_TOOLS_COLLECTOR="0")["nsys importer"]
    assert check.status == "fail"
    assert check.advice.startswith("ln -s linux-desktop-glibc_2_11_3-x64 ")
    shutil.rmtree(root / "nsight" / "linux-desktop-glibc_2_11_3-x64")
    assert found(root, monkeypatch)["nsys importer"].status == "note"


def test_counters_for_administrators_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "proc/driver/nvidia/params").write_text("RmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check = found(root, monkeypatch)["GPU counters"]
    assert check.status == "note"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in check.advice
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert found(root, monkeypatch)["GPU counters"].status == "ok"


def test_no_driver_no_metrics(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(root, monkeypatch, "metrics")["GPU metrics"].status == "note"
    shutil.rmtree(root / "proc/driver")
    checks = found(root, monkeypatch)
    assert checks["driver"].status == "fail"
    assert checks["GPU metrics"].status == "note"
    assert checks["GPU counters"].status == "note"


def test_what_is_not_installed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx_markers, "native_status", lambda: NativeStatus(built=False, reason="no C compiler"))
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    checks = found(root, monkeypatch)
    assert "no C compiler" in checks["markers"].found
    assert "nvprof-tools[profile]" in checks["NVML"].advice
    assert able(checks.values()) or checks["disk"].status == "fail"


@pytest.mark.parametrize(("free", "status"), [(1 << 20, "fail"), (1 << 30, "note"), (1 << 40, "ok")])
def test_room_for_runs(root: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(free))
    assert found(root, monkeypatch)["disk"].status == status


def test_the_command_says_it_for_people_and_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [Check("nsys", "fail", "not found", "install it"), Check("disk", "ok", "room")]
    monkeypatch.setattr(doctor, "examine", lambda _: checks)
    assert run(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "FAIL  nsys  not found" in text
    assert "→ install it" in text
    assert run(["doctor", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "nvprof-tools/doctor/1"
    assert document["ready"] is False
    assert document["checks"][0] == {"name": "nsys", "status": "fail", "found": "not found", "advice": "install it"}
    monkeypatch.setattr(doctor, "examine", lambda _: checks[1:])
    assert run(["doctor"]) == 0
