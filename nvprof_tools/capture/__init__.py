"""Driving the profilers; and :func:`collect`, which captures a stretch of a Python program from within."""

from nvprof_tools.capture.in_process import collect

__all__ = ["collect"]
