"""What a process of ours asks of the interpreter and the C library, before it works on large arrays."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_GIB = 1 << 30


def frugal() -> None:
    """For a process whose memory will be capped; before Arrow is imported, whose own pool reserves a gibibyte at once,
    and what is reserved counts."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def prepare() -> None:
    """Keep freed memory, collect no cycles, and hand the interpreter over often: a command ends with its process.

    Every temporary array would otherwise be mapped, cleared and given back again, and each collection would look at
    millions of small objects of a report that cannot be garbage. Elsewhere than on glibc only the latter.
    """
    gc.disable()
    sys.setswitchinterval(0.0005)
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _GIB)
    mallopt(_M_TRIM_THRESHOLD, 2 * _GIB - 1)
    mallopt(_M_ARENA_MAX, 1)
