"""Reads columns of a checked database into Arrow through ADBC's SQLite driver (docs/adr/0002-bulk-reader.md)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB
from nvprof_tools.sources.guarded_sqlite import REEXPORT, GuardedDatabase, quoted, same_file, select

BATCH_ROWS = 65_536
SPARE_BYTES, BYTES_A_FILE_BYTE = 256 * MIB, 8
"""What columns may grow to: a row that stores nothing can be seven bytes in the file and hundreds in memory."""

_SAMPLE = {pa.int64(): "0", pa.string(): "''"}


class AdbcReader:
    """The second opening of a checked file, for whole columns."""

    def __init__(self, database: GuardedDatabase) -> None:
        self.database = database
        self.columns = {name: table.columns for name, table in database.tables.items()}
        self._spent = 0
        self._handles: list[Any] = []
        self._connection: Any = None

    def _connect(self) -> Any:
        # Not adbc's dbapi layer: it loads pyarrow.dataset and with it pandas, half a second for nothing.
        import adbc_driver_manager
        import adbc_driver_sqlite

        if self._connection is None:
            with same_file(self.database):
                database = adbc_driver_manager.AdbcDatabase(
                    driver=adbc_driver_sqlite._driver_path(), uri=self.database.uri
                )
                self._handles.append(database)
                self._connection = adbc_driver_manager.AdbcConnection(database)
                self._handles.append(self._connection)
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"):
                self._query(f"PRAGMA {pragma}", (), 0.0, "")
        return self._connection

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`; text is as stored, not yet checked for UTF-8."""
        # The driver takes a column's type from its first batch, and an all-null one for integers: a first row of our
        # own settles it, and is cut off again. A value of another type then is the driver's error, or another type.
        first = ", ".join(f"{_SAMPLE[t]} AS {quoted(c)}" for c, t in zip(columns, types, strict=True))
        query = f"SELECT {first} UNION ALL {select(table, columns)}"
        with translated_adbc(table):
            self._connect()
            got = self._query(query, types, time.monotonic() + self.database.limits.read_seconds, table).slice(1)
        return pa.Table.from_arrays(got.columns, names=list(columns))

    def _query(self, query: str, types: Sequence[pa.DataType], deadline: float, table: str) -> pa.Table:
        import adbc_driver_manager

        limits = self.database.limits
        statement = adbc_driver_manager.AdbcStatement(self._connection)
        try:
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            statement.set_sql_query(query)
            stream, _ = statement.execute_query()
            reader = pa.RecordBatchReader._import_from_c(stream.address)
            batches, rows = [], 0
            for batch in reader:
                rows += batch.num_rows
                self._spent += batch.nbytes
                _hold("limit-rows", f"table {table} has more than {limits.table_rows:,} rows", rows <= limits.table_rows)
                cap = SPARE_BYTES + BYTES_A_FILE_BYTE * self.database.size
                _hold("limit-memory", f"the tables need more than {cap:,} bytes", self._spent <= cap)
                if types:
                    _hold("limit-time", f"reading table {table} took too long", time.monotonic() <= deadline)
                batches.append(batch)
            result = pa.Table.from_batches(batches, reader.schema)
            reader.close()
        finally:
            statement.close()
        if types and result.schema.types != list(types):
            wrong = next(f.name for f, t in zip(result.schema, types, strict=True) if f.type != t)
            raise _wrong_type(table, wrong)
        return result

    def close(self) -> None:
        """Close the driver and the database behind it."""
        for handle in reversed(self._handles):
            handle.close()
        self._handles.clear()
        self._connection = None
        self.database.close()


def _hold(slug: str, message: str, fine: bool) -> None:
    if not fine:
        raise SourceError(slug, message, REEXPORT)


def _wrong_type(table: str, column: str) -> SourceError:
    return SourceError(
        "column-storage-type", f"table {table} stores values of another type in column {column}", REEXPORT
    )


class translated_adbc:  # noqa: N801 - reads as a statement
    """Every way the driver can fail becomes one SourceError."""

    def __init__(self, table: str) -> None:
        self.table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, SourceError) or not isinstance(error, Exception):
            return
        text = str(error)
        if isinstance(error, MemoryError):
            raise SourceError("limit-memory", f"table {self.table} needs more memory than there is", REEXPORT) from error
        if "Type mismatch" in text:
            raise _wrong_type(self.table, "of an unknown number") from error
        raise SourceError("database-corrupt", f"table {self.table} cannot be read", REEXPORT) from error
