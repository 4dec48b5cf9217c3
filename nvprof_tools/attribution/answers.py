"""Answers kept by all that they were made of, so that a second report on the same files does not attribute again.

They lie in the import cache's folder and live by its rules: an entry appears whole or not at all, the longest unused
ones go, one that cannot be read is removed and made again. The name is a digest of the content of every input file, of
all that was asked, and of the code.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from nvprof_tools.errors import ToolError
from nvprof_tools.files.atomic import atomic_directory
from nvprof_tools.model.attribution import ACTIVITIES, DEVICE_SEGMENTS, SECTION_SEGMENTS, Attribution
from nvprof_tools.sources.cache import ImportCache, code_digest, whole_file

_CODE: Final = ("model", "native", "pipelines", "sources", "timeline", "attribution")
_TABLES: Final = {
    "device_segments": DEVICE_SEGMENTS,
    "section_segments": SECTION_SEGMENTS,
    "activities": ACTIVITIES,
}
_REST: Final = "answer.msgpack"


class AnswerCache:
    """The place of one answer.

    :param files: every file it is made of, with its part: ``("trace", path)``. With one that is no whole file nothing
        is kept.
    :param asked: all else that it depends on.
    """

    def __init__(self, imports: ImportCache, files: Sequence[tuple[str, Path]], asked: tuple[object, ...]) -> None:
        self._imports, self._files, self._asked = imports, files, asked
        self._name = self._digest()

    def _digest(self) -> str | None:
        if not all(whole_file(path) for _, path in self._files):
            return None
        with suppress(OSError):
            parts = [(part, self._imports.content(path)) for part, path in self._files]
            made_of = repr((parts, self._asked, code_digest(_CODE)))
            return hashlib.sha256(made_of.encode("utf-8", "surrogatepass")).hexdigest()
        return None

    @property
    def _entry(self) -> Path:
        return self._imports.folder / f"{self._name}-answer"

    def get(self) -> Attribution | None:
        """The answer, if it is there and sound; its tables are mapped."""
        if self._name is None or not os.path.lexists(self._entry):
            return None
        if self._entry.is_symlink() or not self._entry.is_dir():
            self._remove()
            return None
        try:
            found = msgspec.msgpack.decode(self._part(_REST).read_bytes(), type=Attribution, dec_hook=self._table)
            os.utime(self._entry)
        except (msgspec.MsgspecError, pa.ArrowException, ValueError, OSError):
            # Damaged, or a part is gone; or another process has just removed it.
            self._remove()
            return None
        return found

    def _remove(self) -> None:
        if self._entry.is_dir() and not self._entry.is_symlink():
            shutil.rmtree(self._entry, ignore_errors=True)
        else:
            with suppress(OSError):
                self._entry.unlink()

    def _part(self, name: str) -> Path:
        """A file of the entry, and nothing else: what is no file may never end.

        :raises ValueError: it is none.
        """
        path = self._entry / name
        if not stat.S_ISREG(path.lstat().st_mode):
            raise ValueError("not a file")
        return path

    def _table(self, kind: type, name: object) -> pa.Table:
        if kind is not pa.Table or name not in _TABLES:
            raise ValueError("not a table of an answer")
        table = pa.ipc.open_file(pa.memory_map(str(self._part(f"{name}.arrow")))).read_all()
        table.validate(full=True)
        if not table.schema.equals(_TABLES[str(name)]):
            raise ValueError("another table's rows")
        return table

    def put(self, answer: Attribution) -> None:
        """Keep an answer, if the files still are what they were. A full disk is no reason to fail."""
        if self._name is None or self._digest() != self._name:
            return
        named: dict[str, Any] = {name: name for name in _TABLES}
        with suppress(ToolError, OSError, UnicodeError), atomic_directory(self._entry, replace=True) as folder:
            (folder / _REST).write_bytes(msgspec.msgpack.encode(replace(answer, **named)))
            for name in _TABLES:
                table = getattr(answer, name)
                with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as file:
                    file.write_table(table)
        with suppress(OSError):
            self._imports.trim()
