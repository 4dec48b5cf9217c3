"""How much memory this process took at most. `ru_maxrss` begins at the parent's own peak, through fork and exec."""

from __future__ import annotations

from pathlib import Path


def peak_bytes() -> int:
    """Peak of the resident memory of this program image, from the kernel."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
