"""A cap on memory: steps follow each other, and what must be held whole lies in files that the system may page out.

Files that are mapped do not count against the cap, so what counts is one step's own work. What needs more than the cap
ends with its name.
"""

from __future__ import annotations

import ctypes
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB
from nvprof_tools.timeline.parallel import one_at_a_time

LEAST_BYTES = 256 * MIB
"""What the interpreter and its libraries take before they read anything, with some room to work."""
WORTH_A_FILE = MIB
"""What is smaller stays in memory."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_CAPPED: ContextVar[bool] = ContextVar("_CAPPED", default=False)

Number = TypeVar("Number", bound=np.generic)


@contextmanager
def capped(most: int | None) -> Iterator[None]:
    """Let this process hold at most ``most`` bytes of memory of its own meanwhile; null: no cap.

    The system refuses what goes beyond, so the cap holds whatever an input is. Files that are mapped do not count.

    :raises SourceError: ``limit-memory``.
    """
    if most is None:
        yield
        return
    if most < LEAST_BYTES:
        raise _too_little(most, f"less than the {LEAST_BYTES:,} that any trace needs")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
    pool = pa.default_memory_pool()
    # What is only reserved counts as well: Arrow's own pool takes much at once, and the C library keeps what was freed.
    pa.set_memory_pool(pa.system_memory_pool())
    _keep_little()
    resource.setrlimit(resource.RLIMIT_DATA, (min([most, *known]), hard))
    token = _CAPPED.set(True)
    try:
        with one_at_a_time():
            yield
    except MemoryError as error:
        raise _too_little(most, "and this trace needs more") from error
    finally:
        _CAPPED.reset(token)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        pa.set_memory_pool(pool)


def room(count: int, kind: type[Number]) -> npt.NDArray[Number]:
    """An array to fill; where memory is capped and it is large, one that lies in a file without a name.

    :raises SourceError: ``temporary-unwritable``.
    """
    size = count * np.dtype(kind).itemsize
    if not _CAPPED.get() or size < WORTH_A_FILE:
        return np.empty(count, kind)
    with _explained(), tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)  # a full disk is told now, not by a signal when a page is written
        return np.memmap(file, kind, "r+", shape=(count,))


def aside(table: pa.Table) -> pa.Table:
    """The same table; where memory is capped and it is large, mapped from a file without a name.

    :raises SourceError: ``temporary-unwritable``.
    """
    if not _CAPPED.get() or table.nbytes < WORTH_A_FILE:
        return table
    with _explained(), tempfile.NamedTemporaryFile(suffix=".arrow") as file:
        with pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)
        file.flush()
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(
            "temporary-unwritable",
            f"what does not fit into the memory allowed cannot be put into a file: {error.strerror or 'it fails'}",
            "set TMPDIR to a folder with room on a disk, or raise --limits memory",
        ) from error


def _keep_little() -> None:
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, MIB)
        libc.mallopt(_M_TRIM_THRESHOLD, 8 * MIB)
        libc.malloc_trim(0)


def _too_little(most: int, why: str) -> SourceError:
    return SourceError("limit-memory", f"the memory allowed is {most:,} bytes, {why}", "raise it: --limits memory=8GiB")
