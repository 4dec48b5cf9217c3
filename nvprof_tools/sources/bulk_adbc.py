"""Reads columns of a checked database into Arrow through ADBC's SQLite driver (docs/adr/0002-bulk-reader.md)."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB
from nvprof_tools.sources.guarded_sqlite import PRAGMAS, REEXPORT, GuardedDatabase, quoted, same_file, select

BATCH_ROWS = 65_536
SPARE_BYTES, BYTES_A_FILE_BYTE = 256 * MIB, 8
"""What columns may grow to: a row that stores nothing can be seven bytes in the file and hundreds in memory."""

_SAMPLE = {pa.int64(): "0", pa.string(): "''"}


class AdbcReader:
    """The second opening of a checked file, for whole columns. Each thread has a connection of its own."""

    def __init__(self, database: GuardedDatabase) -> None:
        self.database = database
        self.columns = {name: table.columns for name, table in database.tables.items()}
        self._cap = SPARE_BYTES + BYTES_A_FILE_BYTE * database.size
        self._spent = 0
        self._local = threading.local()
        self._handles: list[Any] = []

    def _connection(self) -> Any:
        # Not adbc's dbapi layer: it loads pyarrow.dataset and with it pandas, half a second for nothing.
        import adbc_driver_manager
        import adbc_driver_sqlite

        found = getattr(self._local, "connection", None)
        if found is None:
            with same_file(self.database):
                driver = adbc_driver_sqlite._driver_path()
                handle = adbc_driver_manager.AdbcDatabase(driver=driver, uri=self.database.uri)
                found = adbc_driver_manager.AdbcConnection(handle)
            self._handles.extend((handle, found))
            self._local.connection = found
            for pragma in PRAGMAS:
                self._query(found, f"PRAGMA {pragma}", "")
        return found

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`; text is as stored, not yet checked for UTF-8."""
        # The driver takes a column's type from its first batch, and an all-null one for integers: a first row of our
        # own settles it, and is cut off again. A value of another type then is the driver's error, or another type.
        self.database.check(table)
        first = ", ".join(f"{_SAMPLE[t]} AS {quoted(c)}" for c, t in zip(columns, types, strict=True))
        with _translated(table, columns):
            got = self._query(self._connection(), f"SELECT {first} UNION ALL {select(table, columns)}", table).slice(1)
        wrong = [c for c, t, f in zip(columns, types, got.schema, strict=True) if f.type != t]
        if wrong:
            raise _wrong_type(table, wrong[0])
        return pa.Table.from_arrays(got.columns, names=list(columns))

    def _query(self, connection: Any, query: str, table: str) -> pa.Table:
        import adbc_driver_manager

        limits = self.database.limits
        most, deadline = limits.table_rows, time.monotonic() + limits.read_seconds
        statement, reader = adbc_driver_manager.AdbcStatement(connection), None
        try:
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            statement.set_sql_query(query)
            stream, _ = statement.execute_query()
            reader = pa.RecordBatchReader._import_from_c(stream.address)
            batches, rows = [], 0
            for batch in reader:
                rows += batch.num_rows
                self._spent += batch.nbytes
                _hold(rows <= most, "limit-rows", f"table {table} has more than {most:,} rows")
                _hold(self._spent <= self._cap, "limit-memory", f"the tables need more than {self._cap:,} bytes")
                _hold(time.monotonic() <= deadline, "limit-time", f"reading table {table} took too long")
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
        finally:
            if reader is not None:
                reader.close()
            statement.close()

    def close(self) -> None:
        """Close the driver and the database behind it. No thread may be reading."""
        for handle in reversed(self._handles):
            handle.close()
        self._handles.clear()
        self.database.close()


def _hold(fine: bool, slug: str, message: str) -> None:
    if not fine:
        raise SourceError(slug, message, REEXPORT)


def _wrong_type(table: str, column: str) -> SourceError:
    return SourceError(
        "column-storage-type", f"table {table} stores values of another type in column {column}", REEXPORT
    )


_MISMATCH = re.compile(r"Type mismatch in column (\d+)")


@contextmanager
def _translated(table: str, columns: Sequence[str]) -> Iterator[None]:
    """Every way the driver can fail becomes one SourceError."""
    import adbc_driver_manager

    try:
        yield
    except SourceError:
        raise
    except MemoryError as error:
        raise SourceError("limit-memory", f"table {table} needs more memory than there is", REEXPORT) from error
    except (OSError, pa.ArrowException, ValueError, OverflowError, adbc_driver_manager.Error) as error:
        mismatch = _MISMATCH.search(str(error))
        if mismatch is not None and int(mismatch.group(1)) < len(columns):
            raise _wrong_type(table, columns[int(mismatch.group(1))]) from error
        raise SourceError("database-corrupt", f"table {table} cannot be read", REEXPORT) from error
