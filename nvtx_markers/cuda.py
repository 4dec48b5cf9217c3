"""Ranges around the calls of cuda-python: ``cuda.bindings`` runtime and driver, and launches of ``cuda.core``."""

from __future__ import annotations

import functools
import importlib
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from nvtx_markers._backend import SILENT, backend
from nvtx_markers.conventions import API_CATEGORY

_MODULES: Final = ("cuda.bindings.runtime", "cuda.bindings.driver")
_LAUNCHERS: Final = (("cuda.core", "launch"), ("cuda.core.experimental", "launch"))
_SUFFIX: Final = re.compile(r"(_v\d+|_ptsz|_ptds)+$")

_lock = threading.Lock()
_originals: list[tuple[Any, str, Any]] = []


def _category(name: str) -> str | None:
    for prefix in ("cuda", "cu"):
        if name.startswith(prefix):
            return API_CATEGORY.get(_SUFFIX.sub("", name.removeprefix(prefix)))
    return None


def _marked(call: Callable[..., Any], category: str) -> Callable[..., Any]:
    @functools.wraps(call)
    def marked(*args: Any, **kwargs: Any) -> Any:
        emitter = backend()
        if emitter is SILENT:
            return call(*args, **kwargs)
        emitter.push(category)
        try:
            return call(*args, **kwargs)
        finally:
            emitter.pop()

    return marked


def _wrap(module: Any, name: str, category: str) -> None:
    original = getattr(module, name)
    if callable(original):
        setattr(module, name, _marked(original, category))
        _originals.append((module, name, original))


def _imported(name: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except Exception:  # not installed, or no driver: then there is nothing to mark
        return None


def instrument_cuda() -> tuple[str, ...]:
    """Opens a range around each CUDA call and launch made through cuda-python, named by its category.

    Calls that a program imported *by name* before (``from cuda.bindings.runtime import cudaMalloc``) keep the plain
    function: call this first. Does nothing, at no cost, where no tool listens or cuda-python is missing; calling it
    twice is one.

    :returns: the names that were wrapped, such as ``cuda.bindings.runtime.cudaMalloc``.
    """
    with _lock:
        if backend() is not SILENT and not _originals:
            for module_name in _MODULES:
                module = _imported(module_name)
                for name in [] if module is None else dir(module):
                    category = _category(name)
                    if category is not None:
                        _wrap(module, name, category)
            for module_name, name in _LAUNCHERS:
                module = _imported(module_name)
                if module is not None and hasattr(module, name):
                    _wrap(module, name, "launch")
        return tuple(f"{module.__name__}.{name}" for module, name, _ in _originals)


def uninstrument_cuda() -> None:
    """Puts the plain functions back."""
    with _lock:
        while _originals:
            module, name, original = _originals.pop()
            setattr(module, name, original)
