"""nsys reports (``.nsys-rep``, ``.qdrep``): exported by nsys itself, once for each content."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import Limits
from nvprof_tools.sources import digest
from nvprof_tools.sources.base import RawTables
from nvprof_tools.sources.nsys_sqlite import NsysSqlite

SUFFIXES = (".nsys-rep", ".qdrep")
CACHE = "nvprof-tools-exports"


class NsysRep:
    """One report. Its format is nsys' own and undocumented, so its name is all there is to know it by."""

    kind = "nsys-rep"

    def sniff(self, path: Path) -> bool:
        """See :class:`nvprof_tools.sources.base.Source`."""
        return path.suffix in SUFFIXES and path.is_file()

    def read(self, path: Path, limits: Limits) -> RawTables:
        """See :class:`nvprof_tools.sources.base.Source`."""
        nsys = shutil.which("nsys")
        if nsys is None:
            raise SourceError(
                "nsys-missing",
                "the input is an nsys report and nsys is not on the PATH to export it",
                f"install nsys, or export where it is: nsys export --type sqlite {path.name}",
            )
        raw = NsysSqlite().read(exported(path, nsys, limits), limits)
        raw.stands_for(self.kind, lambda: digest.of_file(path))
        return raw


def exported(report: Path, nsys: str, limits: Limits) -> Path:
    """The report's SQLite export, made now or earlier from the same content by the same nsys."""
    version = _run([nsys, "--version"], limits).stdout
    key = f"{digest.of_file(report)}-{hashlib.sha256(version).hexdigest()[:12]}"
    target = _cache() / f"{key}.sqlite"
    if target.is_file():
        return target
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "export.sqlite"
        command = [nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(made), str(report)]
        result = _run(command, limits)
        if result.returncode != 0 or not made.is_file():
            raise SourceError(
                "nsys-export-failed",
                f"nsys could not export the report (exit code {result.returncode})",
                "run nsys export on it by hand; an older nsys cannot read a newer report",
            )
        made.replace(target)
    return target


def _run(command: list[str], limits: Limits) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command, capture_output=True, check=False, timeout=limits.read_seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        message = f"nsys did not finish within {limits.read_seconds:.0f} s"
        raise SourceError("nsys-export-failed", message, "export the report by hand") from error
    except OSError as error:
        raise SourceError("nsys-export-failed", "nsys could not be started", "export the report by hand") from error


def _cache() -> Path:
    """A folder of the user's own among the temporary files; one that is someone else's is not used."""
    folder = Path(tempfile.gettempdir()) / f"{CACHE}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise SourceError("cache-unsafe", "the folder for exported reports belongs to someone else", "remove it")
    return folder
