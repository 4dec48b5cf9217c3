"""Builds the shim's native parts, a stand-in for the profiler and the test programs, once a test process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "nvtx_markers" / "native"
INCLUDE = ROOT / "nvtx_markers" / "include"
PROGRAMS = Path(__file__).resolve().parent / "programs"
LIBRARY_FLAGS = ["-std=gnu11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-fexceptions", "-fno-builtin"]


def nvtx_include() -> Path | None:
    """The folder that holds NVTX's headers, as ``setup.py`` finds it."""
    homes = [
        os.environ.get("NVTX_INCLUDE", ""),
        *(f"{os.environ.get(n, '')}/include" for n in ("CUDA_HOME", "CUDA_PATH")),
    ]
    packaged = [str(path) for path in Path(os.__file__).parent.glob("site-packages/nvidia/*/include")]
    for place in (*homes, "/usr/local/cuda/include", *packaged, "/usr/include"):
        if place and (Path(place) / "nvtx3" / "nvToolsExt.h").is_file():
            return Path(place)
    return None


class Event(NamedTuple):
    """One line of the stand-in's log."""

    mono_ns: int
    pid: int
    tid: int
    kind: str
    domain: str
    category: int
    text: str
    payload: str
    range_id: int


def read_log(path: Path) -> list[Event]:
    """What the stand-in was given, in order; domain and category announcements left out."""
    events = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        mono, pid, tid, kind, domain, category, text, payload, range_id = line.split("\t")
        events.append(Event(int(mono), int(pid), int(tid), kind, domain, int(category), text, payload, int(range_id)))
    return [event for event in events if event.kind not in {"domain", "category"}]


@dataclass
class Run:
    """A finished program and what it told the profiler."""

    code: int
    out: bytes
    err: bytes
    events: list[Event] = field(default_factory=list)

    def texts(self, kind: str, prefix: str = "") -> list[str]:
        """Texts of one kind of event."""
        return [e.text for e in self.events if e.kind == kind and e.text.startswith(prefix) and e.text != "shim"]

    def lines(self) -> list[str]:
        """The log lines that became marks."""
        return [text.partition("|wall_ns=")[0] for text in self.texts("mark", "TIMELINE,")]


@dataclass
class Kit:
    """Built things, and a way to run them."""

    folder: Path
    nvtx: Path

    @property
    def library(self) -> Path:
        return self.folder / "libnvtx_markers_preload.so"

    @property
    def tool(self) -> Path:
        return self.folder / "tool" / "libfake_nvtx.so"

    def compile(self, compiler: str, output: Path, sources: Sequence[Path | str], *flags: str) -> Path:
        """Compiles; a warning in our own code is an error."""
        output.parent.mkdir(parents=True, exist_ok=True)
        command = [
            compiler,
            *flags,
            f"-I{self.nvtx}",
            f"-I{INCLUDE}",
            "-o",
            str(output),
            *map(str, sources),
            "-ldl",
            "-pthread",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return output

    def run(
        self,
        command: Sequence[str | Path],
        *,
        preload: Sequence[Path] | None = None,
        tool: bool = True,
        env: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> Run:
        """Runs a program with the library preloaded (or ``preload``) and the stand-in listening."""
        log = self.folder / f"events-{os.getpid()}.log"
        log.unlink(missing_ok=True)
        libraries = [self.library] if preload is None else list(preload)
        keep = {
            name: value for name, value in os.environ.items() if not name.startswith(("NVTX", "LD_", "QUADD", "FAKE"))
        }
        keep |= {"LIBRARY": str(self.library)}
        if libraries:
            keep["LD_PRELOAD"] = ":".join(map(str, libraries))
        if tool:
            keep |= {"NVTX_INJECTION64_PATH": str(self.tool), "FAKE_NVTX_LOG": str(log)}
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, env=keep | (env or {}), timeout=timeout, check=False
        )
        return Run(done.returncode, done.stdout, done.stderr, read_log(log))


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Compiler, NVTX headers and glibc, or the test is skipped; the stand-in and the library, built."""
    nvtx = nvtx_include()
    if shutil.which("gcc") is None or nvtx is None:
        pytest.skip("needs gcc and NVTX headers")
    kit = Kit(tmp_path_factory.mktemp("native"), nvtx)
    sources = sorted(NATIVE.glob("*.c"))
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-builtin-declaration-mismatch"]
    kit.compile("gcc", kit.library, sources, *LIBRARY_FLAGS, *warnings, "-shared", "-Wl,-z,nodelete,-z,now,-z,defs")
    kit.compile(
        "gcc", kit.tool, [PROGRAMS / "fake_nvtx.c"], "-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared"
    )
    return kit


@pytest.fixture(scope="session")
def scenario(kit: Kit) -> Path:
    """The program of many scenarios, with stand-ins for the driver and the runtime."""
    cuda = kit.folder / "cuda"
    fake = PROGRAMS / "fake_cuda.c"
    driver = kit.compile(
        "gcc", cuda / "libcuda.so.1", [fake], "-O1", "-fPIC", "-shared", "-DFAKE_DRIVER", "-Wl,-soname,libcuda.so.1"
    )
    runtime = kit.compile(
        "gcc", cuda / "libcudart.so.13", [fake], "-O1", "-fPIC", "-shared", "-Wl,-soname,libcudart.so.13"
    )
    sources = [PROGRAMS / "scenario.c", "-Wl,--no-as-needed", driver, runtime]
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-Wl,-rpath,{cuda}"]
    return kit.compile("gcc", kit.folder / "scenario", sources, *flags)


@pytest.fixture(scope="session")
def compare(kit: Kit, scenario: Path) -> Callable[..., Run]:
    """Runs a scenario bare, with the library, and with library and tool: to the program all three are the same."""

    def run(name: str, *, env: dict[str, str] | None = None, ordered: bool = True) -> Run:
        bare = kit.run([scenario, name], preload=[], tool=False)
        idle = kit.run([scenario, name], tool=False, env=env)
        watched = kit.run([scenario, name], env=env)

        def seen(run: Run) -> tuple[int, bytes, bytes | list[bytes]]:
            return run.code, run.out, run.err if ordered else sorted(run.err.splitlines())

        assert bare.code not in {2, 99}, bare.err
        assert seen(idle) == seen(bare)
        assert seen(watched) == seen(bare)
        assert idle.events == []
        return watched

    return run
