"""Readable kernel names: the base names that nsys gives, and names that are made to hurt."""

from __future__ import annotations

import sqlite3

import pytest

from nvprof_tools.model.kernel_names import base_name
from nvprof_tools.sources.demangle import LONGEST, readable
from tests.fixture_files import fixture_trace

NAMES = """SELECT DISTINCT m.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL
    JOIN StringIds s ON s.id = shortName JOIN StringIds m ON m.id = mangledName"""


@pytest.mark.parametrize("trace", ["p9_gw2", "torch_graph_node", "prover_graph", "public/pipit_cloverleaf_cuda"])
def test_base_names_are_those_of_nsys(trace: str) -> None:
    connection = sqlite3.connect(fixture_trace(trace))
    pairs = connection.execute(NAMES).fetchall()
    connection.close()
    assert len(pairs) > 5
    found = readable([mangled.encode() for mangled, _ in pairs])
    named = {m: base_name(name) if name else m for (m, _), name in zip(pairs, found, strict=True)}
    assert named == dict(pairs)


def test_only_symbols_are_asked_about() -> None:
    assert readable([b"plain", b"_Z3addi", b"_Zno way\n", b"", b"_Z" + b"x" * LONGEST]) == [
        None,
        "add(int)",
        None,
        None,
        None,
    ]


def test_a_name_that_kills_the_worker_takes_no_other_with_it() -> None:
    deep = b"_Z1f" + b"P" * (LONGEST - 6) + b"i"
    assert readable([deep, b"_Z3addi"]) == [None, "add(int)"]
    found = readable([b"_Z3addi", doubling(12), b"_Z3subi", doubling(60), b"_Z3muli"])
    assert [found[0], found[2], found[4]] == ["add(int)", "sub(int)", "mul(int)"]
    assert len(found[1] or "") > 30_000
    assert found[3] is None


def doubling(times: int) -> bytes:
    """Each part holds the one before it twice: a few hundred letters stand for more text than there is memory."""
    name = b"_Z1f1AIiiE"
    for i in range(times - 2):
        before = b"S" + base36(i) + b"_"
        name += b"S_I" + before + before + b"E"
    return name


def base36(number: int) -> bytes:
    digits, out = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", b""
    while True:
        out = digits[number % 36 : number % 36 + 1] + out
        number //= 36
        if not number:
            return out
