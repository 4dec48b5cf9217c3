"""Ends of all kinds, forks and exec: what is in the file afterwards."""

from __future__ import annotations

from collections.abc import Callable

from tests.native.collector.capture import read
from tests.native.collector.conftest import Ran

Run = Callable[..., Ran]


def test_killed(run: Run) -> None:
    ran = run("killed")
    assert ran.code == -9
    capture = ran.only()
    before = int(ran.out)
    kernels = [row["correlationId"] for row in capture.table("kernel")]
    assert kernels == list(range(len(kernels)))
    assert len(kernels) >= before, "what was there a second before the end is in the file"
    assert len(capture.table("nvtx_range")) >= before
    assert capture.end is None
    assert capture.whole


def test_exit_without_handlers(run: Run) -> None:
    ran = run("leaves")
    assert ran.code == 5
    capture = ran.only()
    assert len(capture.table("kernel")) == 10
    assert capture.end is None


def test_forks(run: Run) -> None:
    ran = run("forks")
    first, second, pid = map(int, ran.out.split())
    assert (first, second) == (7, 8)
    by_pid = {read(path).infos["pid"]: read(path) for path in ran.files}
    assert len(by_pid) == 2, "the child that only marks has no file"
    child = by_pid.pop(pid)
    parent = next(iter(by_pid.values()))
    assert [child.text(row["text"]) for row in child.table("nvtx_range")] == ["child's own"]
    assert [child.text(row["name"]) for row in child.table("kernel")] == ["child"]
    assert [parent.text(row["text"]) for row in parent.table("nvtx_range")] == ["parent"]
    assert [parent.text(row["name"]) for row in parent.table("kernel")] == ["parent"]
    assert parent.end is not None
    assert child.end is not None
    assert parent.end["forks"] == 2


def test_exec(run: Run) -> None:
    ran = run("execs")
    assert ran.code == 0
    first, second = ran.files
    assert second.name.removesuffix(".nvcap") + "-1.nvcap" == first.name or first.name < second.name
    texts = {
        path.name.endswith("-1.nvcap"): [read(path).text(row["text"]) for row in read(path).table("nvtx_mark")]
        for path in ran.files
    }
    assert texts == {False: ["before"], True: ["after"]}
    assert [read(path).end is None for path in sorted(ran.files, key=lambda path: len(path.name))] == [True, False]


def test_a_clone_leaves_file_and_parent_alone(run: Run) -> None:
    ran = run("cloned")
    assert ran.out == "6\n"
    capture = ran.only()
    assert [capture.text(row["text"]) for row in capture.table("nvtx_range")] == ["parent"]
    assert capture.end is not None
    assert capture.slugs() == {}
