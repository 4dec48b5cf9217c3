"""The decoder under the address, undefined-behaviour and thread sanitizers, over honest and damaged files."""

from __future__ import annotations

import functools
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.hostile.test_pages_mutants import BASES, base
from tests.native.pages.decoder import SOURCES, builder, folder
from tests.native.pages.tables import Recipe, make

MUTANTS = int(os.environ.get("NVPROF_PAGE_MUTANTS", "2400"))
WANTS = ("1 3 1 1", "1 2 1 1", "1 2", "1 3", "1 2 1", "0 3 1 1")
"""What is read of each base: 1 integers, 2 strings, 3 a dictionary, 0 nothing."""


@functools.cache
def program(sanitizer: str) -> Path:
    """The driver, built once a session; without a compiler or its sanitizer the test is skipped."""
    compiler = builder().compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    target = folder() / f"sanitized-{sanitizer.partition(',')[0]}"
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-O1", "-g1", "-fno-omit-frame-pointer"]
    done = subprocess.run(
        [compiler, *builder().FLAGS, *flags, f"-I{SOURCES}", "-x", "c++", "-", "-o", str(target)],
        input=f'{builder().unit()}#include "{Path(__file__).with_name("sanitized.cpp")}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no such sanitizer")
    assert done.returncode == 0, done.stderr
    return target


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
