"""The functions on intervals under the address, undefined-behaviour and thread sanitizers, against plain loops."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.native.pages.decoder import SOURCES, sanitized

INTERVALS = SOURCES.parent / "intervals"
DRIVER = Path(__file__).with_name("sanitized.cpp")
ROUNDS = int(os.environ.get("NVPROF_INTERVAL_ROUNDS", "400"))


def program(sanitizer: str) -> Path:
    """The driver, not optimised: most of the time goes into compiling."""
    return sanitized(DRIVER, sanitizer, tuple(sorted(INTERVALS.glob("*.cpp"))), "-O0")


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
