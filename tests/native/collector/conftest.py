"""Builds the collector, a stand-in for CUPTI and a program to be captured: once under each pair of sanitizers."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.native.collector.capture import Capture, read
from tests.native.conftest import ROOT, nvtx_include

SOURCES = ROOT / "nvprof_tools" / "native_collector"
PROGRAMS = Path(__file__).resolve().parent / "programs"


def cupti_include() -> list[Path]:
    """Folders that hold ``cupti.h`` and ``cuda.h``; empty where one is missing."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    places = [Path(home) / below for home in homes if home for below in ("extras/CUPTI/include", "include")]
    places += sorted(Path(os.__file__).parent.glob("site-packages/nvidia/*/include"))
    found = [next((place for place in places if (place / name).is_file()), None) for name in ("cupti.h", "cuda.h")]
    return list(dict.fromkeys(place for place in found if place is not None)) if None not in found else []


@dataclass
class Ran:
    """A finished program and the files it left, by process."""

    code: int
    out: str
    err: str
    files: list[Path]

    def only(self) -> Capture:
        """The one file."""
        assert len(self.files) == 1, self.files
        return read(self.files[0])


@dataclass
class Kit:
    """A library, a stand-in and a program, built with the same sanitizer."""

    folder: Path
    sanitizer: str

    @property
    def library(self) -> Path:
        return self.folder / "libnvprof_collector.so"

    @property
    def fake(self) -> Path:
        return self.folder / "libfake_cupti.so"

    def build(self, include: Sequence[Path]) -> None:
        """Compiles all three; a warning in our own code is an error. One unit: headers are read once."""
        unit = self.folder / "collector.cpp"
        unit.write_text("".join(f'#include "{path}"\n' for path in sorted(SOURCES.glob("*.cpp"))), encoding="utf-8")
        common = ["-std=c++17", "-O0", "-g0", "-pthread", f"-fsanitize={self.sanitizer}"]
        common += ["-DNVCAP_MOST_REMEMBERED=1048576"]
        if "undefined" in self.sanitizer:
            # Checks by calls, and without those that find nothing here: half of the time of compilation.
            common += ["--param", "asan-instrumentation-with-call-threshold=0"]
            common += ["-fno-sanitize=null,vptr,object-size,alignment,return,unreachable,builtin"]
            common += ["-fno-sanitize=nonnull-attribute,returns-nonnull-attribute"]
        common += [f"-isystem{path}" for path in include]
        warnings = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
        shared = ["-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,nodelete,-z,now"]
        fakes = [PROGRAMS / "fake_cupti.cpp"]
        # Headers of CUPTI know PM sampling from 12.6 on.
        fakes += [PROGRAMS / "fake_pm.cpp"] if any((path / "cupti_pmsampling.h").is_file() for path in include) else []
        jobs = [
            [*common, *warnings, *shared, "-o", str(self.library), str(unit)],
            [*common, *warnings, *shared, "-o", str(self.fake), *map(str, fakes)],
            [*common, *warnings, "-o", str(self.folder / "scenario"), str(PROGRAMS / "scenario.cpp")],
        ]
        running = [
            subprocess.Popen(["g++", *job, "-ldl"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for job in jobs
        ]
        said = [process.communicate()[0] for process in running]
        if any("cannot find" in text for text in said):
            pytest.skip(f"no -fsanitize={self.sanitizer} here")
        assert all(process.returncode == 0 for process in running), "\n".join(said)

    def run(self, out: Path, *command: str, env: dict[str, str] | None = None, timeout: float = 60) -> Ran:
        """Runs a scenario with the library injected as the driver and NVTX do."""
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("NV", "CUDA_INJ", "QUADD"))}
        keep |= {
            "NVPROF_COLLECTOR_OUT": str(out),
            "NVPROF_COLLECTOR_CUPTI": str(self.fake),
            "CUDA_INJECTION64_PATH": str(self.library),
            "NVTX_INJECTION64_PATH": str(self.library),
            "ASAN_OPTIONS": "detect_leaks=0",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "TSAN_OPTIONS": "exitcode=66",
        }
        done = subprocess.run(
            [str(self.folder / "scenario"), *command],
            capture_output=True,
            env=keep | (env or {}),
            timeout=timeout,
            check=False,
            text=True,
        )
        assert "Sanitizer" not in done.stderr, done.stderr[:6000]
        assert "runtime error" not in done.stderr, done.stderr[:6000]
        return Ran(done.returncode, done.stdout, done.stderr, sorted(out.glob("*.nvcap")))


def make(factory: pytest.TempPathFactory, sanitizer: str) -> Kit:
    """A kit, or the test is skipped; built once for all processes that run tests side by side."""
    include, nvtx = cupti_include(), nvtx_include()
    if shutil.which("g++") is None or not include or nvtx is None:
        pytest.skip("needs g++ and the headers of CUPTI, CUDA and NVTX")
    base = factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    kit = Kit(shared / f"collector-{sanitizer.replace(',', '-')}", sanitizer)
    kit.folder.mkdir(exist_ok=True)
    with (kit.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kit.folder / "built").exists():
            kit.build([*include, nvtx])
            (kit.folder / "built").touch()
    return kit


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Under AddressSanitizer and UndefinedBehaviorSanitizer."""
    return make(tmp_path_factory, "address,undefined")


@pytest.fixture(scope="session")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Under ThreadSanitizer."""
    return make(tmp_path_factory, "thread")


@pytest.fixture
def run(checked: Kit, tmp_path: Path) -> Callable[..., Ran]:
    """Runs a scenario; its files go into the test's own folder."""

    def one(*command: str, env: dict[str, str] | None = None) -> Ran:
        return checked.run(tmp_path, *command, env=env)

    return one
