"""What this machine can do for a capture, and what to do about each lack."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from nvprof_tools.capture import collector, importer, tools
from nvprof_tools.capture.tools import Tool

Status = Literal["ok", "note", "fail"]
_WANTED_BYTES = 5 << 30
_NEEDED_BYTES = 200 << 20


@dataclass(frozen=True)
class Check:
    """One fact. ``fail``: ``profile`` cannot work; ``note``: it works with less. ``advice``: what to do about it."""

    name: str
    status: Status
    found: str
    advice: str = ""


def examine(folder: Path, root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> list[Check]:
    """Every check.

    :param folder: where runs would be written.
    :param root: the file system the driver is looked for in.
    """
    environ = os.environ if environ is None else environ
    nsys, ncu = tools.find("nsys", environ), tools.find("ncu", environ)
    driver = _driver(root)
    library = collector.library(environ)
    without: Status = "fail" if library is None or nsys is not None else "note"
    instead = "" if library is None else "; without it profile records with the collector"
    return [
        _profiler(
            "nsys",
            nsys,
            without,
            f"install Nsight Systems (or Nsight Compute, which holds one), or add it to the PATH{instead}",
        ),
        _collector(library),
        _collector_cupti(environ, root),
        _injection(environ),
        _importer(nsys, instead),
        _profiler("ncu", ncu, "note", "install Nsight Compute to count; its reports are read without it"),
        driver,
        _cupti(nsys, root),
        _counters(root),
        _metrics(nsys, driver.status),
        _perf(root),
        _preload(),
        _nvml(),
        _disk(folder),
    ]


def able(checks: Iterable[Check]) -> bool:
    """Whether ``profile`` can work."""
    return all(check.status != "fail" for check in checks)


def _profiler(name: str, tool: Tool | None, otherwise: Status, advice: str) -> Check:
    if tool is None:
        return Check(name, otherwise, "not found", advice)
    if tool.version is None:
        return Check(name, otherwise, f"{tool.path} does not answer --version", "run it by hand: does it start?")
    if name == "nsys" and tool.number < (2022, 1):
        return Check(name, "note", f"{tool.version} at {tool.path}", "older than 2022.1: take a newer one")
    return Check(name, "ok", f"{tool.version} at {tool.path}")


def _collector(library: Path | None) -> Check:
    if library is not None:
        return Check("collector", "ok", str(library))
    reason = collector.missing()
    return Check("collector", "note", reason.message, reason.hint.partition(";")[0] + "; nsys needs none of it")


def _collector_cupti(environ: Mapping[str, str], root: Path) -> Check:
    """What the collector would open; the version is in the file's own name."""
    name = "collector's CUPTI"
    found = collector.cupti(environ, root)
    if found is None:
        return Check(
            name,
            "note",
            "no libcupti in a CUDA toolkit or a Python package",
            f"pip install nvidia-cuda-cupti, install the CUDA toolkit, or name one in {collector.CUPTI}; "
            "a program that brings its own (PyTorch does) needs none",
        )
    whole = re.search(r"\.so\.([\d.]+)$", os.path.realpath(found))
    return Check(name, "ok", f"{whole[1] if whole else '(version unknown)'} at {found}")


def _injection(environ: Mapping[str, str]) -> Check:
    """CUDA and NVTX load one tool each."""
    other = collector.taken(environ)
    if other is None:
        return Check("other tools", "ok", "none is set to be loaded into programs")
    names = f"{collector.CUDA_INJECTION} and {collector.NVTX_INJECTION}"
    return Check("other tools", "note", f"{other} is loaded into every CUDA program started here", f"unset {names}")


def _importer(nsys: Tool | None, instead: str) -> Check:
    name = "nsys importer"
    if nsys is None:
        return Check(name, "note", "not looked for: there is no nsys")
    known = importer.examine(nsys)
    if known.works is False:
        return Check(name, "note" if instead else "fail", known.found, known.advice + instead)
    return Check(name, "ok" if known.works else "note", known.found, known.advice)


def _driver(root: Path) -> Check:
    text = _read(root / "proc/driver/nvidia/version")
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text or "")
    if match:
        return Check("driver", "ok", match[1])
    if (root / "dev/nvidiactl").exists():
        return Check("driver", "ok", "there (its version is not shown here)")
    return Check("driver", "fail", "no NVIDIA driver", "profile where there is a GPU; reports can be made anywhere")


def _cupti(nsys: Tool | None, root: Path) -> Check:
    places = [] if nsys is None else [Path(os.path.realpath(nsys.path)).parent]
    found = [p for place in places for p in place.glob("libcupti.so*")]
    found += root.glob("usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*")
    found += root.glob("usr/local/cuda*/lib64/libcupti.so*")
    if found:
        return Check("CUPTI", "ok", str(sorted(found)[0]))
    return Check(
        "CUPTI", "note", "not found; nsys usually brings its own", "if the trace holds no CUDA rows, install CUPTI"
    )


def _counters(root: Path) -> Check:
    name = "GPU counters"
    text = _read(root / "proc/driver/nvidia/params")
    match = re.search(r"RmProfilingAdminOnly:\s*(\d)", text or "")
    if match is None:
        return Check(name, "note", "the driver does not say who may read them", "if refused, run as root")
    if match[1] == "0":
        return Check(name, "ok", "for everybody")
    if os.geteuid() == 0:
        return Check(name, "ok", "for administrators, as you are")
    return Check(
        name,
        "note",
        "for administrators only: --metrics and --counters would be refused",
        "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
        "(/etc/modprobe.d: options nvidia NVreg_RestrictProfilingToAdminUsers=0)",
    )


def _metrics(nsys: Tool | None, driver: Status) -> Check:
    name = "GPU metrics"
    if nsys is None or driver == "fail":
        return Check(name, "note", "not asked: that takes nsys and a driver")
    said = ""
    for option in ("--gpu-metrics-devices=help", "--gpu-metrics-device=help"):
        said = _said([str(nsys.path), "profile", option])
        if "unrecogni" not in said.lower():
            break
    supported = re.search(r"^\s*\d+:?\s.*$", said, re.MULTILINE)
    if supported and "not supported" not in supported[0]:
        return Check(name, "ok", " ".join(supported[0].split()))
    line = next((line.strip() for line in said.splitlines() if line.strip()), "nsys says nothing")
    return Check(name, "note", line[:160], "leave --metrics out; profile does so by itself when it is refused")


def _said(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _perf(root: Path) -> Check:
    level = (_read(root / "proc/sys/kernel/perf_event_paranoid") or "").strip()
    if not level.lstrip("-").isdigit():
        return Check("perf events", "note", "the kernel does not say", "not needed: profile samples no CPU")
    return Check("perf events", "ok", f"perf_event_paranoid is {level}; profile samples no CPU and needs none")


def _preload() -> Check:
    import nvtx_markers

    status = nvtx_markers.native_status()
    if status.built:
        return Check("markers", "ok", str(nvtx_markers.preload_library()))
    advice = "install a C compiler and reinstall nvprof-tools; without them nsys traces the system's calls instead"
    return Check("markers", "note", f"the preload library is not built: {status.reason}", advice)


def _nvml() -> Check:
    if find_spec("pynvml") is not None:
        return Check("NVML", "ok", "nvidia-ml-py is installed")
    return Check("NVML", "note", "nvidia-ml-py is not installed", "pip install 'nvprof-tools[profile]'")


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    size = f"{free / (1 << 30):,.1f} GiB free where runs are written"
    if free < _NEEDED_BYTES:
        return Check("disk", "fail", size, "free some space, or choose another folder with -o")
    if free < _WANTED_BYTES:
        return Check("disk", "note", size, "a long run takes gigabytes")
    return Check("disk", "ok", size)


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None
