"""Fixtures are read, never written: their digests are the manifest's before the session and after it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def changed_fixtures() -> list[str]:
    """Files whose bytes are not those the manifest states."""
    listed = [
        entry
        for manifest in sorted(FIXTURES.rglob("MANIFEST.toml"))
        for entry in tomllib.loads(manifest.read_text("utf-8"))["file"]
    ]
    return [
        entry["path"]
        for entry in listed
        if hashlib.sha256((FIXTURES / entry["path"]).read_bytes()).hexdigest() != entry["sha256"]
    ]


@pytest.fixture(scope="session", autouse=True)
def fixtures_stay_as_they_are() -> Iterator[None]:
    """Fails the session that finds or leaves a fixture changed."""
    assert changed_fixtures() == []
    yield
    assert changed_fixtures() == []
