"""Where the native parts lie, and why they may be missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

_HERE: Final = Path(__file__).resolve().parent
LIBRARY: Final = "libnvtx_markers_preload.so"
BUILD_NOTE: Final = "_native_build.json"
"""Written by ``setup.py``: target → ``built`` or the reason why not."""


class NativeStatus(NamedTuple):
    """What ``doctor`` says about a native part."""

    built: bool
    reason: str


def preload_library() -> Path | None:
    """Path of ``libnvtx_markers_preload.so`` for ``LD_PRELOAD``, or None where it was not built."""
    path = _HERE / LIBRARY
    return path if path.is_file() else None


def include_directory() -> Path:
    """Folder of ``nvtx_markers.h``, for ``-I``."""
    return _HERE / "include"


def native_status(target: str = LIBRARY) -> NativeStatus:
    """Whether a native target was built when the package was installed, and if not, why."""
    if (_HERE / target).is_file():
        return NativeStatus(built=True, reason="built")
    try:
        note = json.loads((_HERE / BUILD_NOTE).read_text(encoding="utf-8"))
        reason = str(note[target]) if isinstance(note, dict) and target in note else "never tried"
    except (OSError, ValueError):
        reason = "never tried: the package was not installed by pip"
    return NativeStatus(built=False, reason=reason)
