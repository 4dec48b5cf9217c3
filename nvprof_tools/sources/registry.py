"""Every kind of trace input, asked in this order which one a path is."""

from __future__ import annotations

from pathlib import Path

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources.arrow_dir import TablesDirectory
from nvprof_tools.sources.base import RawTables, Source
from nvprof_tools.sources.capture_file import CaptureFile
from nvprof_tools.sources.nsys_arrow import NsysArrow, NsysArrowFile
from nvprof_tools.sources.nsys_parquet import NsysParquet
from nvprof_tools.sources.nsys_rep import NsysRep
from nvprof_tools.sources.nsys_sqlite import NsysSqlite

SOURCES: tuple[Source, ...] = (
    NsysSqlite(),
    TablesDirectory(),
    NsysParquet(),
    NsysArrow(),
    NsysArrowFile(),
    NsysRep(),
    CaptureFile(),
)


def detect(path: Path) -> Source:
    """The source whose content ``path`` has.

    :raises SourceError: there is no such file, or no source knows it.
    """
    if not path.exists():
        raise SourceError("file-missing", "the trace does not exist", "check its name")
    for source in SOURCES:
        if source.sniff(path):
            return source
    raise SourceError(
        "not-a-trace",
        "the input is of no kind that is known",
        "give an nsys export (sqlite, parquet or arrow), a .nsys-rep, a .nvcap, or a directory that `import` wrote",
    )


def read(path: Path, limits: Limits) -> RawTables | Trace:
    """Open ``path`` with the source that knows it."""
    return detect(path).read(path, limits)
