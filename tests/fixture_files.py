"""The committed traces, unpacked once a test session."""

from __future__ import annotations

import atexit
import functools
import lzma
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "fixtures"


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fixture-traces-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def fixture_trace(name: str) -> Path:
    """The SQLite file of ``fixtures/traces/NAME``, unpacked to a temporary folder; ``public/X`` for a public slice."""
    packed = ROOT / "traces" / name / "trace.sqlite.xz"
    target = _folder() / f"{name.replace('/', '_')}.sqlite"
    target.write_bytes(lzma.decompress(packed.read_bytes()))
    return target


def fixture_log(name: str) -> Path:
    """The pipeline's log beside the trace."""
    return ROOT / "traces" / name / "app.log"


def fixture_truth(name: str) -> Path:
    """What the program itself measured: thread, job/partition, step, start and end in UTC ns."""
    return ROOT / "traces" / name / "truth.csv"
