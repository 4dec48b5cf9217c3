"""``golden.toml``: what a golden was made of, how it is read, what may deviate, and the digest of every file.

The tolerances are for people to edit; everything else is covered by a digest of its own, so that a flipped byte
anywhere is seen.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tomli_w

from nvprof_tools.errors import CheckFailed, SourceError
from nvprof_tools.golden.tolerance import Tolerance, tolerance_of

SCHEMA: Final = "nvprof-tools/golden/1"
FILE: Final = "golden.toml"
LOG: Final = "app.log"
TABLES: Final = "tables"
PIPELINE: Final = "pipeline.toml"
EXPECTED: Final = "expected.json"
PAGE: Final = "expected.md"
SEGMENTS: Final = ("device_segments.parquet", "section_segments.parquet")
FREE: Final = frozenset({FILE, "budget.toml", "README.md"})
"""Files of a golden that no digest covers: this one covers itself, the others are for people to edit."""

MOST_BYTES: Final = 4 * 1024 * 1024
AGAIN: Final = "record it again, or take it from the repository's history"


@dataclass(frozen=True)
class Manifest:
    """``recorded``: tool version and what the source was; ``options``: how attribution is run on it (``pipeline``,
    ``window``, ``device``); ``digests``: file → SHA-256."""

    recorded: Mapping[str, str]
    options: Mapping[str, str | int]
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> bytes:
        """The file's bytes."""
        data: dict[str, Any] = {"schema": SCHEMA, "digest": self.digest()}
        data["recorded"] = dict(self.recorded)
        data["options"] = dict(self.options)
        data["tolerances"] = {name: t.written for name, t in self.tolerances.items()}
        data["digests"] = dict(sorted(self.digests.items()))
        return tomli_w.dumps(data).encode()

    def digest(self) -> str:
        """SHA-256 over everything but the tolerances."""
        covered = {"recorded": dict(self.recorded), "options": dict(self.options), "digests": dict(self.digests)}
        return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def read(folder: Path) -> Manifest:
    """A golden's manifest, every part checked.

    :raises SourceError: ``golden-damaged``, ``golden-version``.
    """
    try:
        with (folder / FILE).open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        data = tomllib.loads(raw.decode()) if len(raw) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(f"its {FILE} cannot be read") from error
    if data is None or not isinstance(data.get("schema"), str):
        raise _damaged(f"its {FILE} is not one")
    if data["schema"] != SCHEMA:
        raise SourceError("golden-version", f"the golden is of another version: {data['schema'][:60]!r}", AGAIN)
    options = _table(data, "options")
    if not all(isinstance(v, (str, int)) for v in options.values()):
        raise _damaged("its options are not text or numbers")
    manifest = Manifest(
        _texts(data, "recorded"),
        options,
        {name: tolerance_of(name, value) for name, value in _table(data, "tolerances").items()},
        _texts(data, "digests"),
    )
    if data.get("digest") != manifest.digest():
        raise changed([FILE])
    return manifest


def verify(folder: Path, manifest: Manifest) -> None:
    """Every file is there, unchanged, and no other is.

    :raises CheckFailed: ``golden-changed``.
    """
    found = {name: digest_of(folder / name) for name in file_names(folder)}
    wrong = [name for name, digest in manifest.digests.items() if found.get(name) != digest]
    wrong += [name for name in found if name not in manifest.digests]
    if wrong:
        raise changed(sorted(wrong))


def file_names(folder: Path) -> list[str]:
    """Files below a golden that its digests cover, with ``/`` between folders, sorted."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in names if name not in FREE)


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed(names: list[str]) -> CheckFailed:
    """The error that names the files whose content is not the recorded one."""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return CheckFailed("golden-changed", f"the golden's files are not as recorded: {shown}", AGAIN)


def _damaged(what: str) -> SourceError:
    return SourceError("golden-damaged", f"the golden is damaged: {what}", AGAIN)


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise _damaged(f"its {name!r} is no table")
    return found


def _texts(data: Mapping[str, Any], name: str) -> dict[str, str]:
    found = _table(data, name)
    if not all(isinstance(value, str) for value in found.values()):
        raise _damaged(f"its {name!r} holds what is no text")
    return found
