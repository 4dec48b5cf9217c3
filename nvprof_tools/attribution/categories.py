"""The one vocabulary of all views and its order of precedence, as data."""

from __future__ import annotations

from typing import Final

KERNEL: Final = "kernel"
BUSY: Final = (KERNEL, "upload", "download", "copy", "memset")
"""Device work, in order of precedence."""

WAITS: Final = ("mutex_wait", "barrier_wait")
"""Waits that a range names: the only ranges that rank above calls."""

CALLS: Final = (
    "device_sync",
    "pool_trim",
    "mem_info",
    "alloc",
    "host_register",
    "host_unregister",
    "free",
    "launch",
    "sync_wait",
    "upload_issue",
)
"""API categories in order of precedence. Which call belongs to which is a pipeline file's business."""

IDLE: Final = ("mutex_handover", "dispatch", "starved", "drained")
"""Idle device time that no section explains."""

CATEGORIES: Final = (*BUSY, *WAITS, *CALLS, "profiler", "cpu", *IDLE, "unattributed")
"""Every category, in order of precedence."""

BLOCKER_ORDER: Final = (
    "host_register",
    "host_unregister",
    *(c for c in CALLS if c not in {"host_register", "host_unregister"}),
)
"""Which call is named as the blocker when several threads are in calls at once."""
