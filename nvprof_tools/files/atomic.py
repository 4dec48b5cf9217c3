"""Outputs that are there whole or not at all: a killed run or a full disk leaves the old file or the new one.

The file is written without a name where the system can (nothing is left of it when the process dies, but in the instant
between its getting a name and its place), else under a temporary name beside the target; it is flushed to the disk and
only then takes the target's place. What was left under a temporary name goes when something is written beside it later.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from nvprof_tools.errors import ToolError

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors that mean that there is no room."""
_NO_TMPFILE: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS})
_TEMPORARY: Final = ".nvprof-tools-"
_OPEN_FILES: Final = "/proc/self/fd"
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_ABANDONED_SECONDS: Final = 60
"""A temporary file or directory this old that nobody holds is what a killed run left."""


@contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write; it takes the place of ``path`` when the block ends well, and is dropped when it does not.

    A symbolic link is followed; a device or pipe is written to as it is.

    :raises ToolError: ``output-disk-full``, ``output-unwritable``.
    """
    with _explained(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                yield device
            return
        _sweep(target.parent)
        out, name = _create(target)
        try:
            with suppress(OSError):
                fcntl.flock(out.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                os.fchmod(out.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield out
            out.flush()
            os.fsync(out.fileno())
            name = name if name is not None else _link(out.fileno(), target)
            out.close()
            Path(name).replace(target)
            name = None
            _sync_directory(target.parent)
        finally:
            with suppress(OSError):
                out.close()
            if name is not None:
                Path(name).unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A directory to fill; it becomes ``path`` when the block ends well, and is removed when it does not.

    :param replace: take the place of a directory that is there and not empty. An empty one is always replaced.
    :raises ToolError: ``output-exists``, ``output-disk-full``, ``output-unwritable``.
    """
    with _explained(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not (target.is_dir() and (replace or not any(target.iterdir()))):
            raise ToolError(
                "output-exists", "the output directory is there and not empty", "name another one, or remove it first"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        work = Path(_temporary_name(target))
        work.mkdir()
        held = _hold(work)
        try:
            yield work
            if not (target.exists() and _exchanged(work, target)):
                _moved(work, target)
            _sync_directory(target.parent)
        finally:
            os.close(held)
            shutil.rmtree(work, ignore_errors=True)


def _exchanged(work: Path, target: Path) -> bool:
    """Swaps two directories in one step, so that there is no moment without the target; false where that cannot be."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    if swap is None:
        return False
    return bool(swap(_AT_FDCWD, os.fsencode(work), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0)


def _moved(work: Path, target: Path) -> None:
    """The same in two steps, where the system has no better."""
    old = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}.old")
    if target.exists():
        target.rename(old)
    try:
        work.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _hold(folder: Path) -> int:
    """An open directory with a lock on it, which goes when the process does."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _sweep(parent: Path) -> None:
    """Removes temporary files and directories of ours that killed runs left: no process holds them. Best effort."""
    for left in parent.glob(f"{_TEMPORARY}*.tmp"):
        with suppress(OSError):
            status = left.lstat()
            young = time.time() - max(status.st_mtime, status.st_ctime) < _ABANDONED_SECONDS
            known = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
            if young or not known or status.st_uid != os.getuid():
                continue
            handle = os.open(left, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()
            finally:
                os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    """The whole file at once; errors as :func:`atomic_writer`."""
    with atomic_writer(path) as out:
        out.write(data)


def write_text(path: Path, text: str) -> None:
    """The whole file at once, UTF-8, newlines as they are; errors as :func:`atomic_writer`."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def _create(target: Path) -> tuple[BinaryIO, str | None]:
    """An open file in the target's directory, and its name if it has one."""
    handle, name = _open(target)
    try:
        return os.fdopen(handle, "wb"), name
    except BaseException:
        os.close(handle)
        if name is not None:
            Path(name).unlink(missing_ok=True)
        raise


def _open(target: Path) -> tuple[int, str | None]:
    if hasattr(os, "O_TMPFILE") and Path(_OPEN_FILES).is_dir():
        try:
            return os.open(target.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), None
        except OSError as error:
            if error.errno not in _NO_TMPFILE or not target.parent.is_dir():
                raise
    name = _temporary_name(target)
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666), name


def _link(handle: int, target: Path) -> str:
    """Gives a nameless file a name beside the target: a link cannot replace a file, a rename can."""
    name = _temporary_name(target)
    directory = os.open(_OPEN_FILES, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Only with a directory does Python make the call that follows the link.
        os.link(str(handle), name, src_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)
    return name


def _temporary_name(target: Path) -> str:
    return str(target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}.tmp"))


def _sync_directory(path: Path) -> None:
    """Best effort: not every file system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in FULL:
            raise ToolError(
                "output-disk-full", f"no room left to write {path.name!r}", "free some space; what was there is kept"
            ) from error
        reason = error.strerror or type(error).__name__
        raise ToolError(
            "output-unwritable",
            f"{path.name!r} cannot be written: {reason}",
            "check the directory and its permissions",
        ) from error
