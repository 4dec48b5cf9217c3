"""How reports name things and write numbers: one place, so that every format says the same."""

from __future__ import annotations

from typing import Final

BUSY: Final = ("kernel", "upload", "download", "copy", "memset")
"""Categories that are device work; every other one is idle time of the device."""

PINNING: Final = ("host_register", "host_unregister")

CATEGORY_MEANING: Final = {
    "kernel": "a kernel or graph runs",
    "upload": "host-to-device copy, no kernel",
    "download": "device-to-host copy, no kernel",
    "copy": "other copy, no kernel",
    "memset": "memory set, no kernel",
    "mutex_wait": "waiting for the GPU mutex",
    "barrier_wait": "GPU thread waits for another CPU thread",
    "device_sync": "whole-device synchronisation, nothing running",
    "pool_trim": "memory-pool trimming",
    "mem_info": "asking for free memory",
    "alloc": "allocating memory",
    "host_register": "pinning host pages",
    "host_unregister": "unpinning host pages",
    "free": "freeing memory, events, streams",
    "launch": "inside a launch call, device idle",
    "sync_wait": "stream or event wait, nothing of one's own running",
    "upload_issue": "inside a copy call, copy not running",
    "profiler": "the profiler's own overhead",
    "cpu": "section's thread computes or waits, no traced call",
    "mutex_handover": "mutex free, somebody waits for it",
    "dispatch": "work queued, no section open",
    "starved": "nothing queued, synthesis running",
    "drained": "nothing queued, no synthesis",
    "unattributed": "no evidence covers it",
}
"""Category → what it means, a few words. Names outside this table are shown as they are."""

PHRASES: Final = {
    "cpu": "CPU work in the sections",
    "launch": "launch calls",
    "barrier_wait": "waiting at the barrier for a CPU thread",
    "mem_info": "asking for free memory",
    "alloc": "allocating memory",
    "free": "freeing memory",
    "host_register": "pinning",
    "host_unregister": "unpinning",
    "upload_issue": "issuing copies",
    "sync_wait": "stream synchronisation",
    "device_sync": "device synchronisation",
    "pool_trim": "trimming memory pools",
    "profiler": "the profiler itself",
    "mutex_wait": "waiting for the GPU mutex",
    "mutex_handover": "handing the mutex over",
    "dispatch": "picking queued work up",
    "starved": "waiting for synthesis",
    "drained": "having no work at all",
    "unattributed": "nothing the evidence names",
}
"""Category → how a sentence names it, after "idled … for"."""

COPYING: Final = {
    "upload": "copies to the device",
    "download": "copies from the device",
    "copy": "copies within the device",
    "memset": "memory sets",
}
"""Device work that is no kernel, as a sentence's subject."""

RUNG_MEANING: Final = {
    "timeline_sum": "log's GPU brackets, summed",
    "timeline_bracket": "log's GPU brackets, union",
    "mutex_held": "GPU mutex held",
    "nvml_utilisation": "as nvidia-smi shows it",
    "device_busy": "kernels, copies, memsets",
    "gr_active": "graphics/compute engine active",
    "kernel_busy": "kernels running",
    "sm_active": "SMs active",
    "warps_in_flight": "warps in flight, of peak",
    "sm_issue": "SM issue slots used",
    "dram_read": "DRAM read, of peak",
    "dram_write": "DRAM write, of peak",
    "pcie_rx": "PCIe receive, of peak",
    "pcie_tx": "PCIe send, of peak",
}
"""Rung → what it means, a few words."""

RUNG_PHRASES: Final = {
    "timeline_bracket": "the log's brackets",
    "mutex_held": "the held mutex",
    "device_busy": "the busy device",
    "kernel_busy": "running kernels",
}
"""Nested rungs as a sentence names them."""

SEVERITY_WORDS: Final = {"error": "error", "data-loss": "DATA LOSS", "notice": "notice", "info": "info"}

MISSING: Final = "-"
"""Stands for "not measured" in a table; never zero."""


def ms(value: int | None) -> str:
    """``1,157.0``: milliseconds with one decimal; what is there but rounds to nothing is ``<0.1``."""
    if value is None:
        return MISSING
    if 0 < value < 50_000:
        return "<0.1"
    return f"{value / 1e6:,.1f}"


def duration(value: float | None) -> str:
    """``8.1 us``, ``10.7 ms``, ``1.16 s``: three digits and a unit."""
    if value is None:
        return MISSING
    if abs(value) < 999.5:
        return f"{value:.0f} ns"
    for limit, scale, unit in ((1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if abs(value) < limit * 0.9995:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{_three_digits(value / 1e9)} s"


def spoken_ms(value: int) -> str:
    """``150 ms``, ``4.2 ms``, ``0.24 ms``: for sentences."""
    scaled = value / 1e6
    if abs(scaled) < 0.1:
        return duration(value)
    return f"{scaled:,.0f} ms" if abs(scaled) >= 10 else f"{scaled:.1f} ms"


def percent(fraction: float | None) -> str:
    """``98.6 %`` with one decimal."""
    return MISSING if fraction is None else f"{fraction * 100:.1f} %"


def spoken_percent(fraction: float) -> str:
    """``56 %``; a decimal where a whole number would hide the point (below 10, or nearly 100)."""
    value = fraction * 100
    plain = f"{value:.0f}"
    return f"{value:.1f} %" if value < 9.95 or (plain == "100" and abs(value - 100) >= 0.05) else f"{plain} %"


def number(value: float | None, digits: int = 1) -> str:
    """A plain figure with a fixed number of decimals."""
    return MISSING if value is None else f"{value:,.{digits}f}"


def count(value: int | None) -> str:
    """``1,798``."""
    return MISSING if value is None else f"{value:,}"


def data_size(value: int | None) -> str:
    """``4.66 GiB``."""
    if value is None:
        return MISSING
    scaled = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(scaled) < 1024:
            return f"{scaled:.0f} {unit}" if unit == "B" else f"{_three_digits(scaled)} {unit}"
        scaled /= 1024
    return f"{_three_digits(scaled)} TiB"


def plural(amount: int, noun: str) -> str:
    """``1 job``, ``10 partitions``."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
