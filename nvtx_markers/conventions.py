"""What the shim writes and the importer reads: names, texts and numbers, as pure data.

Every part of the shim (Python, C header, C ABI, preload library) emits into one NVTX domain and keeps to these forms;
``docs/markers.md`` explains them and a test compares the C header with this module. Only ``typing`` is imported.
"""

from __future__ import annotations

from typing import Final

DOMAIN: Final = "nvprof_tools"
"""Name of the NVTX domain (``NVTX_EVENTS`` eventType 75 names it; match by process and ``domainId``)."""

CONVENTIONS_VERSION: Final = 1
"""Raised when a text form below changes in a way an older reader would misread."""

CATEGORY_IDS: Final[dict[str, int]] = {
    "mutex_wait": 1,
    "mutex_held": 2,
    "barrier_wait": 3,
    "driver_lock": 4,
    "device_sync": 5,
    "pool_trim": 6,
    "mem_info": 7,
    "alloc": 8,
    "host_register": 9,
    "host_unregister": 10,
    "upload": 11,
    "kernels": 12,
    "free": 13,
    "launch": 14,
    "synthesis": 15,
    "section": 16,
    "timeline": 17,
    "shim": 18,
}
"""NVTX category number of each name. A range's *text* is the name itself; the number is the same fact for tools
that filter by category. ``section``, ``timeline`` and ``shim`` number the texts with fields below."""

RANGES: Final = tuple(name for name in CATEGORY_IDS if name not in {"section", "timeline", "shim"})
"""Texts of plain ranges, in the order of their numbers."""

SECTION_FORMAT: Final = "section job={job} partition={partition} worker={worker}"
"""Text of a section range (start/end range: sections may overlap and may end on another thread). A partition or
worker that is not known is ``-``. The job may hold spaces; partition and worker are the last two fields."""

SECTION_PATTERN: Final = r"^section job=(?P<job>.*) partition=(?P<partition>-|\d+) worker=(?P<worker>-|\d+)$"
"""RE2-compatible pattern of :data:`SECTION_FORMAT`."""

UNKNOWN: Final = "-"

TIMELINE_PREFIX: Final = "TIMELINE,"

TIMELINE_MARK_FORMAT: Final = "{line}|wall_ns={wall_ns}|mono_ns={mono_ns}|late_ns={late_ns}"
"""Text of a timeline mark: the log line without its newline, then three fields.

``wall_ns`` and ``mono_ns`` are CLOCK_REALTIME and CLOCK_MONOTONIC, read immediately before the mark was made: the
mark's own trace time is that instant. ``late_ns`` is how much earlier the line's first byte was written (a line may
take nine writes): the event itself happened at the mark's time minus ``late_ns``."""

TIMELINE_MARK_PATTERN: Final = (
    r"^(?P<line>TIMELINE,.*)\|wall_ns=(?P<wall_ns>\d+)\|mono_ns=(?P<mono_ns>\d+)\|late_ns=(?P<late_ns>\d+)$"
)
"""RE2-compatible pattern of :data:`TIMELINE_MARK_FORMAT`."""

SHIM_PREFIX: Final = "nvtx_markers "
"""First bytes of the one mark each process makes when the preload library or the header starts up:
``nvtx_markers conventions=1 source=preload mutex=on held=on driver_lock=on cuda=on tap=on osrt=off``.
``source`` is ``preload``, ``header`` or ``python``. A part is ``on`` or ``off`` (asked for). ``osrt=on``: nsys traced
the OS runtime too; its OSRT rows then lack the functions the library wraps (mutex and condition waits, ``write``), and
the lock waits are found in ``mutex_wait`` and ``driver_lock`` ranges instead. Ranges with the text ``shim`` around this
mark warm the tool up and mean nothing."""

SHIM_PATTERN: Final = r"^nvtx_markers conventions=(?P<conventions>\d+) source=(?P<source>\w+)(?P<parts>( \w+=[\w-]+)*)$"

HELD_RANGE: Final = "mutex_held"
WAIT_RANGE: Final = "mutex_wait"
DRIVER_LOCK_RANGE: Final = "driver_lock"
"""Lock ranges carry the lock's address as an integer payload (``uint64Value``, from Python ``int64Value``).
``mutex_held`` is a start/end range; the waits are push/pop. A ``mutex_wait`` that lies inside a CUDA call of its thread
is one of the driver's locks."""

API_CATEGORY: Final[dict[str, str]] = {
    "DeviceSynchronize": "device_sync",
    "CtxSynchronize": "device_sync",
    "MemPoolTrimTo": "pool_trim",
    "DeviceGetDefaultMemPool": "pool_trim",
    "MemPoolSetAttribute": "pool_trim",
    "MemPoolGetAttribute": "pool_trim",
    "MemGetInfo": "mem_info",
    "Malloc": "alloc",
    "MallocAsync": "alloc",
    "MallocFromPoolAsync": "alloc",
    "MallocHost": "alloc",
    "HostAlloc": "alloc",
    "MemAlloc": "alloc",
    "MemAllocAsync": "alloc",
    "MemAllocFromPoolAsync": "alloc",
    "MemAllocHost": "alloc",
    "MemHostAlloc": "alloc",
    "HostRegister": "host_register",
    "MemHostRegister": "host_register",
    "HostUnregister": "host_unregister",
    "MemHostUnregister": "host_unregister",
    "FreeHost": "host_unregister",
    "MemFreeHost": "host_unregister",
    "Memcpy": "upload",
    "MemcpyAsync": "upload",
    "Memcpy2D": "upload",
    "Memcpy2DAsync": "upload",
    "MemcpyHtoD": "upload",
    "MemcpyHtoDAsync": "upload",
    "Free": "free",
    "FreeAsync": "free",
    "MemFree": "free",
    "MemFreeAsync": "free",
    "EventDestroy": "free",
    "StreamDestroy": "free",
    "LaunchKernel": "launch",
    "LaunchKernelExC": "launch",
    "LaunchKernelEx": "launch",
    "LaunchCooperativeKernel": "launch",
    "GraphLaunch": "launch",
}
"""CUDA call (without its ``cuda`` or ``cu`` prefix) → range the shim opens around it. A copy call gives ``upload``
whatever its direction: the trace's own copy rows know the direction, the range only says where the thread was."""
