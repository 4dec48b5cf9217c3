"""The functions on intervals under the address, undefined-behaviour and thread sanitizers, against plain loops."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.native.pages.decoder import SOURCES, builder, folder

INTERVALS = SOURCES.parent / "intervals"
DRIVER = Path(__file__).with_name("sanitized.cpp")
ROUNDS = int(os.environ.get("NVPROF_INTERVAL_ROUNDS", "400"))


def program(sanitizer: str) -> Path:
    """The driver, not optimised: most of the time goes into compiling. Without a compiler or its sanitizer the test is
    skipped."""
    compiler = builder().compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    target = folder() / f"intervals-{sanitizer.partition(',')[0]}"
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-O0", "-g1", "-fno-omit-frame-pointer"]
    done = subprocess.run(
        [compiler, *builder().FLAGS, *flags, f"-I{INTERVALS}", "-x", "c++", "-", "-o", str(target)],
        input="".join(f'#include "{source}"\n' for source in [*sorted(INTERVALS.glob("*.cpp")), DRIVER]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no such sanitizer")
    assert done.returncode == 0, done.stderr
    return target


def declared() -> set[str]:
    """Every function of the headers."""
    return {
        name for header in INTERVALS.glob("*.h") for name in re.findall(r"\b(nvp_\w+)\(", header.read_text("utf-8"))
    }


@pytest.mark.parametrize(("sanitizer", "threads", "share"), [("address,undefined", 2, 1), ("thread", 4, 10)])
def test_no_access_goes_astray(sanitizer: str, threads: int, share: int) -> None:
    """Every function gives what a loop over all rows gives; sweeps of many intervals go by several threads."""
    done = subprocess.run(
        [str(program(sanitizer)), str(ROUNDS // share), str(threads), "1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"},
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    times = {name: int(count) for name, count in (line.split() for line in done.stdout.splitlines())}
    assert set(times) == declared()
    assert min(times.values()) > ROUNDS // share // 2
