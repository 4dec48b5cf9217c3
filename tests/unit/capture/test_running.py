"""Runs: output byte for byte, ends and signals told apart, nothing left behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nvprof_tools.capture.running import run
from nvprof_tools.capture.tee import Tee
from nvprof_tools.errors import ToolError


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_bytes_reach_files_and_watcher_as_they_are(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5_000
    (tmp_path / "data").write_bytes(data)
    watched = [os.open(tmp_path / f"watched{i}", os.O_RDWR | os.O_CREAT) for i in (1, 2)]
    outcome = run(["cat", str(tmp_path / "data")], tmp_path, echo=(watched[0], watched[1]))
    for descriptor in watched:
        os.close(descriptor)
    assert (outcome.started, outcome.exit_code, outcome.lost_bytes) == (True, 0, 0)
    assert (tmp_path / "stdout.log").read_bytes() == data
    assert (tmp_path / "watched1").read_bytes() == data
    assert (tmp_path / "watched2").read_bytes() == b""
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_lines_of_two_streams_are_never_mixed_in_one(tmp_path: Path) -> None:
    text = (
        "import os\nfor i in range(2000):\n os.write(1, b'out %d ' % i); os.write(2, b'err %d ' % i)\n"
        " os.write(2, b'end\\n'); os.write(1, b'end\\n')"
    )
    run(python(text), tmp_path)
    lines = (tmp_path / "app.log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name} {i} end" for name in ("out", "err") for i in range(2000))
    assert [line for line in lines if line.startswith("err")] == [f"err {i} end" for i in range(2000)]


@pytest.mark.parametrize(
    ("text", "code", "passed_on"),
    [("raise SystemExit(5)", 5, 5), ("import os; os.kill(os.getpid(), 11)", -11, 139), ("", 0, 0)],
)
def test_how_the_program_ended(tmp_path: Path, text: str, code: int, passed_on: int) -> None:
    outcome = run(python(text), tmp_path)
    assert (outcome.exit_code, outcome.passed_on) == (code, passed_on)
    assert outcome.wall_ns is not None
    assert outcome.wall_ns > 0


def test_the_profiler_s_end_is_not_the_program_s(tmp_path: Path) -> None:
    wrap = ["sh", "-c", 'echo words; "$@"; exit 33', "profiler"]
    outcome = run(python("raise SystemExit(5)"), tmp_path, under=wrap)
    assert (outcome.exit_code, outcome.profiler_code, outcome.said) == (5, 33, "words\n")


def test_a_profiler_that_never_starts_the_program(tmp_path: Path) -> None:
    outcome = run(python(""), tmp_path, under=["sh", "-c", "exit 1", "profiler"])
    assert (outcome.started, outcome.exit_code, outcome.wall_ns, outcome.profiler_code) == (False, None, None, 1)


def test_no_such_profiler(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be started") as caught:
        run(python(""), tmp_path, under=[str(tmp_path / "nsys")])
    assert caught.value.slug == "profiler-not-started"
    assert not [p for p in tmp_path.iterdir() if p.name.endswith("pipe")]


def test_the_preload_is_for_the_program_alone_and_comes_first(tmp_path: Path) -> None:
    wrap = ["env", "LD_PRELOAD=/nowhere/of-the-profiler.so"]
    text = "import os; print(os.environ['LD_PRELOAD'], 'NVPROF_TOOLS_PRELOAD' in os.environ)"
    run(python(text), tmp_path, under=wrap, preload=Path("/nowhere/ours.so"))
    assert (tmp_path / "stdout.log").read_text() == "/nowhere/ours.so:/nowhere/of-the-profiler.so False\n"


def test_a_child_that_outlives_the_program_is_not_waited_for(tmp_path: Path) -> None:
    outcome = run(["sh", "-c", "sleep 30 & echo $!"], tmp_path)
    pid = int((tmp_path / "stdout.log").read_text())
    assert outcome.exit_code == 0
    os.kill(pid, 9)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_costs_the_copy_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Tee.start

    def full(tee: Tee) -> None:
        os.dup2(os.open("/dev/full", os.O_WRONLY), tee._files[0])
        started(tee)

    monkeypatch.setattr(Tee, "start", full)
    watched = os.open(tmp_path / "watched", os.O_RDWR | os.O_CREAT)
    outcome = run(["echo", "words"], tmp_path, echo=(watched, watched))
    os.close(watched)
    assert (outcome.exit_code, outcome.lost_bytes, outcome.lost_why) == (0, 6, "No space left on device")
    assert (tmp_path / "watched").read_bytes() == b"words\n"
    assert (tmp_path / "app.log").read_bytes() == b"words\n"


def test_a_watcher_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    outcome = run(python("print('x' * 100_000)"), tmp_path, echo=(write, write))
    os.close(write)
    assert outcome.exit_code == 0
    assert len((tmp_path / "stdout.log").read_bytes()) == 100_001


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    outcome = run([str(tmp_path / "nothing")], tmp_path)
    assert outcome.exit_code == 127
    assert b"No such file" in (tmp_path / "stderr.log").read_bytes()
