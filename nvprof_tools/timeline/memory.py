"""A cap on memory: everything goes one step after the other, and what needs more than the cap ends with its name."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB
from nvprof_tools.timeline.parallel import one_at_a_time

LEAST_BYTES = 256 * MIB
"""What the interpreter and its libraries take before they read anything, with some room to work."""


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
    resource.setrlimit(resource.RLIMIT_DATA, (min([most, *known]), hard))
    try:
        with one_at_a_time():
            yield
    except MemoryError as error:
        raise _too_little(most, "and this trace needs more") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _too_little(most: int, why: str) -> SourceError:
    return SourceError("limit-memory", f"the memory allowed is {most:,} bytes, {why}", "raise it: --limits memory=8GiB")
