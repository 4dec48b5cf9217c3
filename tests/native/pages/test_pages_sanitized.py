"""The decoder under the address, undefined-behaviour and thread sanitizers, over honest and damaged files."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.hostile.test_pages_mutants import BASES, base
from tests.native.pages.decoder import builder, sanitized
from tests.native.pages.tables import Recipe, make

MUTANTS = int(os.environ.get("NVPROF_PAGE_MUTANTS", "2400"))
WANTS = ("1 3 1 1", "1 2 1 1", "1 2", "1 3", "1 2 1", "0 3 1 1")
"""What is read of each base: 1 integers, 2 strings, 3 a dictionary, 0 nothing."""


def program(sanitizer: str) -> Path:
    """The driver with the whole library."""
    return sanitized(Path(__file__).with_name("sanitized.cpp"), sanitizer, tuple(builder().SOURCES), "-O1")


@pytest.mark.parametrize(("sanitizer", "threads", "share"), [("address,undefined", 1, 1), ("thread", 3, 20)])
def test_no_access_goes_astray(sanitizer: str, threads: int, share: int, tmp_path: Path) -> None:
    driver = program(sanitizer)
    for number in range(BASES):
        path = base(number, tmp_path)
        connection = sqlite3.connect(path)
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()
        connection.close()
        count = MUTANTS // BASES // share
        done = subprocess.run(
            [str(driver), str(path), str(root), str(threads), str(count), str(number), *WANTS[number].split()],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
        )
        assert done.returncode == 0, f"base {number}: exit {done.returncode}\n{done.stderr[-3000:]}"
        reasons = dict(line.split() for line in done.stdout.splitlines())
        assert int(reasons["0"]) > count // 50
        assert len(reasons) > 3


def test_many_threads_over_one_table(tmp_path: Path) -> None:
    """Enough leaves for every thread to have several ranges, which meet in the same words of the bitmaps."""
    rows = [(i, None if i % 7 else f"w{i % 50}", i % 2 or None, f"x{i}") for i in range(12_000)]
    path = make(tmp_path / "t.sqlite", Recipe(["INTEGER", "TEXT", "INTEGER", "TEXT"], rows, 512))
    done = subprocess.run(
        [str(program("thread")), str(path), "2", "8", "3", "1", "1", "3", "1", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
