"""Outputs are there whole or not at all, whatever fails and whenever."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nvprof_tools.errors import ToolError
from nvprof_tools.files import atomic
from nvprof_tools.files.atomic import atomic_directory, atomic_writer, write_bytes, write_text

OLD, NEW = b"old" * 100, b"new" * 50_000


class FailAt:
    """Lets the first ``number`` calls of an operating-system function through and fails the next."""

    def __init__(self, real: Callable[..., object], number: int, error: int) -> None:
        self.real, self.left, self.error, self.failed = real, number, error, False

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.left == 0 and not self.failed:
            self.failed = True
            raise OSError(self.error, os.strerror(self.error))
        self.left -= 1
        return self.real(*args, **kwargs)


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With files that have no name until they are whole, and without."""
    if not request.param:
        monkeypatch.setattr(atomic, "_OPEN_FILES", "/nowhere")
    return bool(request.param)


def only(folder: Path, *names: str) -> bool:
    return sorted(path.name for path in folder.iterdir()) == sorted(names)


@pytest.mark.usefixtures("way")
def test_new_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_bytes(path, OLD)
    assert path.read_bytes() == OLD
    path.chmod(0o640)
    write_text(path, "ü\r\n")
    assert path.read_bytes() == "ü\r\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert only(tmp_path, "x")


@pytest.mark.usefixtures("way")
def test_on_the_disk_before_it_takes_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        status = os.fstat(handle)
        kind = "directory" if stat.S_ISDIR(status.st_mode) else "file"
        seen.append((kind, (tmp_path / "x").stat().st_size))
        real(handle)

    (tmp_path / "x").write_bytes(OLD)
    monkeypatch.setattr(os, "fsync", fsync)
    write_bytes(tmp_path / "x", NEW)
    assert seen == [("file", len(OLD)), ("directory", len(NEW))]


@pytest.mark.usefixtures("way")
def test_new_files_obey_the_umask(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_bytes(tmp_path / "x", NEW)
        with atomic_directory(tmp_path / "d") as work:
            (work / "a").write_bytes(b"")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o750


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("function", ["fsync", "link", "fdopen", "open", "replace"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES])
@pytest.mark.parametrize("there", [True, False])
def test_any_call_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: int, there: bool
) -> None:
    path = tmp_path / "x"
    if there:
        path.write_bytes(OLD)
    for number in range(4):
        with monkeypatch.context() as patch:
            fail = FailAt(getattr(os, function), number, error)
            patch.setattr(os, function, fail)
            try:
                write_bytes(path, NEW)
            except ToolError as caught:
                full = error in {errno.ENOSPC, errno.EDQUOT}
                assert caught.slug == ("output-disk-full" if full else "output-unwritable")
                assert only(tmp_path, *(["x"] if there or path.exists() else []))
                assert not path.exists() or path.read_bytes() in ({OLD, NEW} if there else {NEW})
            else:
                assert path.read_bytes() == NEW
                assert only(tmp_path, "x")
        if path.exists():
            path.write_bytes(OLD)
            there = True


@pytest.mark.usefixtures("way")
def test_any_write_may_fail(tmp_path: Path) -> None:
    """A real full disk: the file-size limit of the process, at each size."""
    code = (
        "import resource, sys; from pathlib import Path; from nvprof_tools.files import atomic;"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "from nvprof_tools.errors import ToolError\n"
        "try: atomic.write_bytes(Path(sys.argv[1]), b'new' * 50_000)\n"
        "except ToolError as error: print(error.slug)\n"
    )
    path = tmp_path / "x"
    path.write_bytes(OLD)
    for size in (0, 1, 100_000):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), str(size)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "output-disk-full\n"
        assert path.read_bytes() == OLD
        assert only(tmp_path, "x")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_a_block_that_raises_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x"
    path.write_bytes(OLD)

    def fill() -> None:
        with atomic_writer(path) as out:
            out.write(NEW)
            raise error

    with pytest.raises(error):
        fill()
    assert path.read_bytes() == OLD
    assert only(tmp_path, "x")


def test_killed_at_any_time(tmp_path: Path) -> None:
    """SIGKILL: the old file or the new one. Between its getting a name and its place a whole new one may be left, which
    a later write removes."""
    path = tmp_path / "x"
    path.write_bytes(OLD)
    code = (
        "import sys; from pathlib import Path; from nvprof_tools.files.atomic import write_bytes\n"
        "print('ready', flush=True)\n"
        "while True: write_bytes(Path(sys.argv[1]), b'new' * 50_000)\n"
    )
    for number in range(12):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.0007 * number)
            child.send_signal(signal.SIGKILL)
        assert path.read_bytes() in {OLD, NEW}
        left = [other for other in tmp_path.iterdir() if other != path]
        assert len(left) <= 1
        for other in left:
            assert other.name.startswith(".nvprof-tools-") and other.read_bytes() == NEW
            other.unlink()


def test_what_a_killed_run_left_goes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is young, held by somebody, or not of our making."""
    names = ("old", "held", "young")
    old, held, young = (tmp_path / f".nvprof-tools-{name}.tmp" for name in names)
    for path in (old, held, young, tmp_path / "other.tmp"):
        path.write_bytes(NEW)
    monkeypatch.setattr(atomic, "_ABANDONED_SECONDS", 0)
    with held.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        young.unlink()
        write_bytes(tmp_path / "x", NEW)
        assert only(tmp_path, "x", held.name, "other.tmp")
    monkeypatch.setattr(atomic, "_ABANDONED_SECONDS", 60)
    young.write_bytes(NEW)
    write_bytes(tmp_path / "x", NEW)
    assert only(tmp_path, "x", held.name, young.name, "other.tmp")


def test_links_are_followed_and_devices_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "x"
    target.write_bytes(OLD)
    link = tmp_path / "link"
    link.symlink_to(target)
    write_bytes(link, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    write_bytes(Path("/dev/null"), NEW)
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("path", ["no/x", "folder", "file/x"])
def test_places_that_cannot_be_written(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ToolError) as error:
        write_bytes(tmp_path / path, NEW)
    assert error.value.slug == "output-unwritable"
    assert only(tmp_path, "folder", "file")


def test_directories(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "d"
    with atomic_directory(path) as work:
        (work / "a").write_bytes(OLD)
        assert not path.exists()
    assert only(path, "a")
    with pytest.raises(ToolError) as error, atomic_directory(path):
        pass
    assert error.value.slug == "output-exists"
    with atomic_directory(path, replace=True) as work:
        (work / "b").write_bytes(NEW)
    assert only(path, "b")
    assert only(path.parent, "d")
    with pytest.raises(ToolError) as error, atomic_directory(path / "b", replace=True):
        pass
    assert error.value.slug == "output-exists"


def test_a_directory_block_that_raises(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.mkdir()
    (path / "a").write_bytes(OLD)

    def fill() -> None:
        with atomic_directory(path, replace=True) as work:
            (work / "b").write_bytes(NEW)
            raise ValueError("filled")

    with pytest.raises(ValueError, match="filled"):
        fill()
    assert only(tmp_path, "d")
    assert only(path, "a")
