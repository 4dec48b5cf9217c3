"""How many random examples a test tries: few by default, ``NVPROF_TOOLS_EXAMPLES=2000`` for as many as that."""

from __future__ import annotations

import os


def examples(usual: int) -> int:
    """The environment's number where it is greater than the usual one."""
    return max(usual, int(os.environ.get("NVPROF_TOOLS_EXAMPLES", "0")))
