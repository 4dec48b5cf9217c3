"""Damage to every kind of input has one of the outcomes in one table: the same, something else, or a known error.

What differs without an error is damage that nothing in the format can show. Goldens have digests and show all of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.damage import keep, mutant, outcome, packed, shrunk, unpacked
from tests.hostile.edits import Edit, applied
from tests.hostile.kinds import BY_NAME, KINDS, seeds_of

ROOT = Path(__file__).resolve().parents[2]
REGRESSIONS = sorted((ROOT / "tests" / "hostile" / "regressions").glob("*.tar.xz"))
SCALE = float(os.environ.get("FUZZ_SCALE", "1"))
"""Times as many mutants; ``make fuzz`` has seeds and clocks of its own."""


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_damage_is_told_or_harmless(kind: str, tmp_path: Path) -> None:
    if kind == "ncu-report":
        pytest.importorskip("ncu_report")
    count = max(1, int(BY_NAME[kind].share * SCALE))
    progress = tmp_path / "progress"
    command = [sys.executable, "-m", "tests.hostile.damage", kind, "--count", str(count), "--progress", str(progress)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{kind} mutant {progress.read_text()}: {done.stderr[-2000:]}"
    said = json.loads(done.stdout)
    assert said["failed"] == []
    assert not any(p.startswith(("error", "failed")) for p in said["plain"])
    assert sum(said["outcomes"].values()) == count
    assert any(name.startswith("error[") for name in said["outcomes"])
    assert said["peak_bytes"] < 1 << 30


def test_what_failed_once_does_not_fail_again() -> None:
    for path in REGRESSIONS:
        kind = next(k for k in sorted(KINDS, key=lambda k: -len(k.name)) if path.name.startswith(f"{k.name}-"))
        assert not outcome(kind, unpacked(path.read_bytes())).startswith("failed"), path.name


def test_a_mutant_follows_from_its_number_alone() -> None:
    kind = BY_NAME["log"]
    assert mutant(kind, 5, 17) == mutant(kind, 5, 17)
    assert mutant(kind, 5, 17)[3] != mutant(kind, 5, 18)[3]


def test_a_failure_is_cut_down_and_kept(tmp_path: Path) -> None:
    """With a reader that fails on one word: the other edits go, and the file that is left fails the same way."""
    from dataclasses import replace

    def reads(path: Path) -> str:
        if b"bomb" in path.read_bytes():
            raise IndexError
        return "fine"

    kind = replace(BY_NAME["log"], outcome=reads)
    files = seeds_of("log")[0]
    name = next(iter(files))
    edits = [Edit(name, 0, 1, b"a"), Edit(name, 3, 0, b"bomb"), Edit(name, 40, 9)]
    assert shrunk(kind, files, edits, False) == [edits[1]]
    kept = keep(kind, applied(files, [edits[1]]), tmp_path)
    assert outcome(kind, unpacked(kept.read_bytes())).startswith("failed: IndexError")
    assert packed(unpacked(kept.read_bytes())) == kept.read_bytes()
