"""Repeating steps of a program that no pipeline file describes, so that its runs can be compared step by step.

A step is an outermost push/pop range of a thread that comes again and again under one name, numbers left out
(``job:0:17`` and ``job:3:4`` are the same): the name that takes most of the threads' time in ranges.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import flags, ints, names

FEWEST: Final = 8
"""A name that comes less often is no step."""

LEAST_COVER: Final = 0.5
"""Share of all outermost range time that the steps must take."""

_NUMBER: Final = re.compile(r"\d+")


def stepped(pipeline: Pipeline, trace: Trace) -> Pipeline | None:
    """``pipeline`` with the trace's own steps as sections; null where nothing repeats."""
    found = step_names(trace)
    if not found:
        return None
    return replace(pipeline, ranges=replace(pipeline.ranges, section=found))


def step_names(trace: Trace) -> tuple[str, ...]:
    """The range names of the steps, sorted; empty where nothing repeats."""
    table = trace["nvtx_ranges"]
    pushed = flags(table, "push_pop") & ~flags(table, "open")
    code, words = names(table, "name")
    thread, start, end = ints(table, "thread"), ints(table, "start_ns"), ints(table, "end_ns")
    rows = np.flatnonzero(pushed & (code >= 0) & (end > start))
    order = rows[np.lexsort((-end[rows], start[rows], thread[rows]))]
    if not len(order):
        return ()
    outer = order[_outermost(thread[order], start[order], end[order])]
    shapes = [_NUMBER.sub("#", word) for word in words]
    unique = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    shape = np.array([unique[s] for s in shapes], np.int64)[code[outer]]
    length = end[outer] - start[outer]
    total = np.bincount(shape, weights=length.astype(np.float64), minlength=len(unique))
    count = np.bincount(shape, minlength=len(unique))
    total[count < FEWEST] = 0
    best = int(np.argmax(total))
    if total[best] < LEAST_COVER * length.sum() or total[best] == 0:
        return ()
    return tuple(sorted({words[c] for c in np.unique(code[outer][shape == best]).tolist()}))


def _outermost(thread: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Flags of rows that begin after every earlier row of their thread has ended; rows sorted by thread and start."""
    fresh = np.append(True, thread[1:] != thread[:-1])
    group = np.cumsum(fresh) - 1
    # One running maximum serves all threads when each one's times are moved past those of the one before.
    low, high = int(start.min()), int(end.max())
    stride = high - low + 1
    if stride * (int(group[-1]) + 1) >= np.iinfo(np.int64).max:
        return np.zeros(len(thread), bool)
    reach = np.maximum.accumulate(end - low + group * stride)
    before = np.append(np.iinfo(np.int64).min, reach[:-1])
    return np.asarray(fresh | (start - low + group * stride >= before))
