"""golden.toml: reads back, seals itself, and refuses what is no such file."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.errors import CheckFailed, SourceError
from nvprof_tools.golden import manifest
from nvprof_tools.golden.manifest import Manifest
from nvprof_tools.golden.tolerance import tolerance_of


@pytest.fixture
def golden(tmp_path: Path) -> tuple[Path, Manifest]:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "x.parquet").write_bytes(b"x")
    (tmp_path / "expected.json").write_bytes(b"{}")
    digests = {name: manifest.digest_of(tmp_path / name) for name in manifest.file_names(tmp_path)}
    known = Manifest(
        {"tool": "0.1.0"}, {"pipeline": "cuzk", "device": 0}, {"gaps.*": tolerance_of("gaps.*", "ignore")}, digests
    )
    (tmp_path / manifest.FILE).write_bytes(known.text())
    return tmp_path, known


def test_it_reads_back_and_verifies(golden: tuple[Path, Manifest]) -> None:
    folder, known = golden
    assert manifest.read(folder) == known
    assert list(known.digests) == ["expected.json", "tables/x.parquet"]
    manifest.verify(folder, known)
    (folder / "budget.toml").write_text("")
    (folder / "README.md").write_text("")
    manifest.verify(folder, known)


def test_tolerances_may_be_edited_and_nothing_else(golden: tuple[Path, Manifest]) -> None:
    folder, _ = golden
    path = folder / manifest.FILE
    text = path.read_text()
    path.write_text(text.replace('"ignore"', "{ ns = 7 }"))
    assert manifest.read(folder).tolerances["gaps.*"].ns == 7
    for old, new in (("cuzk", "generic"), ("device = 0", "device = 1"), ("0.1.0", "0.1.1"), ("x.parquet", "y.parquet")):
        path.write_text(text.replace(old, new))
        with pytest.raises(CheckFailed) as caught:
            manifest.read(folder)
        assert caught.value.slug == "golden-changed"


def test_changed_missing_and_stray_files_are_named(golden: tuple[Path, Manifest]) -> None:
    folder, known = golden
    (folder / "expected.json").write_bytes(b"[]")
    (folder / "tables" / "x.parquet").unlink()
    (folder / "notes.txt").write_text("x")
    with pytest.raises(CheckFailed) as caught:
        manifest.verify(folder, known)
    assert "expected.json, notes.txt, tables/x.parquet" in caught.value.message


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        (b"", "golden-damaged"),
        (b"\xff", "golden-damaged"),
        (b"[[[", "golden-damaged"),
        (b"schema = 3", "golden-damaged"),
        (b'schema = "nvprof-tools/golden/2"', "golden-version"),
        (b'schema = "nvprof-tools/golden/1"\nrecorded = 3', "golden-damaged"),
        (b'schema = "nvprof-tools/golden/1"\n[options]\npipeline = 1.5', "golden-damaged"),
        (b'schema = "nvprof-tools/golden/1"\n[digests]\na = 1', "golden-damaged"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: bytes, slug: str) -> None:
    (tmp_path / manifest.FILE).write_bytes(text)
    with pytest.raises(SourceError) as caught:
        manifest.read(tmp_path)
    assert caught.value.slug == slug
