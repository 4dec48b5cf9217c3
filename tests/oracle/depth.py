"""How many random examples a test tries: few by default, ``NVPROF_TOOLS_EXAMPLES=5000`` for as many as that."""

from __future__ import annotations

import os

from hypothesis import settings

DEEP = int(os.environ.get("NVPROF_TOOLS_EXAMPLES", "0"))


def examples(usual: int) -> int:
    """The environment's number where it is greater than the usual one."""
    return max(usual, DEEP)


def settled(usual: int) -> settings:
    """The same examples every time by default, ever new ones when asked for more. No test is about time."""
    return settings(max_examples=examples(usual), deadline=None, derandomize=not DEEP, database=None)


thorough = settled(60)
