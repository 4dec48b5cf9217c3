"""Starts the profiled program: the one process between the profiler and it.

Run as ``python launcher.py STATE OUT ERR -- CMD …``. It loads nothing of ours. It opens the two pipes, starts the
program with its output there, writes its process id, passes signals on, and writes how it ended: a profiler in between
cannot change any of that. With ``NVPROF_TOOLS_PRELOAD`` set, that library is put before whatever the profiler preloads.

It writes its two notes itself, by rename: it must start in milliseconds, so only the smallest modules are loaded here.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main(arguments: list[str]) -> int:
    """Run the program; return its exit code, or 128 + the signal that ended it."""
    state, out, err, _, *command = arguments
    environ = dict(os.environ)
    preload = environ.pop("NVPROF_TOOLS_PRELOAD", "")
    if preload:
        environ["LD_PRELOAD"] = os.pathsep.join(filter(None, (preload, environ.get("LD_PRELOAD"))))
    stdout, stderr = (os.open(path, os.O_WRONLY) for path in (out, err))
    started = time.monotonic_ns()
    child = os.fork()
    if child == 0:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.close(stdout)
        os.close(stderr)
        try:
            os.execvpe(command[0], command, environ)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    os.close(stdout)
    os.close(stderr)
    for number in _FORWARDED:
        signal.signal(number, lambda received, _frame: _send(child, received))
    _note(state + ".pid", str(child))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    _note(state + ".status", f"{code} {started} {time.monotonic_ns()}")
    return code if code >= 0 else 128 - code


def _send(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _note(path: str, text: str) -> None:
    """Whole or not at all: a reader never sees half a number. No room for it is no reason to disturb the program."""
    with suppress(OSError):
        descriptor = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(descriptor, text.encode())
        os.close(descriptor)
        os.rename(path + ".tmp", path)  # noqa: PTH104 - pathlib takes as long to load as all the rest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
