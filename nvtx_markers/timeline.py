"""The pipeline's own log: one line an event, and a mark that carries the same event with both clocks."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, TextIO

from nvtx_markers._backend import SILENT, backend
from nvtx_markers.conventions import TIMELINE_MARK_FORMAT, TIMELINE_PREFIX

_lock = threading.Lock()
_epoch_ns: int | None = None


def timeline_epoch() -> int:
    """The zero of the log's milliseconds (CLOCK_MONOTONIC, ns): set by the first call, or by the first event."""
    global _epoch_ns  # noqa: PLW0603 - one per process
    if _epoch_ns is None:
        with _lock:
            if _epoch_ns is None:
                _epoch_ns = time.monotonic_ns()
    return _epoch_ns


def _one_field(value: object) -> str:
    return str(value).replace("\n", " ").replace("\r", " ")


class _NoTap:
    """Keeps the preload library's tap, where it is loaded, from marking our own line a second time."""

    def __init__(self) -> None:
        self._pause: Any = None
        if "libnvtx_markers_preload" in os.environ.get("LD_PRELOAD", ""):
            import ctypes

            self._pause = getattr(ctypes.CDLL(None), "nvtx_markers_abi_tap_pause", None)

    def __enter__(self) -> None:
        if self._pause is not None:
            self._pause(1)

    def __exit__(self, *_: object) -> None:
        if self._pause is not None:
            self._pause(0)


_no_tap: _NoTap | None = None


def timeline_event(event: str, job: str, *, stream: TextIO | None = None, **details: object) -> None:
    """Prints ``TIMELINE,<ms>,<event>,<job>,<k=v,...>`` and makes the mark of it.

    :param event: the event's name, such as ``GPU_START``.
    :param job: the job's name.
    :param stream: where the line goes; stderr by default. Written and flushed in one piece.
    :param details: become ``key=value`` fields, in the order given.
    """
    global _no_tap  # noqa: PLW0603 - made at first use: whether a library is preloaded does not change
    epoch_ns = timeline_epoch()
    milliseconds = (time.monotonic_ns() - epoch_ns) // 1_000_000
    text = ",".join(f"{key}={_one_field(value)}" for key, value in details.items())
    line = f"{TIMELINE_PREFIX}{milliseconds},{_one_field(event)},{_one_field(job)},{text}"
    emitter = backend()
    if emitter is not SILENT:
        wall_ns, mono_ns = time.time_ns(), time.monotonic_ns()
        emitter.mark("timeline", TIMELINE_MARK_FORMAT.format(line=line, wall_ns=wall_ns, mono_ns=mono_ns, late_ns=0))
    out = sys.stderr if stream is None else stream
    if _no_tap is None:
        _no_tap = _NoTap()
    with _no_tap:
        out.write(line + "\n")
        out.flush()
