"""SIGKILL at random moments, and several runs at once on one output: old or new, never half, nothing left beside it."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nvprof_tools.files.atomic import atomic_directory
from tests.faults.commands import arguments, state

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("FAULT_KILLS", "9"))

VICTIMS = """
import os, random, signal, sys, time
sys.path[:0] = {paths!r}
from pathlib import Path
from nvprof_tools.cli.main import run
from tests.faults.commands import state
argv, target = {argv!r}, Path({target!r})
os.close(2); os.open(os.devnull, os.O_WRONLY)
child = os.fork()
if child == 0:
    os._exit(run(argv))
began = time.monotonic()
os.waitpid(child, 0)
child = os.fork()
if child == 0:
    os._exit(run(argv))
os.waitpid(child, 0)
whole = time.monotonic() - began
print("new", state(target))
source = random.Random({seed})
for _ in range({kills}):
    child = os.fork()
    if child == 0:
        os._exit(run(argv))
    time.sleep(source.random() * whole / 2)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", state(target), ",".join(sorted(p.name for p in target.parent.iterdir())))
"""


@pytest.mark.parametrize("name", ["report.html", "tables", "golden"])
def test_a_killed_run_leaves_the_old_output_or_the_new_one(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    program = VICTIMS.format(
        paths=[str(ROOT), str(ROOT / "tests")],
        argv=arguments(target),
        target=str(target),
        kills=KILLS // 3,
        seed=random.Random(name).random(),
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("new", "killed"))]
    assert len(rows) == KILLS // 3 + 1
    new = rows[0][1]
    assert new != "None"
    # The same input gives the same bytes, so the old output and the new one are one; half of either would differ.
    for _, found, beside in rows[1:]:
        assert found == new
        # Of a killed run's directory something may stay, under a name that the next run sweeps; of a file only what had
        # just got its name.
        left = [n for n in beside.split(",") if n != name]
        assert name in beside.split(",")
        assert all(n.startswith(".nvprof-tools-") and n.endswith(".tmp") for n in left)
        assert len(left) <= 1 or name != "report.html"


def test_what_a_killed_run_left_is_swept_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    abandoned, used, young, other = (tmp_path / f".nvprof-tools-{n}.tmp" for n in ("a", "b", "c", "d"))
    for folder in (abandoned, used, young):
        folder.mkdir()
        (folder / "x").write_bytes(b"")
    other.write_bytes(b"a file")
    for path in (abandoned, used, other):
        os.utime(path, (1, 1))
    handle = os.open(used, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.MonkeyPatch.context() as patch:
        # A change time cannot be set: let it be later.
        now = time.time() + 3600
        patch.setattr(time, "time", lambda: now)
        os.utime(young, (now, now))
        with atomic_directory(tmp_path / "out") as work:
            (work / "y").write_bytes(b"")
    os.close(handle)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([used.name, young.name, "out"])


def test_runs_at_once_end_with_one_whole_output(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    program = [sys.executable, "-c", "from nvprof_tools.cli.main import main; main()", *arguments(target)]
    running = [subprocess.Popen(program, cwd=ROOT, stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    first = state(target)
    assert subprocess.run(program, cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode == 0
    assert state(target) == first
    assert [p.name for p in tmp_path.iterdir()] == [target.name]
