"""``--cache``: the same bytes with and without, and the second time nothing is read again."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from nvprof_tools.attribution import from_files
from nvprof_tools.cli.main import run
from nvprof_tools.limits import Limits
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline import normalise
from tests.fixture_files import fixture_log, fixture_trace

FIXTURE = "p9_cut"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.sqlite"
    shutil.copy(fixture_trace(FIXTURE), path)
    os.utime(path, (time.time() - 3600,) * 2)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every trace that was read, not taken from a cache."""
    seen: list[Path] = []
    plain = normalise.load_trace

    def load(path: Path, limits: Limits) -> Trace:
        seen.append(path)
        return plain(path, limits)

    monkeypatch.setattr(normalise, "load_trace", load)
    monkeypatch.setattr(from_files, "load_trace", load)
    return seen


def written(trace: Path, folder: Path, *options: str) -> dict[str, bytes]:
    """Every kind of report that holds figures, as bytes."""
    outputs = [folder / name for name in ("r.json", "r.md", "r.csv", "r.html", "r.pftrace")]
    folder.mkdir()
    wanted = [argument for path in outputs for argument in ("-o", str(path))]
    assert run(["report", str(trace), "--log", str(fixture_log(FIXTURE)), *wanted, *options]) == 0
    return {path.name: path.read_bytes() for path in outputs}


def test_reports_are_the_same(trace: Path, tmp_path: Path, reads: list[Path]) -> None:
    cache = ("--cache", str(tmp_path / "cache"))
    expected = written(trace, tmp_path / "without")
    assert written(trace, tmp_path / "first", *cache) == expected
    assert len(reads) == 2
    assert written(trace, tmp_path / "second", *cache) == expected
    assert len(reads) == 2


def test_named_in_the_environment(
    trace: Path,
    tmp_path: Path,
    reads: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setenv("NVPROF_TOOLS_CACHE", str(tmp_path / "cache"))
    assert run(["attribute", str(trace)]) == run(["attribute", str(trace)]) == 0
    assert len(reads) == 1
    said = capsysbinary.readouterr().out
    assert said[: len(said) // 2] == said[len(said) // 2 :]


def test_an_import_from_the_cache(trace: Path, tmp_path: Path) -> None:
    cache = ("--cache", str(tmp_path / "cache"))
    for name, options in (("a", ()), ("b", cache), ("c", cache)):
        assert run(["import", str(trace), "-o", str(tmp_path / name), *options]) == 0
    files = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}
    assert all({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} == files for name in "bc")


def test_a_folder_that_others_write(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    assert run(["attribute", str(trace), "--cache", str(tmp_path / "cache")]) == 3
    assert "error[cache-unsafe]" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(["attribute", str(trace), "--cache", str(tmp_path / "file" / "below")]) == 3
    assert capsys.readouterr().err.startswith("error[cache-unusable]: ")
