"""nsys exports as a directory of Parquet files (``nsys export --type parquetdir``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nvprof_tools.limits import Limits
from nvprof_tools.sources import digest, nsys_schema
from nvprof_tools.sources.base import RawTables
from nvprof_tools.sources.columnar import Budget, begins_with, picked, table_files, translated, unpacked_bytes

MAGIC, SUFFIX = b"PAR1", ".parquet"


class ParquetTables:
    """The files of one directory as tables."""

    def __init__(self, files: Mapping[str, Path], limits: Limits) -> None:
        self.files = files
        self.limits = limits
        self.columns: dict[str, tuple[str, ...]] = {}
        for name, path in files.items():
            with translated(name):
                self.columns[name] = tuple(self._open(path).schema_arrow.names)

    def _open(self, path: Path) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(path, thrift_string_size_limit=1 << 26, thrift_container_size_limit=1 << 20)

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`."""
        path = self.files[table]
        budget = Budget(table, path.stat().st_size, self.limits)
        with translated(table):
            file = self._open(path)
            budget.announce(unpacked_bytes(file))
            batches = []
            for batch in file.iter_batches(batch_size=65_536, columns=list(columns)):
                batches.append(budget.checked(batch))
            schema = pa.schema([file.schema_arrow.field(c) for c in columns])
            read = pa.Table.from_batches([b.select(list(columns)) for b in batches], schema)
            return picked(table, read, columns, types)

    def close(self) -> None:
        """Nothing is held."""


class NsysParquet:
    """One directory."""

    kind = "nsys-parquet"

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        if not path.is_dir():
            return False
        names = [p.name.removesuffix(SUFFIX) for p in path.glob(f"*{SUFFIX}") if begins_with(p, MAGIC)]
        return nsys_schema.looks_like_export(names)

    def read(self, path: Path, limits: Limits) -> RawTables:
        """See :class:`nvprof_tools.sources.base.Source`."""
        files = table_files(path, SUFFIX, limits)
        names = nsys_schema.resolve(files)
        used = {actual: files[actual] for actual in names.values()}
        contents = [p.name for p in used.values()]
        return RawTables(
            self.kind, ParquetTables(used, limits), names, lambda: digest.of_directory(path, contents), limits
        )
