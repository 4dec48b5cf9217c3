"""Damaged databases: whatever the decoder accepts, SQLite's structure check accepts too, and the rows are SQLite's.

What it refuses goes the slower way, so "same rows or the same refusal" is just that. Set ``NVPROF_PAGE_MUTANTS`` for
more of them than a test run has time for.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.bulk_pages import WORDS
from nvprof_tools.sources.guarded_sqlite import open_guarded
from tests.native.pages.decoder import decoder, opened, rows_of, stored_rows
from tests.native.pages.tables import Recipe, make

MUTANTS = int(os.environ.get("NVPROF_PAGE_MUTANTS", "2400"))
BASES = 6


def base(number: int, folder: Path) -> Path:
    """Small tables of every build: rewritten and deleted rows, long texts, a key, columns added later, big pages."""
    rng = random.Random(number)
    rows = [
        (rng.randrange(1 << rng.randrange(1, 62)), rng.choice((None, f"name {i % 9}")), rng.choice((0, 1, None)), i)
        for i in range(700)
    ]
    long = [(i, "t" * rng.randrange(1, 4000)) for i in range(40)]
    recipe = [
        Recipe(["INTEGER NOT NULL", "TEXT", "INTEGER", "INTEGER NOT NULL"], rows, 512),
        Recipe(["INTEGER", "TEXT", "INTEGER", "INTEGER"], rows, 1024, 0, None, 3, 5),
        Recipe(["INTEGER", "TEXT"], long, 1024),
        Recipe(["INTEGER PRIMARY KEY", "TEXT NOT NULL"], [(i * 3, f"word {i}") for i in range(600)], 512, 12),
        Recipe(["INTEGER", "TEXT"], [r[:2] for r in rows[:300]], 512, added=[("INTEGER", [(1, "a", 2)] * 50)]),
        Recipe(["INTEGER", "TEXT", "INTEGER", "INTEGER"], rows[:400], 65536),
    ][number]
    return make(folder / f"base{number}.sqlite", recipe)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One way of damage, more often where structure is than where values are."""
    content = bytearray(data)
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    pages = len(data) // size
    page = rng.randrange(1, pages) * size if pages > 1 else 0
    cells = int.from_bytes(content[page + 3 : page + 5], "big")
    match rng.randrange(9):
        case 0:
            for _ in range(rng.randrange(1, 6)):
                content[rng.randrange(100, len(content))] = rng.randrange(256)
        case 1:
            content[page + rng.randrange(12)] = rng.choice((0, 1, 2, 5, 13, 255, rng.randrange(256)))
        case 2:
            at = page + 8 + 2 * rng.randrange(max(cells, 1))
            content[at : at + 2] = rng.choice((0, size - 1, size - 4, 8, rng.randrange(size))).to_bytes(2, "big")
        case 3:
            at = page + int.from_bytes(content[page + 8 : page + 10], "big")
            place = min(at + rng.randrange(12), len(content) - 1)
            content[place] = rng.choice((0, 1, 7, 8, 9, 10, 11, 12, 127, 128, 255, content[place] ^ 1))
        case 4:
            start = rng.randrange(100, len(content))
            run = min(rng.randrange(1, 300), len(content) - start)
            content[start : start + run] = bytes(run)
        case 5:
            other = rng.randrange(1, pages) * size if pages > 1 else 0
            content[page : page + size] = data[other : other + size]
        case 6:
            kept = rng.randrange(1, pages + 1)
            content = content[: kept * size]
            content[28:32] = kept.to_bytes(4, "big")
        case 7:
            at = page + 8 + 2 * rng.randrange(max(cells, 1))
            cell = page + int.from_bytes(content[at : at + 2], "big")
            if cell + 4 <= len(content):
                content[cell : cell + 4] = rng.choice((0, 1, 2, pages, pages + 1, rng.randrange(2**32))).to_bytes(
                    4, "big"
                )
        case _:
            content[page + 5 : page + 7] = rng.randrange(65536).to_bytes(2, "big")
            content[page + 7] = rng.randrange(3)
    return bytes(content)


@pytest.mark.parametrize("number", range(BASES))
def test_what_is_accepted_is_sound(number: int, tmp_path: Path) -> None:
    decoder()
    original = base(number, tmp_path)
    data, mutant = original.read_bytes(), tmp_path / "mutant.sqlite"
    rng, outcomes = random.Random(100 + number), Counter[str]()
    for _ in range(MUTANTS // BASES):
        mutant.write_bytes(damaged(data, rng))
        try:
            with opened(mutant, threads=1) as reader:
                columns = list(reader.columns.get("t", ()))
                if not columns:
                    outcomes["no table"] += 1
                    continue
                kinds = [rng.choice((pa.string(), WORDS)) if c == "c1" else pa.int64() for c in columns]
                got = reader.decode("t", columns, kinds)
        except SourceError as error:
            outcomes[error.slug] += 1
            continue
        if isinstance(got, str):
            outcomes[got] += 1
            continue
        outcomes["read"] += 1
        got.validate()
        assert rows_of(got) == stored_rows(mutant, "t", columns)
    assert outcomes["read"] > MUTANTS // BASES // 50, outcomes
    assert sum(outcomes.values()) - outcomes["read"] > MUTANTS // BASES // 10, outcomes


def outcome(reader: object, columns: list[str]) -> object:
    kinds = [pa.string() if c == "c1" else pa.int64() for c in columns]
    try:
        return rows_of(reader.read_columns("t", columns, kinds))  # type: ignore[attr-defined]
    except SourceError as error:
        return error.slug


@pytest.mark.parametrize("number", range(BASES))
def test_same_rows_or_the_same_refusal(number: int, tmp_path: Path) -> None:
    """Both readers as a whole."""
    data, mutant = base(number, tmp_path).read_bytes(), tmp_path / "mutant.sqlite"
    rng = random.Random(200 + number)
    for _ in range(MUTANTS // BASES // 8):
        mutant.write_bytes(damaged(data, rng))
        try:
            with opened(mutant) as reader:
                columns = list(reader.columns.get("t", ()))
                mine = outcome(reader, columns) if columns else None
        except SourceError as error:
            mine = error.slug
        try:
            database = open_guarded(mutant, DEFAULT_LIMITS)
        except SourceError as error:
            theirs: object = error.slug
        else:
            columns = list(database.tables["t"].columns) if "t" in database.tables else []
            plain = AdbcReader(database)
            theirs = outcome(plain, columns) if columns else None
            plain.close()
        assert mine == theirs
