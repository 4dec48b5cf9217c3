"""nsys exports as Arrow: a directory of files (``--type arrowdir``) or one file of many streams (``--type arrow``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.sources import digest, nsys_schema
from nvprof_tools.sources.base import EXPORT_AGAIN, RawTables
from nvprof_tools.sources.columnar import Budget, begins_with, picked, table_files, translated

SUFFIX = ".arrow"
FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
TABLE_NAME = b"table_name"


def _is_arrow(path: Path) -> bool:
    return begins_with(path, FILE_MAGIC) or begins_with(path, STREAM_MAGIC)


def _whole(table: str, reader: Any, budget: Budget) -> pa.Table:
    """All batches, checked: an unchecked one from a damaged file can crash the process later."""
    batches = []
    for batch in reader:
        batches.append(budget.checked(batch))
    return pa.Table.from_batches(batches, reader.schema)


def _file_batches(reader: Any) -> Any:
    """An IPC file's batches, with the schema beside them as a stream has it."""

    class Batches:
        schema = reader.schema

        def __iter__(self) -> Iterator[pa.RecordBatch]:
            return (reader.get_batch(i) for i in range(reader.num_record_batches))

    return Batches()


class ArrowDirectory:
    """One Arrow file a table."""

    def __init__(self, files: Mapping[str, Path], limits: Limits) -> None:
        self.files = files
        self.limits = limits
        self.columns: dict[str, tuple[str, ...]] = {}
        for name, path in files.items():
            with translated(name), pa.OSFile(str(path)) as source:
                self.columns[name] = tuple(self._reader(path, source).schema.names)

    def _reader(self, path: Path, source: Any) -> Any:
        if begins_with(path, FILE_MAGIC):
            return _file_batches(pa.ipc.open_file(source))
        return pa.ipc.open_stream(source)

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`."""
        path = self.files[table]
        budget = Budget(table, path.stat().st_size, self.limits)
        with translated(table), pa.OSFile(str(path)) as source:
            return picked(table, _whole(table, self._reader(path, source), budget), columns, types)

    def close(self) -> None:
        """Nothing is held."""


class ArrowStreams:
    """One file of concatenated streams, each a table named by its schema; wanted ones are kept in memory."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.tables: dict[str, pa.Table] = {}
        with translated("of the file"), pa.OSFile(str(path)) as source:
            size = source.size()
            if size > limits.file_bytes:
                raise SourceError("limit-file", f"the file has {size:,} bytes, more than allowed", EXPORT_AGAIN)
            budget = Budget("of the file", size, limits)
            while source.tell() < size:
                reader = pa.ipc.open_stream(source)
                name = (reader.schema.metadata or {}).get(TABLE_NAME, b"").decode("utf-8", "replace")
                read = _whole(name, reader, budget)
                if nsys_schema.resolve([name]):
                    self.tables[name] = read
                if len(self.tables) > limits.tables:
                    raise SourceError("limit-tables", "the file has more tables than allowed", EXPORT_AGAIN)
            # Names are decoded only now, and may not be text.
            self.columns = {name: tuple(table.column_names) for name, table in self.tables.items()}

    def read_columns(self, table: str, columns: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """See :class:`nvprof_tools.sources.base.TableReader`."""
        with translated(table):
            return picked(table, self.tables[table], columns, types)

    def close(self) -> None:
        """Let the tables go."""
        self.tables.clear()


class NsysArrow:
    """One directory of Arrow files."""

    kind = "nsys-arrow"

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        if not path.is_dir():
            return False
        return nsys_schema.looks_like_export(
            p.name.removesuffix(SUFFIX) for p in path.glob(f"*{SUFFIX}") if _is_arrow(p)
        )

    def read(self, path: Path, limits: Limits) -> RawTables:
        """See :class:`nvprof_tools.sources.base.Source`."""
        files = table_files(path, SUFFIX, limits)
        names = nsys_schema.resolve(files)
        used = {actual: files[actual] for actual in names.values()}
        contents = [p.name for p in used.values()]
        return RawTables(
            self.kind, ArrowDirectory(used, limits), names, lambda: digest.of_directory(path, contents), limits
        )


class NsysArrowFile:
    """One file of concatenated Arrow streams."""

    kind = "nsys-arrow"

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        return path.is_file() and begins_with(path, STREAM_MAGIC)

    def read(self, path: Path, limits: Limits) -> RawTables:
        """See :class:`nvprof_tools.sources.base.Source`."""
        reader = ArrowStreams(path, limits)
        if not nsys_schema.looks_like_export(reader.columns):
            raise SourceError(
                "not-an-nsys-export", "the Arrow file has none of the tables of an nsys export", EXPORT_AGAIN
            )
        return RawTables(self.kind, reader, nsys_schema.resolve(reader.columns), lambda: digest.of_file(path), limits)
