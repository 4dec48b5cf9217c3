from __future__ import annotations

import pytest

from nvprof_tools.sources.ncu_units import base_unit


@pytest.mark.parametrize(
    ("printed", "unit", "factor"),
    [
        ("ns", "ns", 1.0),
        ("nsecond", "ns", 1.0),
        ("us", "ns", 1e3),
        ("usecond", "ns", 1e3),
        ("msecond", "ns", 1e6),
        ("second", "ns", 1e9),
        ("Ghz", "hz", 1e9),
        ("Mhz", "hz", 1e6),
        ("hz", "hz", 1.0),
        ("cycle/nsecond", "hz", 1e9),
        ("cycle/usecond", "hz", 1e6),
        ("cycle/second", "hz", 1.0),
        ("byte", "byte", 1.0),
        ("Kbyte", "byte", 1e3),
        ("Gbyte", "byte", 1e9),
        ("Kibyte", "byte", 1024.0),
        ("Tbyte/s", "byte/s", 1e12),
        ("Gbyte/second", "byte/s", 1e9),
        ("byte/nsecond", "byte/s", 1e9),
        ("Kbyte/cycle", "byte/cycle", 1e3),
        ("Kbyte/block", "byte/block", 1e3),
        ("sector/ns", "sector/s", 1e9),
        ("sector/ms", "sector/s", 1e3),
        ("%/Kbyte", "%/byte", 1e3),  # as the report itself has it: the prefix scales the number
        ("%", "%", 1.0),
        ("", "", 1.0),
        ("register/thread", "register/thread", 1.0),
        ("inst/cycle", "inst/cycle", 1.0),
        ("warp", "warp", 1.0),
        ("branches", "branches", 1.0),
        ("never heard of", "never heard of", 1.0),
        ("/", "/", 1.0),
    ],
)
def test_every_spelling_of_every_release(printed: str, unit: str, factor: float) -> None:
    found, scale = base_unit(printed)
    assert found == unit
    assert scale == pytest.approx(factor, rel=1e-15)


def test_a_prefix_alone_is_no_unit() -> None:
    assert base_unit("Mega") == ("Mega", 1.0)
    assert base_unit("SM") == ("SM", 1.0)
