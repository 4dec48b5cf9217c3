"""Independent steps side by side: numpy lets other threads run while it works on large arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

MOST_THREADS = 4
"""Beside the caller's own."""

T = TypeVar("T")
U = TypeVar("U")


_ALONE: ContextVar[bool] = ContextVar("_ALONE", default=False)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Meanwhile steps follow each other: what one holds is free before the next begins."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def processors(most: int) -> int:
    """How many threads one step may use by itself."""
    return 1 if _ALONE.get() else min(most, len(os.sched_getaffinity(0)))


def at_once(steps: Sequence[Callable[[], T]]) -> list[T]:
    """What each step gives, in their order, whichever ends first; raises what the first of them that failed raised."""
    if len(steps) < 2 or _ALONE.get():
        return [step() for step in steps]
    with ThreadPoolExecutor(min(MOST_THREADS, len(steps) - 1), thread_name_prefix="step") as pool:
        others = [pool.submit(step) for step in steps[1:]]
        return [steps[0](), *(other.result() for other in others)]


class Steps:
    """Steps that were begun side by side; what each gives is asked for where it is needed."""

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self._pool = pool

    def begin(self, step: Callable[[], T]) -> Callable[[], T]:
        """Begin a step. Calling what this gives waits for its result, or raises what it raised."""
        if self._pool is not None:
            return self._pool.submit(step).result
        given = step()
        return lambda: given


@contextmanager
def side_by_side() -> Iterator[Steps]:
    """Steps begun inside run at once, as far as threads go; all have ended afterwards."""
    if _ALONE.get():
        yield Steps(None)
        return
    with ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="step") as pool:
        yield Steps(pool)


def both(one: Callable[[], T], other: Callable[[], U]) -> tuple[T, U]:
    """What each of two steps gives."""
    with side_by_side() as steps:
        coming = steps.begin(other)
        return one(), coming()
