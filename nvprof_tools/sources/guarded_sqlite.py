"""Opens SQLite databases that nobody vouches for; the only place that opens one.

The order of the checks matters and each has a reason:

1. a regular file within the size cap, held open by descriptor, so that a later swap of the name is noticed;
2. the 100-byte header: magic, page size, and that the file has as many pages as it says;
3. no rollback journal or write-ahead log beside it: opened plainly SQLite would roll it back, which *changes* the
   file; opened immutable it would show uncommitted rows;
4. ``mode=ro&immutable=1``: no lock, no write, no look at the journal;
5. an authorizer that denies by default, before the first statement is compiled;
6. hard limits, untrusted schema off, cell checks on, no memory map, a deadline on every check;
7. only real tables are listed: a view or a virtual table named like a table can cost seconds and gigabytes;
8. ``quick_check`` of each table before anything is read of it.

Only tables that passed all of it are handed to the bulk reader, which must find itself on the same file.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB, Limits

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
BYTES_CHECKED_A_SECOND = 20 * MIB
"""What the structural check may take on an honest large file: the deadline grows with the size."""

REEXPORT = "export the report again: nsys export --type sqlite REPORT.nsys-rep"


@dataclass(frozen=True)
class Header:
    """What the first 100 bytes say."""

    page_size: int
    pages: int
    wal: bool
    encoding: int


@dataclass(frozen=True)
class RealTable:
    """A table that stores rows: its plain columns in order, and whether it is keyed by rowid."""

    name: str
    columns: tuple[str, ...]
    without_rowid: bool


class GuardedDatabase:
    """A database that passed the checks of its header and schema; each table is checked before it is first read.

    ``descriptor`` stays open on the very file that was checked. Every thread that reads has its own connection.
    """

    def __init__(self, path: Path, descriptor: int, header: Header, limits: Limits) -> None:
        self.path = path
        self.descriptor = descriptor
        self.header = header
        self.limits = limits
        self.size = os.fstat(descriptor).st_size
        self.opening = threading.Lock()
        self.tables: Mapping[str, RealTable] = {}
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._checked: set[str] = set()

    def __enter__(self) -> GuardedDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and the descriptor; twice is fine. No thread may be reading."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    @property
    def uri(self) -> str:
        """The file as a read-only, immutable SQLite URI."""
        return f"file:{quote(str(self.path.absolute()))}?mode=ro&immutable=1"

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's guarded connection."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            with translated(), same_file(self):
                found = sqlite3.connect(self.uri, uri=True, check_same_thread=False, cached_statements=0)
            self._connections.append(found)
            with translated():
                self._restrict(found)
            self._local.connection = found
        return found

    def _restrict(self, connection: sqlite3.Connection) -> None:
        local = self._local
        local.deadline = float("inf")
        connection.set_authorizer(_authorize)
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.limits.string_bytes)
        connection.set_progress_handler(lambda: int(time.monotonic() > local.deadline), 10_000)
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    @contextmanager
    def deadline(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection with what a check may take: more for a larger file, so that honest ones pass."""
        connection = self.connection
        self._local.deadline = time.monotonic() + max(self.limits.check_seconds, self.size / BYTES_CHECKED_A_SECOND)
        try:
            with translated():
                yield connection
        finally:
            self._local.deadline = float("inf")

    def read_schema(self) -> None:
        """Find the real tables."""
        with self.deadline() as connection:
            rows = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = tbl_name LIMIT ?",
                (self.limits.tables + 1,),
            ).fetchall()
            if len(rows) > self.limits.tables:
                raise SourceError("limit-tables", f"the database has more than {self.limits.tables:,} tables", REEXPORT)
            kinds = {row[1]: (row[2], bool(row[4])) for row in connection.execute("PRAGMA main.table_list")}
            found = {}
            for (name,) in rows:
                kind, without_rowid = kinds.get(name, ("table", False))
                if isinstance(name, str) and kind == "table" and not name.lower().startswith("sqlite_"):
                    columns = connection.execute(f"PRAGMA main.table_xinfo({quoted(name)})").fetchall()
                    found[name] = RealTable(name, tuple(c[1] for c in columns if c[6] == 0), without_rowid)
            self.tables = found

    def check(self, table: str) -> None:
        """SQLite's structure check of one table, once; nothing may be read of it before.

        :raises SourceError: it is damaged.
        """
        if table in self._checked:
            return
        whole = sqlite3.sqlite_version_info < (3, 33)
        with self.deadline() as connection:
            found = connection.execute(f"PRAGMA main.quick_check({1 if whole else quoted(table)})").fetchone()
        if found is None or found[0] != "ok":
            raise SourceError("database-corrupt", f"table {table} is damaged: its structure check failed", REEXPORT)
        self._checked.update(self.tables if whole else (table,))

    def changed(self) -> bool:
        """Whether the file was written to or replaced since it was opened."""
        try:
            now = self.path.stat()
        except OSError:
            return True
        held = os.fstat(self.descriptor)
        return _identity(now) != _identity(held) or now.st_size != self.size


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def quoted(name: str) -> str:
    """``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def select(table: str, columns: Sequence[str]) -> str:
    """The only statement event rows are read by; indexes are kept out, since the structure check vouches for tables."""
    return f"SELECT {', '.join(quoted(c) for c in columns)} FROM main.{quoted(table)} NOT INDEXED"


_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

PRAGMAS = ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON")
"""Set on every connection, the bulk reader's too."""

_ALLOWED_PRAGMAS = {
    "trusted_schema", "cell_size_check", "mmap_size", "query_only", "quick_check", "table_xinfo", "table_list",
}  # fmt: skip


def _authorize(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    if source is not None:  # asked for by a view or a trigger, never by a statement of ours
        return sqlite3.SQLITE_DENY
    if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in _ALLOWED_PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


@contextmanager
def translated() -> Iterator[None]:
    """Every way a database can fail becomes one SourceError."""
    try:
        yield
    except SourceError:
        raise
    except sqlite3.Error as error:
        raise _of_sqlite(error) from error
    except (UnicodeDecodeError, OverflowError, ValueError) as error:
        raise SourceError("database-corrupt", f"the database is damaged: {type(error).__name__}", REEXPORT) from error
    except MemoryError as error:
        raise SourceError("limit-memory", "the database needs more memory than there is", REEXPORT) from error


def _of_sqlite(error: sqlite3.Error) -> SourceError:
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if name == "SQLITE_INTERRUPT":
        return SourceError("limit-time", "checking the database took longer than allowed", REEXPORT)
    if name in {"SQLITE_TOOBIG", "SQLITE_NOMEM"}:
        return SourceError("limit-memory", f"a value of the database is too large ({name})", REEXPORT)
    if name in {"SQLITE_AUTH", "SQLITE_AUTH_USER"}:
        return SourceError("database-hostile", "the database wants more than reading tables", REEXPORT)
    if name == "SQLITE_CANTOPEN":
        return SourceError(
            "file-unreadable", "the database cannot be opened", "check that the file exists and is readable"
        )
    return SourceError("database-corrupt", f"the database is damaged ({name})", REEXPORT)


@contextmanager
def same_file(database: GuardedDatabase) -> Iterator[None]:
    """Whatever opens the file by name in here must land on the file that was checked.

    Where ``/proc/self/fd`` lists descriptors, a new one on the same inode is looked for; elsewhere the name's inode is
    compared.
    """
    with database.opening:
        before = _descriptors(database)
        yield
        after = _descriptors(database)
    moved = database.changed() if after is None or before is None else len(after) <= len(before)
    if moved:
        raise SourceError(
            "file-changed", "the file changed while it was read", "wait until it is written, then try again"
        )


def _descriptors(database: GuardedDatabase) -> set[int] | None:
    """Our open descriptors on the held file; None where the system does not list them."""
    held = os.fstat(database.descriptor)
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - Path.iterdir opens one per entry
    except OSError:
        return None
    found = set()
    for number in numbers:
        try:
            status = os.fstat(number)
        except OSError:
            continue
        if (status.st_dev, status.st_ino) == (held.st_dev, held.st_ino):
            found.add(number)
    return found


def is_sqlite(path: Path) -> bool:
    """Whether the file begins as SQLite databases do."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_header(head: bytes, size: int) -> Header:
    """Check the header against the file's size."""
    if head[: len(MAGIC)] != MAGIC:
        raise SourceError("not-a-database", "the file is not an SQLite database", REEXPORT)
    if len(head) < HEADER_BYTES:
        raise SourceError("database-truncated", "the database ends within its header", REEXPORT)
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    encoding = int.from_bytes(head[56:60], "big")
    if page_size < 512 or page_size & (page_size - 1) or head[21:24] != b"\x40\x20\x20" or encoding > 3:
        raise SourceError("database-corrupt", "the database header is damaged", REEXPORT)
    stated = int.from_bytes(head[28:32], "big")
    current = head[24:28] == head[92:96]
    pages = stated if current and stated else size // page_size
    if size < pages * page_size:
        raise SourceError(
            "database-truncated", f"the file has {size:,} of {pages * page_size:,} bytes", "copy or download it again"
        )
    if size != pages * page_size:
        raise SourceError("database-corrupt", "the file is longer than its header says", REEXPORT)
    return Header(page_size, pages, 2 in head[18:20], encoding)


def _sidecar(path: Path) -> str | None:
    for base in {path, path.resolve()}:
        for suffix in ("-journal", "-wal"):
            try:
                if Path(f"{base}{suffix}").stat().st_size > 0:
                    return suffix
            except OSError:
                continue
    return None


def open_guarded(path: Path, limits: Limits) -> GuardedDatabase:
    """Open ``path`` after every check of this module; close it, or use it as a context manager.

    :raises SourceError: the file is no database, damaged, hostile, unsafe to open, or over a limit.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        message = f"the file cannot be opened: {error.strerror}"
        raise SourceError("file-unreadable", message, "check that it exists and is readable") from error
    try:
        database = GuardedDatabase(path, descriptor, _vet(path, descriptor, limits), limits)
    except BaseException:
        os.close(descriptor)
        raise
    try:
        database.read_schema()
    except BaseException:
        database.close()
        raise
    return database


def _vet(path: Path, descriptor: int, limits: Limits) -> Header:
    """What can be told before SQLite sees the file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise SourceError("not-a-file", "the input is not a regular file", "give the path of an export")
    if status.st_size > limits.file_bytes:
        message = f"the file has {status.st_size:,} bytes, more than the {limits.file_bytes:,} allowed"
        raise SourceError("limit-file", message, "export fewer tables or a shorter time")
    header = read_header(os.pread(descriptor, HEADER_BYTES, 0), status.st_size)
    beside = _sidecar(path)
    if beside is not None:
        raise SourceError(
            "database-unsafe",
            f"a non-empty {beside} file lies beside the database: its last write was not finished",
            "copy both, open the copy once with sqlite3 to finish the write, and use the copy",
        )
    return header
