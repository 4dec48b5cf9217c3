"""Any table SQLite can hold: the decoder gives SQLite's rows, and refuses only what it says it refuses."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nvprof_tools.sources.bulk_pages import WORDS
from tests.native.pages.decoder import decoder, opened, rows_of, stored_rows
from tests.native.pages.tables import Recipe, make, raw_text

INTEGERS = st.one_of(
    st.integers(-2, 2),
    st.integers(-(2**63), 2**63 - 1),
    st.builds(
        lambda bits, off, sign: max(-(2**63), min(2**63 - 1, sign * ((1 << bits) + off))),
        st.sampled_from([7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 63]),
        st.integers(-2, 2),
        st.sampled_from([1, -1]),
    ),
)
TEXTS = st.one_of(
    st.sampled_from(["", "kernel", "a\0b", "é" * 30, "1", "1.5"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.builds(lambda n: "x" * n, st.integers(50, 3000)),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INTEGER": st.one_of(st.none(), INTEGERS),
    "BIGINT": INTEGERS,
    "INTEGER NOT NULL": INTEGERS,
    "NUMERIC": st.one_of(st.none(), INTEGERS, st.floats(allow_nan=False)),
    "TEXT": st.one_of(st.none(), TEXTS),
    "VARCHAR(9) NOT NULL": TEXTS,
    "REAL": st.one_of(st.none(), st.floats(allow_nan=False), INTEGERS),
    "BLOB": st.one_of(st.none(), st.binary(max_size=40), INTEGERS, TEXTS, st.floats(allow_nan=False)),
    "": st.one_of(INTEGERS, st.none()),
    "INTEGER PRIMARY KEY": st.one_of(st.none(), INTEGERS),
}
WANTED = {pa.int64(): {"integer", "null"}, pa.string(): {"text", "null"}, WORDS: {"text", "null"}}
CONFORMING = {
    "T": {"text", "blob", "null"},
    "B": {"text", "blob", "null", "integer", "real"},
    "N": {"integer", "real", "blob", "null"},
}
"""What an unwanted column may hold, by the first letter of its affinity."""


def affinity(declared: str) -> str:
    """As SQLite's documentation has it; numeric ones are one here."""
    if "INT" in declared:
        return "N"
    if "CHAR" in declared or "TEXT" in declared:
        return "T"
    return "B" if not declared or "BLOB" in declared else "N"


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    kinds = draw(st.lists(st.sampled_from([k for k in VALUES if "KEY" not in k]), min_size=1, max_size=7))
    if draw(st.booleans()):
        kinds.insert(draw(st.integers(0, len(kinds))), "INTEGER PRIMARY KEY")
    few = draw(st.lists(st.tuples(*(VALUES[k] for k in kinds)), min_size=0, max_size=12))
    many = draw(st.sampled_from([1, 1, 20, 200]))
    page_size = draw(st.sampled_from([512, 1024, 4096, 65536]))
    rows = few
    if many > 1 and few:  # a taller tree: the same rows in another order, keyed ones by fresh keys
        shuffle = random.Random(draw(st.integers(0, 99)))
        rows = [shuffle.choice(few) for _ in range(min(many * len(few), 600))]
    key = next((i for i, k in enumerate(kinds) if "KEY" in k), None)
    rowids = None
    if draw(st.booleans()) and key is None:
        rowids = (
            draw(st.lists(INTEGERS, min_size=len(rows), max_size=len(rows), unique=True)) if len(rows) < 40 else None
        )
    added = []
    if draw(st.booleans()):
        default = draw(
            st.sampled_from(["INTEGER", "TEXT", "INTEGER DEFAULT NULL", "INTEGER DEFAULT 7", "TEXT DEFAULT 'x'"])
        )
        kind = default.split()[0]
        more = draw(st.lists(st.tuples(*(VALUES[k] for k in kinds), VALUES[kind]), max_size=3))
        added.append((default, more))
    return Recipe(
        kinds,
        rows,
        page_size,
        draw(st.sampled_from([0, 0, 12, 32])),
        rowids,
        draw(st.sampled_from([0, 0, 2, 3])),
        draw(st.sampled_from([0, 0, 5])),
        added,
    )


def classes(path: Path, columns: list[str]) -> list[set[str]]:
    connection = sqlite3.connect(path)
    found = [{r[0] for r in connection.execute(f'SELECT DISTINCT typeof("{c}") FROM t')} for c in columns]
    connection.close()
    return found


def as_wanted(found: set[str], declared: str, kind: pa.DataType | None) -> bool:
    """Whether the decoder says it reads such a column."""
    plain = declared.split(" DEFAULT", maxsplit=1)[0].replace(" NOT NULL", "").replace(" PRIMARY KEY", "")
    return found <= (CONFORMING[affinity(plain)] if kind is None else WANTED[kind])


def converted(declared: str, kind: pa.DataType) -> bool:
    """Where SQLite hands out another value than the stored one."""
    return ("REAL" in declared and kind == pa.int64()) or ("KEY" in declared and kind != pa.int64())


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    decoder()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(recipes(), st.data())
def test_any_table(recipe: Recipe, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "t.sqlite", recipe)
        declared = [*recipe.declared, *(d for d, _ in recipe.added)]
        held = classes(path, recipe.columns)
        kinds: dict[str, pa.DataType] = {}
        for name, kind, found in zip(recipe.columns, declared, held, strict=True):
            fits = [t for t, fine in WANTED.items() if found <= fine]
            chosen = data.draw(st.sampled_from([None, *fits, pa.int64()]))
            if chosen is not None and not converted(kind, chosen):
                kinds[name] = chosen
        wanted = list(kinds)
        data.draw(st.randoms(use_true_random=False)).shuffle(wanted)
        if not wanted:
            return
        with opened(path, threads=data.draw(st.sampled_from([1, 2]))) as reader:
            got = reader.decode("t", wanted, [kinds[c] for c in wanted])
        expected = stored_rows(path, "t", wanted)
        assert expected is not None
        late = any("DEFAULT" in d and "NULL" not in d for d, _ in recipe.added)
        plain = all(as_wanted(f, d, kinds.get(c)) for c, d, f in zip(recipe.columns, declared, held, strict=True))
        if isinstance(got, str):
            assert not plain or late, got
        else:
            assert plain
            got.validate(full=True)
            assert rows_of(got) == expected
            assert [c.null_count for c in got.columns] == [
                [r[i] for r in expected].count(None) for i in range(len(wanted))
            ]


@pytest.mark.parametrize("page_size", [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
@pytest.mark.parametrize("reserved", [0, 32])
def test_every_page_size(page_size: int, reserved: int, tmp_path: Path) -> None:
    rng = random.Random(page_size)
    rows = [
        (
            rng.randrange(-(2**62), 2**62) >> rng.randrange(63),
            "w" * int(10 ** rng.uniform(0, 4.6)),
            i if i % 3 else None,
        )
        for i in range(1500)
    ]
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER NOT NULL", "TEXT", "INTEGER"], rows, page_size, reserved))
    assert path.read_bytes()[20] == reserved
    for kind in (pa.string(), WORDS):
        with opened(path) as reader:
            got = reader.decode("t", ["c2", "c1", "c0"], [pa.int64(), kind, pa.int64()])
        assert isinstance(got, pa.Table), got
        assert rows_of(got) == stored_rows(path, "t", ["c2", "c1", "c0"])


@pytest.mark.parametrize("columns", [1, 63, 64, 127, 128, 300, 1500])
def test_many_columns(columns: int, tmp_path: Path) -> None:
    """Headers of one, two and more bytes of length, and longer than any page."""
    rng = random.Random(columns)
    rows = [tuple(rng.choice((None, 0, 1, 5, 1 << 40)) for _ in range(columns)) for _ in range(40)]
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER"] * columns, rows, 1024))
    wanted = [f"c{i}" for i in sorted({0, columns // 2, columns - 1})]
    with opened(path) as reader:
        got = reader.decode("t", wanted, [pa.int64()] * len(wanted))
    assert isinstance(got, pa.Table), got
    assert rows_of(got) == stored_rows(path, "t", wanted)


def test_texts_that_are_not_text(tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite", Recipe(["TEXT"], [("fine",)]))
    raw_text(path, "INSERT INTO t VALUES(CAST(x'ff00fe' AS TEXT))")
    for kind in (pa.string(), WORDS):
        with opened(path) as reader:
            got = reader.decode("t", ["c0"], [kind])
        assert isinstance(got, pa.Table)
        assert rows_of(got) == [(b"fine",), (b"\xff\x00\xfe",)]


def test_words_are_numbered_by_their_first_row(tmp_path: Path) -> None:
    """Whatever the number of threads, and as Arrow itself would number them."""
    rng = random.Random(1)
    rows = [(rng.choice((None, f"w{rng.randrange(500)}", f"rare{i}")),) for i in range(20_000)]
    path = make(tmp_path / "t.sqlite", Recipe(["TEXT"], rows, 512))
    seen = []
    for threads in (1, 2, 7):
        with opened(path, threads) as reader:
            got = reader.decode("t", ["c0"], [WORDS])
        assert isinstance(got, pa.Table)
        seen.append(got.column(0).combine_chunks())
    expected = pa.array([r[0] for r in rows]).dictionary_encode()
    assert all(s.equals(expected) for s in seen)


def test_columns_outlive_the_reader(tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER", "TEXT"], [(i, f"n{i}") for i in range(5000)]))
    with opened(path) as reader:
        got = reader.decode("t", ["c0", "c1"], [pa.int64(), pa.string()])
    assert isinstance(got, pa.Table)
    first, second = got.columns
    del got, reader
    assert first.to_pylist() == list(range(5000))
    del first
    assert second[4999].as_py() == "n4999"
