"""nvtx_markers: ranges and marks that tell a profiler which stage of which partition a thread is in.

With no tool attached, or without the ``nvtx`` package, every function does nothing and costs next to nothing;
:func:`timeline_event` still prints its log line. Importing this package loads nothing heavy and starts nothing.
What is emitted is laid down in :mod:`nvtx_markers.conventions`.
"""

from nvtx_markers._backend import active
from nvtx_markers.cuda import instrument_cuda, uninstrument_cuda
from nvtx_markers.library import include_directory, native_status, preload_library
from nvtx_markers.locks import wrap_lock
from nvtx_markers.ranges import mark, range, section  # noqa: A004 - the established name of the thing
from nvtx_markers.timeline import timeline_epoch, timeline_event

__all__ = [
    "active",
    "include_directory",
    "instrument_cuda",
    "mark",
    "native_status",
    "preload_library",
    "range",
    "section",
    "timeline_epoch",
    "timeline_event",
    "uninstrument_cuda",
    "wrap_lock",
]
