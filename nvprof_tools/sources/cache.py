"""Imports kept by the content they were made from, so that the same trace is normalised once.

Opt-in: a folder that the user names, theirs alone. An entry is a directory of Arrow files as ``import`` writes them,
under a name made of the trace's SHA-256, the limits and the importing code; it appears whole or not at all, so readers
and writers need no lock, and a killed writer leaves nothing that counts. Entries are mapped into memory, and checked as
``import`` directories are but for the digests: the folder is as trusted as the program itself. One that fails a check
is removed and made again.

What a large file held is remembered by its identity (device, inode, size, times), unless it was changed within the last
minute, so that a large trace is not hashed again either.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from nvprof_tools.errors import SourceError, ToolError
from nvprof_tools.files.atomic import write_text
from nvprof_tools.limits import GIB, MIB, Limits
from nvprof_tools.model.tables import SPECS, TableSpec
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources import arrow_dir, digest
from nvprof_tools.sources.columnar import translated

MOST_BYTES = 64 * GIB
"""Entries beyond this go, the longest unused first."""
SETTLED_SECONDS = 60.0
"""A file changed more lately than this may change again without its times showing it: within a tick of the clock, or
through a mapping, whose pages are written back up to half a minute later."""
ALWAYS_HASHED = 32 * MIB
"""Files up to this size are hashed each time: it takes so little that their times need not be trusted."""

SIDECARS = ("-journal", "-wal")

_CODE = ("model", "native", "sources", "timeline")
"""Packages whose code decides what an import holds."""
_CODE_FILES = frozenset({".py", ".toml", ".cpp", ".h"})


class ImportCache:
    """Imports in a folder.

    :raises SourceError: ``cache-unsafe``: the folder is someone else's, or others may write to it.
    :raises SourceError: ``cache-unusable``: it cannot be made.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.stat()
        except OSError as error:
            reason = error.strerror or "the path is not valid"
            raise SourceError(
                "cache-unusable", f"the cache folder cannot be made: {reason}", "name a folder that you can write to"
            ) from error
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise SourceError(
                "cache-unsafe", "the cache folder can be written by others", "name a folder of your own: chmod go-w"
            )
        self._code = code_digest(_CODE)

    def load(self, path: Path, limits: Limits, read: Callable[[Path, Limits], Trace]) -> Trace:
        """The trace of ``path``, from the cache or through ``read`` and then kept.

        Directories are never kept, nor a database beside which the rest of a write lies: ``read`` refuses that.
        """
        if not whole_file(path):
            return read(path, limits)
        kept = self._get(self._entry(self.content(path), limits))
        if kept is not None:
            return kept
        trace = read(path, limits)
        # Under the digest of what was read: the file may have changed since it was hashed.
        with suppress(ToolError, OSError):  # a full disk or a second writer is no reason to fail
            arrow_dir.write_tables(trace, self._entry(trace.source.sha256, limits), "arrow")
            self.trim()
        return trace

    def _entry(self, content: str, limits: Limits) -> Path:
        limits = replace(limits, memory_bytes=None)  # it changes no import
        made_by = hashlib.sha256(f"{self._code} {limits!r}".encode()).hexdigest()[:16]
        return self.folder / f"{content}-{made_by}"

    def content(self, path: Path) -> str:
        """The file's SHA-256; a large one's is remembered where the file is as it was."""
        facts = _identity(path)
        if path.stat().st_size <= ALWAYS_HASHED:
            return digest.of_file(path)
        note = self.folder / "digests" / hashlib.sha256(repr(facts).encode()).hexdigest()
        with suppress(OSError, UnicodeDecodeError):
            known = note.read_text("ascii")
            if len(known) == 64 and set(known) <= set("0123456789abcdef"):
                return known
        found = digest.of_file(path)
        if time.time() - max(facts[-2:]) / 1e9 > SETTLED_SECONDS and _identity(path) == facts:
            with suppress(ToolError, OSError):
                note.parent.mkdir(mode=0o700, exist_ok=True)
                write_text(note, found)
        return found

    def _get(self, entry: Path) -> Trace | None:
        if not entry.is_dir():
            return None
        try:
            trace = _mapped(entry)
            os.utime(entry)
        except SourceError:
            shutil.rmtree(entry, ignore_errors=True)
            return None
        except OSError:  # removed by another process meanwhile
            return None
        return trace

    def trim(self) -> None:
        """Remove the longest unused entries until the rest fits. Best effort; readers keep what they have mapped."""
        entries = []
        for entry in self.folder.iterdir():
            with suppress(OSError):
                if entry.name.count("-") == 1 and entry.is_dir():
                    size = sum(file.stat().st_size for file in entry.iterdir())
                    entries.append((entry.stat().st_mtime_ns, size, entry))
        held = 0
        for _, size, entry in sorted(entries, key=lambda one: one[0], reverse=True):
            held += size
            if held > self.most_bytes:
                shutil.rmtree(entry, ignore_errors=True)


def _identity(path: Path) -> tuple[int, ...]:
    """What tells a file from another, and from itself before a change; its times last, ns."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def whole_file(path: Path) -> bool:
    """Whether it is a file, and no database beside which the rest of a write lies."""
    return path.is_file() and not any(Path(f"{path}{suffix}").exists() for suffix in SIDECARS)


@functools.cache
def code_digest(packages: tuple[str, ...]) -> str:
    """SHA-256 of the code of these packages of ours, and of the markers' names, which both imports and answers go by:
    another version of it makes other entries."""
    root = Path(__file__).resolve().parent.parent.parent
    found = hashlib.sha256()
    for package in (*(f"nvprof_tools/{name}" for name in packages), "nvtx_markers"):
        for source in sorted(path for path in (root / package).rglob("*") if path.suffix in _CODE_FILES):
            found.update(f"{source.relative_to(root).as_posix()}\0".encode())
            found.update(source.read_bytes())
    return found.hexdigest()


def _mapped(entry: Path) -> Trace:
    """An entry's trace, its tables mapped.

    :raises SourceError: a table is not what its schema says.
    """
    manifest = arrow_dir._Manifest(entry)
    tables = {}
    for spec in SPECS:
        name, rows, _ = manifest.table(spec.name)
        with translated(spec.name):
            table = pa.ipc.open_file(pa.memory_map(str(entry / name))).read_all()
            table.validate(full=True)
        _check(spec, table, rows)
        tables[spec.name] = table
    for spec in SPECS:
        arrow_dir._check_pointers(spec, tables)
    return Trace(manifest.source(), manifest.session(), tables, manifest.measured(), manifest.quality(), manifest.log())


def _check(spec: TableSpec, table: pa.Table, rows: int) -> None:
    sound = table.schema.equals(spec.schema) and table.num_rows == rows
    if not sound or any(not c.nullable and table[c.name].null_count for c in spec.columns):
        raise SourceError("import-damaged", f"table {spec.name} of a cache entry is damaged", arrow_dir.WRITE_AGAIN)
