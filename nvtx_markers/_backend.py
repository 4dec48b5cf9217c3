"""The one place that talks to the ``nvtx`` package: found at first use, absent without complaint."""

from __future__ import annotations

import os
import threading
from typing import Any, Final, Protocol

from nvtx_markers.conventions import CATEGORY_IDS, CONVENTIONS_VERSION, DOMAIN, UNKNOWN

Token = Any
"""What starting a range gives and ending it takes: a range id of NVTX, or None where nothing was started."""


class Backend(Protocol):
    """Emits into the shim's domain, or does nothing."""

    listening: bool

    def push(self, category: str, payload: int | None = None) -> None: ...
    def pop(self) -> None: ...
    def start(self, category: str, text: str | None = None, payload: int | None = None) -> Token: ...
    def end(self, token: Token) -> None: ...
    def mark(self, category: str, text: str) -> None: ...


class Silent:
    """No tool listens."""

    listening = False

    def push(self, category: str, payload: int | None = None) -> None:
        """Nothing."""

    def pop(self) -> None:
        """Nothing."""

    def start(self, category: str, text: str | None = None, payload: int | None = None) -> Token:
        """Nothing."""

    def end(self, token: Token) -> None:
        """Nothing."""

    def mark(self, category: str, text: str) -> None:
        """Nothing."""


class Nvtx:
    """Emits through the official ``nvtx`` package: one domain, registered strings, numbered categories."""

    listening = True

    def __init__(self, nvtx: Any) -> None:
        self._domain = nvtx.get_domain(DOMAIN)
        self._category: dict[str, int] = {}
        # NVTX numbers categories per domain as they are asked for: asking in our order gives our numbers.
        for name in CATEGORY_IDS:
            self._category[name] = self._domain.get_category_id(name)
        self._plain = {name: self._attributes(name, None, None) for name in CATEGORY_IDS}
        self.mark("shim", f"nvtx_markers conventions={CONVENTIONS_VERSION} source=python")

    def _attributes(self, category: str, text: str | None, payload: int | None) -> Any:
        # The package registers every text with the domain; an integer payload is stored as int64.
        return self._domain.get_event_attributes(
            message=category if text is None else text,
            color=None,
            category=self._category[category],
            payload=payload,
        )

    def push(self, category: str, payload: int | None = None) -> None:
        """Opens a range on this thread."""
        self._domain.push_range(self._plain[category] if payload is None else self._attributes(category, None, payload))

    def pop(self) -> None:
        """Closes this thread's innermost range."""
        self._domain.pop_range()

    def start(self, category: str, text: str | None = None, payload: int | None = None) -> Token:
        """Opens a range that may overlap others and end on another thread."""
        return self._domain.start_range(self._attributes(category, text, payload))

    def end(self, token: Token) -> None:
        """Closes what :meth:`start` opened; None is allowed."""
        if token is not None:
            self._domain.end_range(token)

    def mark(self, category: str, text: str) -> None:
        """One instant."""
        self._domain.mark(self._attributes(category, text, None))


SILENT: Final = Silent()
_lock = threading.Lock()
_found: Backend | None = None
_pid = -1


def _find() -> Backend:
    if not os.environ.get("NVTX_INJECTION64_PATH") or os.environ.get("NVTX_DISABLE"):
        return SILENT
    try:
        import nvtx

        return Nvtx(nvtx)
    except Exception:  # the marker shim disables itself rather than the application
        return SILENT


def backend() -> Backend:
    """The backend of this process; silent in a forked child, which the tool does not follow."""
    global _found, _pid  # noqa: PLW0603 - one per process, found once
    if _found is None:
        with _lock:
            if _found is None:
                _pid = os.getpid()
                _found = _find()
    elif _found is not SILENT and _pid != os.getpid():
        return SILENT
    return _found


def active() -> bool:
    """Whether a tool listens and the ``nvtx`` package is there to reach it."""
    return backend().listening


def field(value: object) -> str:
    """A number field of a section's text; None is "not known"."""
    return UNKNOWN if value is None else str(value)
