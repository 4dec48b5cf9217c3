"""Content digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_CHUNK = 4 * 1024 * 1024


def of_descriptor(descriptor: int) -> str:
    """SHA-256 of an open file from its start, hex; the descriptor's position is left alone."""
    digest, at = hashlib.sha256(), 0
    while chunk := os.pread(descriptor, _CHUNK, at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest()


def of_file(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_directory(directory: Path, names: list[str]) -> str:
    """SHA-256 over the names and digests of these files, hex."""
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name}\0{of_file(directory / name)}\n".encode())
    return digest.hexdigest()
