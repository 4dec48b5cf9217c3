"""Colours by meaning, told apart by people who see colours differently: Okabe and Ito's set and shades of it.

Every colour also stands beside its name in a table, a legend or a hover: none carries meaning alone.
"""

from __future__ import annotations

from typing import Final

CATEGORY_COLOURS: Final = {
    "kernel": "#0072b2",
    "upload": "#56b4e9",
    "download": "#8ccbf0",
    "copy": "#3a93c9",
    "memset": "#b3dcf5",
    "mutex_wait": "#d55e00",
    "barrier_wait": "#cc79a7",
    "device_sync": "#882255",
    "pool_trim": "#aa4499",
    "mem_info": "#f0e442",
    "alloc": "#e69f00",
    "host_register": "#009e73",
    "host_unregister": "#5fd3b0",
    "free": "#c7a94b",
    "launch": "#6a4cb0",
    "sync_wait": "#8a8a2a",
    "upload_issue": "#117733",
    "profiler": "#b0413e",
    "cpu": "#8d99a6",
    "mutex_handover": "#f4a582",
    "dispatch": "#b07aa1",
    "starved": "#c9c2b8",
    "drained": "#dcd8d2",
    "unattributed": "#5b5b5b",
}
"""Category → colour; others get one of ``EXTRA_COLOURS``."""

EXTRA_COLOURS: Final = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#d55e00", "#6a4cb0", "#8a8a2a")
"""For stages, metrics and whatever has no colour of its own, in order of appearance."""


def colour_of(category: str) -> str:
    """The category's colour; the grey of the unknown for a name outside the table."""
    return CATEGORY_COLOURS.get(category, "#777777")
