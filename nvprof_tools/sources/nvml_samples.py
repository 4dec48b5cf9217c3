"""NVML samples that ``nvprof-tools profile`` wrote beside a trace."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.nvml import NVML_SCHEMA


def read_nvml(path: Path, limits: Limits) -> pa.Table:
    """The samples, :data:`nvprof_tools.model.nvml.NVML_SCHEMA`, checked.

    :raises SourceError: ``nvml-unreadable``.
    """
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > limits.table_rows:
                raise _unreadable(f"it has {file.metadata.num_rows:,} rows")
            table = file.read(columns=NVML_SCHEMA.names).cast(NVML_SCHEMA)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise _unreadable(reason) from error
    if any(table.column(f.name).null_count for f in NVML_SCHEMA if not f.nullable):
        raise _unreadable("samples without a time or a device")
    return table


def _unreadable(reason: str) -> SourceError:
    return SourceError("nvml-unreadable", f"the NVML samples cannot be read: {reason}", "profile again")
