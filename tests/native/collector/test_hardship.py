"""What a program may have, or lack, when a collector comes into it: it runs on, and the file says what it lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native.collector.capture import read
from tests.native.collector.conftest import Kit, Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize("most", [0, 100, 4_096, 20_000, 190_000])
def test_a_file_that_cannot_grow(run: Run, most: int) -> None:
    ran = run("small_disk", str(most))
    assert (ran.code, ran.out, ran.err) == (3, "unharmed\n", "")
    if most <= 4_096:
        assert ran.files == [], "not even the schema has room"
        return
    capture = ran.only()
    assert ran.files[0].stat().st_size <= most
    assert capture.whole
    assert capture.slugs() == {"write-failed": 1}
    assert capture.end is None


def test_no_standard_streams(run: Run) -> None:
    ran = run("no_streams")
    assert ran.code == 4
    capture = ran.only()
    assert len(capture.table("kernel")) == 1
    assert capture.end is not None


def test_descriptors_that_the_program_takes(run: Run) -> None:
    ran = run("takes_numbers")
    assert ran.code == 5, "nothing is written into the program's own file"
    capture = ran.only()
    assert {capture.text(row["name"]) for row in capture.table("kernel")} == {"before"}
    assert capture.whole


def test_many_threads_each_keep_a_buffer(run: Run) -> None:
    ran = run("crowd", "100", env={"NVPROF_COLLECTOR_BUFFER": "65536", "NVPROF_COLLECTOR_POOL": str(1 << 20)})
    assert ran.out == "0\n"
    capture = ran.only()
    assert sorted(row["correlationId"] for row in capture.table("kernel")) == list(range(100))
    assert capture.slugs() == {}


def test_no_memory_for_the_collector(run: Run) -> None:
    ran = run("short_memory")
    assert (ran.code, ran.err) == (9, "")
    capture = ran.only()
    assert capture.slugs()["memory-short"] > 0
    assert 1000 in {row["correlationId"] for row in capture.table("kernel")}
    assert capture.end is not None
    assert capture.end["complete"] is False


def test_texts_that_are_never_the_same_are_forgotten(run: Run) -> None:
    count = 600
    capture = run("varied", str(count)).only()
    marks = capture.table("nvtx_mark")
    first, last = marks[0]["text"], marks[-1]["text"]
    assert len(marks) + capture.slugs().get("nvtx-dropped", 0) == count + 1
    assert capture.strings[first] == capture.strings[last]
    assert first != last
    assert len({capture.strings[row["text"]] for row in marks}) == len(marks) - 1


def test_cuda_that_starts_slowly_after_marks(raced: Kit, tmp_path: Path) -> None:
    ran = raced.run(tmp_path, "marks_first", env={"FAKE_CUPTI_SLOW_MS": "1500"})
    assert (ran.code, ran.err) == (0, "")
    clocks = read(ran.files[0]).table("clock")
    assert len(clocks) >= 4
    assert clocks[0]["cupti"] == clocks[1]["cupti"] == 0 < clocks[-1]["cupti"], "CUPTI is asked once it runs"
