"""Our own form of a capture: the normalised tables as Arrow or Parquet files, and a manifest that says what they are.

The same trace gives the same bytes. Reading checks everything that is relied on later: digests, schemas, nulls,
row numbers that point into other tables, intervals that end before they start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.errors import SourceError
from nvprof_tools.files.atomic import atomic_directory
from nvprof_tools.limits import Limits
from nvprof_tools.model.arrays import canonical, flat, ints, validity
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.tables import SPECS, TABLES, TableSpec
from nvprof_tools.model.trace import Session, SourceInfo, Trace
from nvprof_tools.sources import digest
from nvprof_tools.sources.columnar import Budget, translated

FORMAT, VERSION = "nvprof-tools-tables", 1
MANIFEST, LOG = "manifest.json", "embedded.log"
MOST_MANIFEST_BYTES = 16 * 1024 * 1024
POINTERS = {
    "process": "processes",
    "thread": "threads",
    "end_thread": "threads",
    "device": "devices",
    "api_call": "api_calls",
}
"""Columns that hold row numbers of another table."""

Storage = Literal["parquet", "arrow"]
WRITE_AGAIN = "write it again with `nvprof-tools import`"


def write_tables(trace: Trace, directory: Path, storage: Storage = "parquet", *, replace: bool = False) -> None:
    """Write a trace's tables and its manifest.

    :param replace: take the place of a directory that is there.
    :raises ToolError: the directory is there, or cannot be written.
    """
    with atomic_directory(directory, replace=replace) as folder:
        files: dict[str, dict[str, object]] = {}
        for spec in SPECS:
            table = trace[spec.name]
            path = folder / f"{spec.name}.{storage}"
            _store(table, path, storage)
            files[spec.name] = {"file": path.name, "rows": table.num_rows, "sha256": digest.of_file(path)}
        log = None
        if trace.embedded_log is not None:
            data = trace.embedded_log.encode("utf-8", "surrogatepass")
            (folder / LOG).write_bytes(data)
            log = {"file": LOG, "sha256": hashlib.sha256(data).hexdigest()}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "storage": storage,
            "source": vars(trace.source),
            "session": {**vars(trace.session), "facts": dict(trace.session.facts)},
            "measured": sorted(trace.measured),
            "quality": [vars(item) for item in trace.quality],
            "embedded_log": log,
            "tables": files,
        }
        text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=True)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _store(table: pa.Table, path: Path, storage: Storage) -> None:
    if storage == "parquet":
        from pyarrow import parquet

        # Times and row numbers mostly grow by little: their differences take a third of the room.
        words = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
        packed = {f.name: "DELTA_BINARY_PACKED" for f in table.schema if f.type in (pa.int32(), pa.int64())}
        parquet.write_table(
            table, path, compression="zstd", version="2.6", use_dictionary=words, column_encoding=packed
        )
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())


class TablesDirectory:
    """A directory that :func:`write_tables` wrote."""

    kind = "nvprof-tools"

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        if not path.is_dir():
            return False
        try:
            with (path / MANIFEST).open("rb") as file:
                return FORMAT.encode() in file.read(MOST_MANIFEST_BYTES)
        except OSError:
            return False

    def read(self, path: Path, limits: Limits) -> Trace:
        """The trace it was written from."""
        manifest = _Manifest(path)
        tables = {spec.name: _checked(spec, path, manifest, limits) for spec in SPECS}
        for spec in SPECS:
            _check_pointers(spec, tables)
        return Trace(
            manifest.source(), manifest.session(), tables, manifest.measured(), manifest.quality(), manifest.log()
        )


def _wrong(what: str) -> SourceError:
    return SourceError("import-damaged", f"the import directory is damaged: {what}", WRITE_AGAIN)


class _Manifest:
    """The manifest, each part checked where it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            with (folder / MANIFEST).open("rb") as file:
                data = file.read(MOST_MANIFEST_BYTES + 1)
            parsed = json.loads(data) if len(data) <= MOST_MANIFEST_BYTES else None
        except (OSError, ValueError, RecursionError) as error:
            raise _wrong("its manifest cannot be read") from error
        if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
            raise _wrong("its manifest is not one")
        if parsed.get("version") != VERSION:
            raise SourceError("import-version", "the import directory is of another version of its format", WRITE_AGAIN)
        self._parsed: dict[str, Any] = parsed

    def _part(self, name: str, kind: type) -> Any:
        found = self._parsed.get(name)
        if not isinstance(found, kind):
            raise _wrong(f"its manifest has no sound {name!r}")
        return found

    @property
    def storage(self) -> Storage:
        found = self._part("storage", str)
        if found not in {"parquet", "arrow"}:
            raise _wrong("its files are of an unknown kind")
        return "parquet" if found == "parquet" else "arrow"

    def table(self, name: str) -> tuple[str, int, str]:
        """(file, rows, sha256) of a table."""
        entry = self._part("tables", dict).get(name)
        wanted = f"{name}.{self.storage}"
        if not isinstance(entry, dict) or entry.get("file") != wanted:
            raise _wrong(f"its manifest has no table {name}")
        rows, sha256 = entry.get("rows"), entry.get("sha256")
        if not isinstance(rows, int) or not isinstance(sha256, str):
            raise _wrong(f"its manifest says nothing of table {name}")
        return wanted, rows, sha256

    def source(self) -> SourceInfo:
        part = self._part("source", dict)
        return SourceInfo(
            _text(part, "kind") or "",
            _text(part, "version"),
            _text(part, "sha256") or "",
            _text(part, "schema_version"),
        )

    def session(self) -> Session:
        part = self._part("session", dict)
        facts = part.get("facts")
        if not isinstance(facts, dict) or not all(isinstance(v, str) for v in facts.values()):
            raise _wrong("its session facts are not text")
        return Session(_integer(part, "utc_epoch_ns"), _integer(part, "end_ns"), facts)

    def measured(self) -> frozenset[str]:
        names = self._part("measured", list)
        if not all(isinstance(n, str) and n in TABLES for n in names):
            raise _wrong("it says that unknown tables were measured")
        return frozenset(names)

    def quality(self) -> tuple[QualityItem, ...]:
        items = []
        for entry in self._part("quality", list):
            if not isinstance(entry, dict):
                raise _wrong("a quality item is not one")
            try:
                severity = Severity(str(entry.get("severity")))
            except ValueError as error:
                raise _wrong("a quality item is of unknown severity") from error
            words = [_text(entry, name) or "" for name in ("slug", "message", "hint")]
            items.append(QualityItem(words[0], severity, _integer(entry, "count") or 0, words[1], words[2]))
        return tuple(items)

    def log(self) -> str | None:
        part = self._parsed.get("embedded_log")
        if part is None:
            return None
        if not isinstance(part, dict) or part.get("file") != LOG:
            raise _wrong("its log is not where it should be")
        try:
            data = (self.folder / LOG).read_bytes()
            text = data.decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError) as error:
            raise _wrong("its log cannot be read") from error
        if hashlib.sha256(data).hexdigest() != part.get("sha256"):
            raise _wrong("its log is not the one it was written with")
        return text


def _text(part: Mapping[str, object], name: str) -> str | None:
    value = part.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong(f"{name!r} is not text")
    return value


def _integer(part: Mapping[str, object], name: str) -> int | None:
    value = part.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63):
        raise _wrong(f"{name!r} is not a whole number")
    return value


def _checked(spec: TableSpec, folder: Path, manifest: _Manifest, limits: Limits) -> pa.Table:
    """One table: its bytes, its schema, its values."""
    name, rows, sha256 = manifest.table(spec.name)
    path = folder / name
    try:
        if not path.is_file() or digest.of_file(path) != sha256:
            raise _wrong(f"table {spec.name} is not the one it was written with")
        size = path.stat().st_size
    except OSError as error:
        raise _wrong(f"table {spec.name} cannot be read") from error
    budget = Budget(spec.name, size, limits)
    with translated(spec.name):
        table = _load(path, manifest.storage, budget)
        if not table.schema.equals(spec.schema):
            raise _wrong(f"table {spec.name} has other columns")
        table = _settled(table)
    if table.num_rows != rows:
        raise _wrong(f"table {spec.name} has other rows than its manifest says")
    for column in spec.columns:
        if not column.nullable and table[column.name].null_count:
            raise _wrong(f"column {column.name} of table {spec.name} has nulls")
    if {"start_ns", "end_ns"} <= set(table.column_names):
        backwards = pc.any(pc.greater(table["start_ns"], table["end_ns"])).as_py()
        if backwards:
            raise _wrong(f"rows of table {spec.name} end before they start")
    return table


def _load(path: Path, storage: Storage, budget: Budget) -> pa.Table:
    batches = []
    if storage == "parquet":
        from pyarrow import parquet

        file = parquet.ParquetFile(path, thrift_string_size_limit=1 << 26, thrift_container_size_limit=1 << 20)
        schema = file.schema_arrow
        read = file.iter_batches(batch_size=1 << 20)
        for batch in read:
            batches.append(budget.checked(batch))
        return pa.Table.from_batches(batches, schema)
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            batches.append(budget.checked(batch))
        return pa.Table.from_batches(batches, reader.schema)


def _settled(table: pa.Table) -> pa.Table:
    """One chunk a column, and words in the order they have in memory after an import."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        array = flat(column)
        if pa.types.is_dictionary(field.type):
            codes = np.where(validity(array), ints(array.indices), -1).astype(np.int32)
            array = canonical(codes, array.dictionary)
        columns.append(array)
    return pa.Table.from_arrays(columns, schema=table.schema)


def _check_pointers(spec: TableSpec, tables: Mapping[str, pa.Table]) -> None:
    """Row numbers must be rows."""
    for column in spec.columns:
        target = POINTERS.get(column.name)
        if target is None or target == spec.name:
            continue
        values = ints(tables[spec.name][column.name])[validity(tables[spec.name][column.name])]
        if len(values) and (values.min() < 0 or values.max() >= tables[target].num_rows):
            raise _wrong(f"column {column.name} of table {spec.name} points past table {target}")
