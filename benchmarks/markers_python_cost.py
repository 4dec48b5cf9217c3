"""What the Python package costs where no tool listens: ns an operation, best of several repeats, one a line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import nvtx_markers


def best(work: Callable[[], None], count: int = 100_000, repeats: int = 7) -> float:
    """The fastest repeat, in ns an operation."""
    fastest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(count):
            work()
        fastest = min(fastest, (time.perf_counter_ns() - start) / count)
    return fastest


def main() -> None:
    """Prints the figures."""
    plain, marked = threading.Lock(), nvtx_markers.wrap_lock(threading.Lock())
    upload = nvtx_markers.range("upload")

    def nothing() -> None:
        pass

    def with_plain_lock() -> None:
        with plain:
            pass

    def with_marked_lock() -> None:
        with marked:
            pass

    def with_range() -> None:
        with upload:
            pass

    for work in (nothing, with_plain_lock, with_marked_lock, with_range):
        print(f"{work.__name__} {best(work):.0f}")


if __name__ == "__main__":
    main()
