"""nsys exports as SQLite (``nsys export --type sqlite``)."""

from __future__ import annotations

from pathlib import Path

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.sources import digest, nsys_schema
from nvprof_tools.sources.base import RawTables
from nvprof_tools.sources.bulk_adbc import AdbcReader
from nvprof_tools.sources.bulk_pages import PageReader
from nvprof_tools.sources.guarded_sqlite import is_sqlite, open_guarded


class NsysSqlite:
    """One SQLite file."""

    kind = "nsys-sqlite"

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        return path.is_file() and is_sqlite(path)

    def read(self, path: Path, limits: Limits) -> RawTables:
        """See :class:`nvprof_tools.sources.base.Source`."""
        database = open_guarded(path, limits)
        if not nsys_schema.looks_like_export(database.tables):
            database.close()
            raise SourceError(
                "not-an-nsys-export",
                "the database has none of the tables of an nsys export",
                "make one with: nsys export --type sqlite REPORT.nsys-rep",
            )
        names = nsys_schema.resolve(database.tables)
        reader = PageReader(database, AdbcReader(database))
        raw = RawTables(self.kind, reader, names, lambda: digest.of_descriptor(database.descriptor), limits)
        raw.quality = reader.quality
        return raw
