"""Readable names of kernels: a capture holds mangled ones."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

from nvprof_tools.sources import demangle_worker

MOST_NAMES = 50_000
LONGEST = 8_192
_TIMEOUT = 10
_TRIES = 2
_MANGLED = re.compile(rb"_Z[\w.$]+", re.ASCII)


def is_mangled(name: bytes) -> bool:
    """Whether it may be a C++ symbol."""
    return len(name) <= LONGEST and _MANGLED.fullmatch(name) is not None


def readable(names: Sequence[bytes]) -> list[str | None]:
    """Each name as a person would write it; null where it is no C++ symbol, or cannot be told within reason.

    The work is done in a process of its own: a hostile name can ask for more memory and time than there is. Names that
    kill it stay as they are.
    """
    asked = [i for i, name in enumerate(names) if is_mangled(name)][:MOST_NAMES]
    found: list[str | None] = [None] * len(names)
    for _ in range(_TRIES):
        if not asked:
            break
        lines = _answers([names[i] for i in asked])
        for i, line in zip(asked, lines, strict=False):
            found[i] = line.decode("utf-8", "replace") or None
        # The one after the last answer ended the worker.
        asked = asked[len(lines) + 1 :]
    return found


def _answers(names: Sequence[bytes]) -> list[bytes]:
    """The worker's lines, as far as it came."""
    command = [sys.executable, "-I", "-S", "-W", "ignore", demangle_worker.__file__]
    try:
        said = subprocess.run(
            command, input=b"".join(name + b"\n" for name in names), capture_output=True, timeout=_TIMEOUT, check=False
        ).stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    except OSError:
        return []
    # The last line may be torn.
    return said.split(b"\n")[:-1]
