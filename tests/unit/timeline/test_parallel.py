"""Steps side by side: results in order, the first error, and nothing beside anything when memory is capped."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from nvprof_tools.timeline.parallel import at_once, both, one_at_a_time


def wait_for(mine: threading.Event, other: threading.Event, value: int) -> int:
    mine.set()
    assert other.wait(30)
    return value


def test_they_run_beside_each_other() -> None:
    """Each waits for the other to have begun."""
    a, b = threading.Event(), threading.Event()
    assert both(partial(wait_for, a, b, 1), partial(wait_for, b, a, 2)) == (1, 2)
    a, b = threading.Event(), threading.Event()
    assert at_once([partial(wait_for, a, b, 1), partial(wait_for, b, a, 2)]) == [1, 2]


def test_results_in_order_whatever_their_number() -> None:
    for count in (0, 1, 2, 40):
        assert at_once([partial(int, i) for i in range(count)]) == list(range(count))


def test_the_first_that_failed_is_told() -> None:
    def fail(text: str) -> int:
        raise ValueError(text)

    with pytest.raises(ValueError, match="a"):
        at_once([partial(int, 1), partial(fail, "a"), partial(fail, "b")])
    with pytest.raises(ValueError, match="one"):
        both(partial(fail, "one"), partial(fail, "other"))


def test_one_at_a_time() -> None:
    mine = threading.get_ident()
    with one_at_a_time():
        assert set(at_once([threading.get_ident] * 3)) | set(both(threading.get_ident, threading.get_ident)) == {mine}
