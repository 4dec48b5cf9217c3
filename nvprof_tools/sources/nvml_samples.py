"""NVML samples that ``nvprof-tools profile`` wrote beside a trace."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.nvml import NVML_SCHEMA
from nvprof_tools.sources.columnar import Budget, unpacked_bytes


def read_nvml(path: Path, limits: Limits) -> pa.Table:
    """The samples, :data:`nvprof_tools.model.nvml.NVML_SCHEMA`, checked.

    :raises SourceError: ``nvml-unreadable``, ``limit-rows``, ``limit-memory``.
    """
    try:
        with pq.ParquetFile(path, thrift_string_size_limit=1 << 20, thrift_container_size_limit=1 << 20) as file:
            names = NVML_SCHEMA.names
            budget, batches = Budget("NVML samples", path.stat().st_size, limits), []
            budget.announce(unpacked_bytes(file))
            for batch in file.iter_batches(columns=names):
                batches.append(budget.checked(batch).select(names))
            schema = pa.schema([file.schema_arrow.field(name) for name in names])
            table = pa.Table.from_batches(batches, schema).cast(NVML_SCHEMA)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise _unreadable(reason) from error
    if any(table.column(f.name).null_count for f in NVML_SCHEMA if not f.nullable):
        raise _unreadable("samples without a time or a device")
    return table


def _unreadable(reason: str) -> SourceError:
    return SourceError("nvml-unreadable", f"the NVML samples cannot be read: {reason}", "profile again")
