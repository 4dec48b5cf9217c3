"""Damaged and hostile pages: an answer, or an error with a slug; never anything else, never a hang."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import ncu_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.counters import LAUNCHES, VALUES, CounterTable
from nvprof_tools.sources.ncu import read_counters

MUTANTS = 300
TIME = "gpu__time_duration.sum"


def outcome(content: bytes) -> CounterTable | str:
    """The table, checked whole, or the error's slug."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.csv"
        path.write_bytes(content)
        try:
            table = read_counters([path])
        except SourceError as error:
            assert error.slug
            assert error.hint
            assert "\n" not in error.message
            return error.slug
    for part, schema in ((table.launches, LAUNCHES.schema), (table.values, VALUES.schema)):
        part.validate(full=True)
        assert part.schema.equals(schema)
    assert table.launches.column("launch").to_pylist() == list(range(len(table)))
    rows = table.values.column("launch").to_pylist()
    assert rows == sorted(rows)
    assert not rows or 0 <= rows[0] <= rows[-1] < len(table)
    for found in table.values.to_pylist()[:200]:
        assert (found["value"] is None) == (found["text"] is not None)
    return table


def seeds() -> list[bytes]:
    raw = ncu_files.ten_pages()[5].encode()
    details = b"\n".join(ncu_files.content("p9_launches.details.csv").split(b"\n")[:120])
    return [raw, details]


@pytest.mark.parametrize("kind", ["flip", "cut", "zero", "swap", "insert"])
def test_mutants(kind: str) -> None:
    rng = random.Random(f"ncu {kind}")
    survived = 0
    for number in range(MUTANTS // 5):
        data = bytearray(seeds()[number % 2])
        for _ in range(rng.choice((1, 1, 4, 40))):
            at = rng.randrange(len(data))
            if kind == "flip":
                data[at] ^= 1 << rng.randrange(8)
            elif kind == "cut":
                del data[at : at + rng.choice((1, 10, 1000, len(data)))]
            elif kind == "zero":
                run = rng.choice((1, 16, 500))
                data[at : at + run] = bytes(len(data[at : at + run]))
            elif kind == "swap":
                other = rng.randrange(len(data))
                data[at], data[other] = data[other], data[at]
            else:
                data[at:at] = rng.choice(
                    (b'"', b'""', b",", b"\n", b"\r", b"\0", b"==PROF==\n", b"\xff\xfe", b'"ID","Kernel Name"\n')
                )
            if not data:
                break
        survived += not isinstance(outcome(bytes(data)), str)
    assert survived > 0


def test_the_seeds_themselves_are_read() -> None:
    assert [len(t) for s in seeds() if isinstance(t := outcome(s), CounterTable)] == [1, 2]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text(alphabet=st.sampled_from('"",;\n\r\t 0123456789.abIDKernel Name()=%'), max_size=60), max_size=12)
)
def test_any_text_after_a_header(lines: list[str]) -> None:
    page = ncu_files.raw_page([TIME, "m"], ["ns", ""], [(ncu_files.launch(0, "k"), ("1,000", "2"))])
    table = outcome((page + "\n".join(lines)).encode())
    assert not isinstance(table, CounterTable) or table.metric(TIME)[0] == 1000.0 or len(lines) > 0
    if isinstance(table, CounterTable):
        assert table.launches.column("launch_index").to_pylist()[0] == 0


@pytest.mark.parametrize(
    "name",
    [
        "k" * 100_000,
        "<" * 20_000,
        "(" * 20_000 + ")" * 20_000,
        "a::" * 20_000,
        "f<" + "x," * 20_000 + ">",
        "[lambda" * 10_000,
        '=HYPERLINK("http://x")',
        "\u202egnp.k",
        "k\x1b[2J\x07",
        "{" * 5000 + "unnamed",
    ],
)
def test_hostile_kernel_names(name: str) -> None:
    page = ncu_files.raw_page([TIME], ["ns"], [(ncu_files.launch(0, name), ("1,000",))])
    table = outcome(page.encode())
    assert isinstance(table, CounterTable)
    assert table.launches.column("signature").to_pylist() == [name]


def test_one_endless_line() -> None:
    limits = replace(DEFAULT_LIMITS, string_bytes=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.csv"
        path.write_bytes(seeds()[0] + b"x" * 3_000_000)
        with pytest.raises(SourceError) as caught:
            read_counters([path], limits)
    assert caught.value.slug == "limit-string"


def test_a_quote_that_never_closes_costs_one_row() -> None:
    lines = ncu_files.raw_page([TIME], ["ns"], [(ncu_files.launch(i, "k"), ("1,000",)) for i in range(200)]).split("\n")
    lines[50] = lines[50].replace('"k"', '"k')
    table = outcome("\n".join(lines).encode())
    assert isinstance(table, CounterTable)
    assert len(table) == 199
    assert {i.slug: i.count for i in table.quality}["ncu-broken-rows"] == 1


def test_duplicate_and_nameless_columns() -> None:
    page = ncu_files.raw_page(["m", "m", "", "n"], ["", "", "", ""], [(ncu_files.launch(0, "k"), ("1", "2", "3", "4"))])
    table = outcome(page.encode())
    assert isinstance(table, CounterTable)
    assert [(r["metric"], r["value"]) for r in table.values.to_pylist()] == [("m", 1.0), ("n", 4.0)]


def test_huge_numbers_stay_numbers_or_are_counted() -> None:
    cells = ("9" * 400, "1e308", "123456789012345678901234567890")
    page = ncu_files.raw_page(["a", "b", "c"], ["Tbyte", "Tbyte", ""], [(ncu_files.launch(0, "k"), cells)])
    table = outcome(page.encode())
    assert isinstance(table, CounterTable)
    assert {r["metric"]: r["value"] for r in table.values.to_pylist()} == {"c": pytest.approx(1.2345678901234568e29)}
    assert {i.slug: i.count for i in table.quality}["ncu-not-a-number"] == 2


def test_reports_that_are_damaged_inside(tmp_path: Path) -> None:
    """The native reader may crash on these; the tool may not."""
    pytest.importorskip("ncu_report")
    rng = random.Random(7)
    data = ncu_files.content("p9_accumulate.ncu-rep")
    path = tmp_path / "r.ncu-rep"
    seen = set()
    for _ in range(8):
        mutant = bytearray(data)
        for _ in range(rng.choice((1, 20, 500))):
            mutant[rng.randrange(4, len(mutant))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(mutant))
        try:
            seen.add(f"{len(read_counters([path]))} launches")
        except SourceError as error:
            seen.add(error.slug)
    assert seen <= {"2 launches", "1 launches", "ncu-report-damaged", "limit-time", "counters-empty"}
