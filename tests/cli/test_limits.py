"""``--limits``: what it takes, and that the error names the limit that was hit, on every command that reads."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixture_files import fixture_log, fixture_trace

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.cli.main import run
from nvprof_tools.errors import SourceError, UsageError
from nvprof_tools.limits import DEFAULT_LIMITS, KEYS, Limits, parse_limits
from nvprof_tools.timeline import memory
from nvprof_tools.timeline.memory import capped
from nvprof_tools.timeline.normalise import load_trace

ROOT = Path(__file__).resolve().parents[2]


def test_keys_are_fields_and_the_manual_lists_them() -> None:
    names = {field.name for field in fields(Limits)}
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    for key, name in KEYS.items():
        assert name in names
        assert f"`{key}`" in page
        assert getattr(parse_limits(f"{key}=7"), name) == 7
    assert parse_limits("") == DEFAULT_LIMITS
    assert parse_limits("file=2GiB, log=3KiB,rows=5") == Limits(file_bytes=2 << 30, log_bytes=3072, table_rows=5)


@pytest.mark.parametrize(
    "text",
    [
        "bogus=1",
        "rows",
        "rows=",
        "rows=-1",
        "rows=0",
        "rows=1.5",
        "rows=1GiB",
        "file=1TB",
        "rows=٣",
        "=",
        "file=" + "9" * 40,
    ],
)
def test_nonsense_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limits(text)
    assert caught.value.slug == "limits-malformed"
    assert "check-seconds" in caught.value.hint


@pytest.mark.parametrize(
    ("command", "limits", "slug"),
    [
        ("attribute", "file=1KiB", "limit-file"),
        ("attribute", "rows=3", "limit-rows"),
        ("attribute", "tables=2", "limit-tables"),
        ("attribute", "strings=2", "limit-strings"),
        ("attribute", "memory=1MiB", "limit-memory"),
        ("import", "memory=1MiB", "limit-memory"),
        ("report", "file=1KiB", "limit-file"),
        ("import", "rows=3", "limit-rows"),
        ("record", "rows=3", "limit-rows"),
        ("compare", "rows=3", "limit-rows"),
        ("diff", "rows=3", "limit-rows"),
        ("log", "log=1KiB", "limit-log-bytes"),
        ("log", "bytes=1", "limits-malformed"),
    ],
)
def test_the_error_names_the_limit(
    command: str, limits: str, slug: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = str(fixture_trace("public/pipit_saxpy_mpi_cuda"))
    out = str(tmp_path / "out")
    arguments = {
        "attribute": ["attribute", trace],
        "report": ["report", trace, "-o", f"{out}.html"],
        "import": ["import", trace, "-o", out],
        "record": ["golden", "record", trace, "-o", out],
        "compare": ["compare", trace, trace],
        "diff": ["golden", "diff", str(ROOT / "fixtures" / "golden" / "torch_graph"), trace],
        "log": ["log", str(fixture_log("p9_gw2"))],
    }[command]
    assert run([*arguments, "--limits", limits]) == (2 if slug == "limits-malformed" else 3)
    out_text, err = capfd.readouterr()
    assert out_text == ""
    assert err.startswith(f"error[{slug}]: ")
    assert list(tmp_path.iterdir()) == []


def test_goldens_are_checked_within_limits_too(capfd: pytest.CaptureFixture[str]) -> None:
    """Each golden fails by itself: the limit is named beside the one it was hit by, and the exit code says so."""
    assert run(["golden", "check", str(ROOT / "fixtures" / "golden" / "p9_gw2"), "--limits", "log=10"]) == 1
    assert "limit-log-bytes: " in capfd.readouterr().out


ATTRIBUTE = "import sys; from nvprof_tools.cli.main import run; sys.exit(run(['attribute', *sys.argv[1:]]))"


@pytest.mark.parametrize(
    "name", ["p9_gw2", "p9_nonvtx", "torch_graph", "prover_two_workers", "public/pipit_saxpy_mpi_cuda"]
)
def test_little_memory_changes_no_byte(name: str) -> None:
    """In a process of its own: the limit counts all of it."""
    trace, log = fixture_trace(name), fixture_log(name)
    command = [
        sys.executable,
        "-c",
        ATTRIBUTE,
        str(trace),
        "-f",
        "json",
        *(["--log", str(log)] if log.exists() else []),
    ]
    free = subprocess.run(command, capture_output=True, check=True)
    tight = subprocess.run([*command, "--limits", "memory=512MiB"], capture_output=True, check=True)
    assert tight.stdout == free.stdout


@pytest.mark.parametrize("name", ["p9_gw2", "p9_nonvtx", "torch_graph"])
def test_what_lies_in_files_is_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every table and view in a file, however small; and none of those files has a name afterwards."""
    trace, log = fixture_trace(name), fixture_log(name)
    log_file = log if log.exists() else None
    free, _ = attribute_files(trace, log=log_file)
    monkeypatch.setattr(memory, "WORTH_A_FILE", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = []
    plain = tempfile.NamedTemporaryFile

    def counted(**how: Any) -> Any:
        made.append(how)
        return plain(**how)

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", counted)
    tight, read = attribute_files(trace, log=log_file, limits=parse_limits("memory=64GiB"))
    assert len(made) > 10
    assert all(getattr(free, f.name) == getattr(tight, f.name) for f in fields(free))
    assert all(table.equals(read[spec]) for spec, table in load_trace(trace).tables.items())
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_those_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "WORTH_A_FILE", 1)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(memory.os, "posix_fallocate", full)
    with pytest.raises(SourceError) as caught, capped(64 << 30):
        memory.room(9, np.int64)
    assert caught.value.slug == "temporary-unwritable"
    monkeypatch.setattr(memory.tempfile, "tempdir", "/dev/null/nowhere")
    with pytest.raises(SourceError) as caught:
        attribute_files(fixture_trace("torch_graph"), limits=parse_limits("memory=64GiB"))
    assert caught.value.slug == "temporary-unwritable"


def test_memory_that_is_not_allowed() -> None:
    """The system refuses it, whoever asks; and afterwards the process is as it was."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(SourceError) as caught, capped(4 << 30):
        np.ones(8 << 30, np.uint8)
    assert caught.value.slug == "limit-memory"
    assert "4,294,967,296" in caught.value.message
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with capped(None):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
