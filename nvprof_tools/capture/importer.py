"""The program beside nsys that makes a report of what was captured: nsys hides why it fails, so it is asked here."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nvprof_tools.capture.tools import Tool

FOLDERS = ("host-linux-x64", "host-linux-armv8", "host-linux-sbsa-armv8")
_LIBRARIES = "install libdw1 libelf1 libbz2-1.0 liblzma5 (or elfutils-libs, bzip2-libs, xz-libs)"


@dataclass(frozen=True)
class Importer:
    """Whether it works; null: not known. ``found`` and ``advice``: one line each."""

    works: bool | None
    found: str
    advice: str = ""


def examine(nsys: Tool) -> Importer:
    """Look where nsys looks for it, and start it."""
    importer = _place(nsys)
    if importer is None:
        beside = sorted(Path(os.path.realpath(nsys.path)).parent.parent.glob("*linux*glibc*"))
        if beside:
            link = f"ln -s {beside[0].name} {beside[0].parent / FOLDERS[0]}"
            return Importer(False, "its folder has another name than nsys looks for", link)
        return Importer(None, "not found beside nsys", "if no report appears, import the .qdstrm elsewhere")
    try:
        done = subprocess.run([importer, "--help"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Importer(None, f"does not start: {error}", "reinstall Nsight Systems")
    missing = re.findall(r"error while loading shared libraries: (\S+?):", done.stdout + done.stderr)
    if missing:
        return Importer(False, f"lacks {missing[0]}: nsys leaves a .qdstrm and no report", _LIBRARIES)
    return Importer(True, "starts")


def _place(nsys: Tool) -> Path | None:
    target = Path(os.path.realpath(nsys.path)).parent
    for folder in (target, target.parent, target.parent.parent):
        for name in FOLDERS:
            found = folder / name / "QdstrmImporter"
            if found.is_file():
                return found
    return None
