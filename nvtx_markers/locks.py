"""Locks whose waits and holds can be seen."""

from __future__ import annotations

import inspect
from functools import partial
from types import TracebackType
from typing import Any

from nvtx_markers._backend import SILENT, Token, backend
from nvtx_markers.conventions import HELD_RANGE, WAIT_RANGE


def _can_try(lock: Any) -> bool:
    """Whether ``acquire(False)`` means "do not wait"; then an uncontended lock costs no wait range."""
    try:
        first = next(iter(inspect.signature(lock.acquire).parameters), "")
    except (TypeError, ValueError):
        # Built-in locks of some versions have no signature, and take `blocking` first.
        return type(lock).__module__ in {"_thread", "threading"}
    return first in {"blocking", "block"}


class MarkedLock:
    """A lock of any kind with a range around each wait and each hold. Made by :func:`wrap_lock`.

    Everything else the wrapped lock has is passed through, so it serves ``with``, ``threading.Condition`` and code that
    asks ``locked()``.
    """

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._can_try = _can_try(lock)
        self._reentrant = type(lock).__name__ == "RLock"
        # Changed by holders only, so under the lock itself (a semaphore has several holders: the list is a pool).
        self._holds: list[Token] = []
        self._depth = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_lock" not in self.__dict__:  # half-made, by pickle or copy
            raise AttributeError(name)
        value = getattr(self._lock, name)
        # How a Condition gives up a re-entrant lock and takes it back.
        if name == "_release_save":
            return partial(self._release_save_marked, value)
        return partial(self._acquire_restore_marked, value) if name == "_acquire_restore" else value

    def _release_save_marked(self, release_save: Any) -> Any:
        depth, self._depth = self._depth, 0
        self._end_hold()
        return depth, release_save()

    def _acquire_restore_marked(self, acquire_restore: Any, state: Any) -> None:
        depth, saved = state
        acquire_restore(saved)
        self._begin_hold()
        self._depth = depth

    def _begin_hold(self) -> None:
        self._depth += 1
        if self._depth == 1 or not self._reentrant:
            self._holds.append(backend().start(HELD_RANGE, payload=id(self._lock)))

    def _end_hold(self) -> None:
        if self._holds:
            backend().end(self._holds.pop())

    def acquire(self, *args: Any, **kwargs: Any) -> Any:
        """As the wrapped lock's; a wait is marked, and a hold from success on."""
        emitter = backend()
        if emitter is SILENT:
            return self._lock.acquire(*args, **kwargs)
        if not (args[0] if args else kwargs.get("blocking", kwargs.get("block", True))):
            result = self._lock.acquire(*args, **kwargs)
        elif self._can_try and self._lock.acquire(False):
            result = True
        else:
            emitter.push(WAIT_RANGE, id(self._lock))
            try:
                result = self._lock.acquire(*args, **kwargs)
            finally:
                emitter.pop()
        if result is None or result:
            self._begin_hold()
        return result

    def release(self, *args: Any, **kwargs: Any) -> Any:
        """As the wrapped lock's; the hold range ends just before, so that holds never overlap."""
        if self._depth > 0:
            self._depth -= 1
            if self._depth == 0 or not self._reentrant:
                self._end_hold()
        return self._lock.release(*args, **kwargs)

    def __enter__(self) -> Any:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def wrap_lock(lock: Any) -> MarkedLock:
    """The same lock with ``mutex_wait`` and ``mutex_held`` ranges.

    :param lock: a ``threading.Lock``, ``RLock``, ``Semaphore``, or anything with ``acquire`` and ``release``.
        Wrap the GPU's lock once and give everybody the wrapped one.
    :raises TypeError: the object is no lock, or one whose ``acquire`` is a coroutine.
    """
    if isinstance(lock, MarkedLock):
        return lock
    acquire = getattr(lock, "acquire", None)
    if not callable(acquire) or not callable(getattr(lock, "release", None)):
        raise TypeError(f"{type(lock).__name__} has no acquire and release")
    if inspect.iscoroutinefunction(acquire):
        raise TypeError(f"{type(lock).__name__} is an asynchronous lock: a wait there blocks no thread")
    return MarkedLock(lock)
