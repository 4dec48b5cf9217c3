"""One run of the program, under a profiler or plain: output kept, signals passed on, its end told apart from the
profiler's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from nvprof_tools.capture import launcher
from nvprof_tools.capture.tee import Tee
from nvprof_tools.errors import ToolError

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_SAID_BYTES = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    ``exit_code``: the program's, negative for the signal that ended it; null: it was never started, or its end was not
    seen. ``wall_ns``: from its start to its end. ``profiler_code`` and ``said``: the profiler's own exit code and
    output; 0 and empty without one. ``lost_bytes``: output that could not be kept, and why.
    """

    started: bool
    exit_code: int | None
    wall_ns: int | None
    profiler_code: int
    said: str
    lost_bytes: int = 0
    lost_why: str = ""

    @property
    def passed_on(self) -> int:
        """The exit code as a shell gives it: 128 + signal for a program that was killed; 0 when unknown."""
        code = self.exit_code or 0
        return code if code >= 0 else 128 - code


def run(
    command: Sequence[str],
    folder: Path,
    *,
    under: Sequence[str] = (),
    preload: Path | None = None,
    echo: tuple[int, int] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Outcome:
    """Run ``command``; its output goes to files in ``folder``.

    :param under: the profiler and its options, to be put before the program; empty: plain.
    :param preload: a library for the program alone.
    :param echo: where its stdout and stderr go too.
    :raises ToolError: ``profiler-not-started``.
    """
    state = folder / ".program"
    for suffix in (".pid", ".status"):
        state.with_suffix(suffix).unlink(missing_ok=True)
    environment = dict(os.environ if environ is None else environ)
    environment.pop("NVPROF_TOOLS_PRELOAD", None)
    if preload is not None:
        environment["NVPROF_TOOLS_PRELOAD"] = str(preload)
    tee = Tee(folder, echo)
    start = [sys.executable, "-I", "-S", "-W", "ignore", launcher.__file__, str(state), *map(str, tee.pipes), "--"]
    said = folder / "profiler.log" if under else folder / ".launcher.log"
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    tee.start()
    try:
        # A session of its own: what is typed at the terminal reaches the program through us, once.
        process = subprocess.Popen(
            [*under, *start, *command], stdout=out, stderr=out, env=environment, start_new_session=True
        )
        with _passing_on(state, process):
            code = process.wait()
    except OSError as error:
        raise ToolError(
            "profiler-not-started",
            f"{Path((under or start)[0]).name} cannot be started: {error.strerror}",
            "see nvprof-tools doctor",
        ) from error
    finally:
        os.close(out)
        tee.finish()
    with said.open("rb") as text:
        words = text.read(_SAID_BYTES).decode("utf-8", "replace")
    started, numbers = state.with_suffix(".pid").is_file(), _noted(state.with_suffix(".status"))
    for path in (state.with_suffix(".pid"), state.with_suffix(".status"), folder / ".launcher.log"):
        path.unlink(missing_ok=True)
    return Outcome(
        started or numbers is not None,
        None if numbers is None else numbers[0],
        None if numbers is None else numbers[2] - numbers[1],
        code if under else 0,
        words if under else "",
        tee.lost_bytes,
        tee.reason,
    )


@contextmanager
def _passing_on(state: Path, process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals go to the program; the second that asks it to end goes to the profiler too, the third ends both."""
    asked = 0

    def receive(number: int, _: FrameType | None) -> None:
        nonlocal asked
        asked += number in _ENDING
        program = _noted(state.with_suffix(".pid"))
        with suppress(ProcessLookupError, PermissionError):
            if program is not None and asked < 3:
                os.kill(program[0], number)
            if program is None or asked == 2:
                process.send_signal(number)
            if asked >= 3:
                os.killpg(process.pid, signal.SIGKILL)

    old = {}
    # Only the main thread may set handlers; a caller on another keeps its own.
    with suppress(ValueError):
        for number in _PASSED_ON:
            old[number] = signal.signal(number, receive)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _noted(path: Path) -> list[int] | None:
    try:
        return [int(word) for word in path.read_text("ascii").split()]
    except (OSError, ValueError):
        return None
