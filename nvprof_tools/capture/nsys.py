"""What nsys is asked for, by what it can do, and what its failures mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nvprof_tools.capture import importer
from nvprof_tools.capture.tools import Tool, ask
from nvprof_tools.errors import ToolError, UsageError

SAMPLES_WANTED = 500_000
DEFAULT_HZ = 2_000
_LOWEST_HZ, _HIGHEST_HZ = 100, 10_000


@dataclass(frozen=True)
class Wish:
    """What the user asked of the capture. Times in seconds; ``expected_s`` is a guess of the run's length."""

    metrics: bool = False
    metrics_hz: int | None = None
    expected_s: float | None = None
    os_calls: bool = False
    memory: bool = False
    graph_nodes: bool = False
    delay_s: float | None = None
    duration_s: float | None = None
    capture_range: str | None = None
    keep_environment: bool = False
    extra: tuple[str, ...] = ()

    def without_metrics(self) -> Wish:
        """The same, where sampling is not allowed."""
        return replace(self, metrics=False)


def abilities(nsys: Tool) -> str:
    """The help of ``nsys profile``: which options this version knows."""
    return ask([str(nsys.path), "profile", "--help"]) or ""


def options(wish: Wish, known: str, markers: bool) -> list[str]:
    """The options of ``nsys profile`` for one capture.

    With the markers, lock waits and the log come from them; without, from nsys' own tracing of the operating system's
    calls. Both together work too, and are only worth their cost where joins and condition waits matter.

    :param known: the help text of this version; an option that it does not name is left out. Empty: unknown, so that
        only options every version has are used.
    :raises UsageError: ``capture-range-malformed``.
    """
    traced = ["cuda", "nvtx", *(["osrt"] if wish.os_calls or not markers else [])]
    chosen = [f"--trace={','.join(traced)}", "--sample=none", "--force-overwrite=true"]
    chosen += _if(known, "--cpuctxsw", "none")
    if not wish.keep_environment:
        chosen += _if(known, "--discard-environment", "true")
    chosen += _if(known, "--cuda-graph-trace", "node" if wish.graph_nodes else "graph")
    if wish.memory:
        chosen += _if(known, "--cuda-memory-usage", "true")
    if wish.metrics:
        plural = "--gpu-metrics-devices" in known
        chosen.append(f"--gpu-metrics-device{'s' if plural else ''}=all")
        chosen.append(f"--gpu-metrics-frequency={frequency(wish)}")
    if wish.delay_s is not None:
        chosen.append(f"--delay={wish.delay_s:g}")
    if wish.duration_s is not None:
        chosen.append(f"--duration={wish.duration_s:g}")
    if wish.capture_range is not None:
        chosen += _range(wish.capture_range)
    return [*chosen, *wish.extra]


def frequency(wish: Wish) -> int:
    """Samples a second that give a long run no more rows than a short one."""
    if wish.metrics_hz is not None:
        return wish.metrics_hz
    length = wish.duration_s if wish.duration_s is not None else wish.expected_s
    if length is None or length <= 0:
        return DEFAULT_HZ
    return int(min(max(SAMPLES_WANTED / length, _LOWEST_HZ), _HIGHEST_HZ))


def _if(known: str, option: str, value: str) -> list[str]:
    return [f"{option}={value}"] if option in known else []


def _range(text: str) -> list[str]:
    if text == "cudaProfilerApi":
        return ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    kind, _, name = text.partition(":")
    if kind != "nvtx" or not name:
        raise UsageError(
            "capture-range-malformed",
            f"no capture range: {text!r}",
            "give cudaProfilerApi or nvtx:NAME, or nvtx:NAME@DOMAIN",
        )
    # Ranges with plain (not registered) names only start a capture when nsys is told to look at them.
    return [
        "--capture-range=nvtx",
        f"--nvtx-capture={name}",
        "--capture-range-end=stop",
        "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
    ]


_METRICS = re.compile(
    r"ERR_NVGPUCTRPERM|gpu[ -]metrics|gpu-metrics-device|metrics (?:set|sampl)|insufficient privilege", re.IGNORECASE
)
_LIBRARY = re.compile(r"error while loading shared libraries: (\S+?):")
_FULL = re.compile(r"no space left on device|disk (?:is )?full|not enough (?:disk )?space", re.IGNORECASE)
_IMPORTER = re.compile(r"importer|\.qdstrm", re.IGNORECASE)
_NEWER = re.compile(r"newer version|unsupported (?:report|file) version|version mismatch", re.IGNORECASE)
_PACKAGES = {
    "libdw.so.1": "libdw1",
    "libelf.so.1": "libelf1",
    "libbz2.so.1.0": "libbz2-1.0",
    "liblzma.so.5": "liblzma5",
}


def refused_metrics(said: str) -> bool:
    """Whether nsys' words are about GPU metrics it may not or cannot sample."""
    return _METRICS.search(said) is not None


def explain(said: str, code: int, folder: Path, nsys: Tool) -> ToolError:
    """Why there is no report, from what nsys said and left, and from its importer, of which nsys tells nothing."""
    stream = next(iter(sorted(folder.glob("*.qdstrm"))), None)
    kept = f"the program's output is in {folder.name}/app.log; nvprof-tools log reads it"
    if _FULL.search(said):
        return ToolError(
            "capture-disk-full", "nsys found no room left for its report", "free some space, or capture less"
        )
    missing = _LIBRARY.search(said)
    if stream is not None or missing is not None or _IMPORTER.search(said):
        if missing is not None:
            name = missing[1]
            fix = f"install {_PACKAGES.get(name, f'what holds {name}')}; see nvprof-tools doctor"
            return ToolError("nsys-import-failed", f"nsys captured the run but its importer lacks {name}", fix)
        known = importer.examine(nsys)
        if known.works is False:
            return ToolError(
                "nsys-import-failed", f"nsys captured the run and its importer cannot work: {known.found}", known.advice
            )
        where = f"open {stream.name} with an nsys of the same version elsewhere" if stream else kept
        why = "its importer is of another version" if _NEWER.search(said) else "could not turn it into a report"
        return ToolError("nsys-import-failed", f"nsys captured the run and {why}", f"{where}; see profiler.log")
    if "No reports were generated" in said:
        return ToolError(
            "capture-empty",
            "nsys recorded nothing: the capture range, delay or duration never met the program at work",
            "leave them out, or check the range's name and domain",
        )
    return ToolError("nsys-failed", f"nsys gave no report (exit code {code}): {telling(said)}", kept)


def telling(said: str) -> str:
    """The most telling line of an output."""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    for telling_words in (r"NVGPUCTRPERM|privilege", r"error|fail|illegal|unrecogni[sz]ed|cannot|unable|denied"):
        for line in lines:
            if re.search(telling_words, line, re.IGNORECASE):
                return line[:200]
    return lines[-1][:200] if lines else "it said nothing"


def export_command(nsys: Tool, report: Path, out: Path) -> Sequence[str]:
    """To SQLite."""
    return [str(nsys.path), "export", "--type=sqlite", "--force-overwrite=true", f"--output={out}", str(report)]


def explain_export(said: str, code: int) -> ToolError:
    """Why a report could not be exported."""
    if _FULL.search(said):
        return ToolError(
            "capture-disk-full", "nsys found no room left for its export", "free some space and export again"
        )
    missing = _LIBRARY.search(said)
    if missing is not None:
        name = missing[1]
        return ToolError(
            "nsys-import-failed",
            f"nsys cannot export its report here: it lacks {name}",
            f"install {_PACKAGES.get(name, f'what holds {name}')}, or export the report elsewhere",
        )
    why = "another version of nsys wrote it" if _NEWER.search(said) else telling(said)
    return ToolError(
        "nsys-export-failed",
        f"nsys could not export the report (exit code {code}): {why}",
        "run nsys export on it by hand; an older nsys cannot read a newer report",
    )
