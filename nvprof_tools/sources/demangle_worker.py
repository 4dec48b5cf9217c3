"""Turns mangled C++ names into readable ones, in a process of its own.

Run as ``python demangle_worker.py``: one name a line in, one line a name out, empty where there is none. A short name
can stand for an endless text, so this process may be killed at any line: it has little time and memory, and loads
nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

SECONDS, MEMORY = 1, 256 << 20
MOST = 1 << 16
"""Longer readable names are of no use to anyone."""
MOST_TOTAL = 32 << 20
"""All answers together: the reader keeps them."""


def main() -> int:
    """Answer until the names end; 1 where there is no demangler."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return 1
    demangle.restype, free.restype = ctypes.c_void_p, None
    demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    free.argtypes = (ctypes.c_void_p,)
    status = ctypes.c_int()
    total = 0
    for line in sys.stdin.buffer:
        found = demangle(line.rstrip(b"\n"), None, None, ctypes.byref(status))
        text = ctypes.string_at(found) if found else b""
        if found:
            free(found)
        total += len(text)
        if total > MOST_TOTAL:
            return 1
        # At once: what is behind a line that kills this process stays known.
        os.write(1, (text if len(text) <= MOST and b"\n" not in text else b"") + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
