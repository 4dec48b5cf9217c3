"""``log -f csv``: one row a partition, for spreadsheets and scripts. An empty cell means not known, never zero."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO

from nvprof_tools.files.safe_text import csv_cell
from nvprof_tools.model.log_summary import SUMMARY_PARTITION_SCHEMA, LogSummary

HEADER = (*SUMMARY_PARTITION_SCHEMA.names, "cold")


class LogCsv:
    """The CSV document."""

    def render(self, summary: LogSummary, out: BinaryIO) -> None:
        """Write the rows, UTF-8, one newline each."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(HEADER)
        cold = {job.job: job.cold for job in summary.jobs}
        for row in summary.partitions.to_pylist():
            cells = [row[name] for name in SUMMARY_PARTITION_SCHEMA.names]
            cells.append("true" if cold[row["job"]] else "false")
            writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in cells])
        out.write(buffer.getvalue().encode("utf-8", "replace"))
