"""The import cache: the same trace as without it, whatever its folder holds, and whenever a process is killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources import cache
from nvprof_tools.sources.cache import ImportCache
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_trace

ONE, OTHER = "p9_nonvtx", "torch_graph"
LOAD = (
    "import sys; from pathlib import Path; from nvprof_tools.limits import DEFAULT_LIMITS; "
    "from nvprof_tools.sources.cache import ImportCache; from nvprof_tools.timeline.normalise import load_trace; "
    "t = ImportCache(Path(sys.argv[1])).load(Path(sys.argv[2]), DEFAULT_LIMITS, load_trace); "
    "print(sum(table.num_rows for table in t.tables.values()))"
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of its own, last changed an hour ago."""
    path = tmp_path / "trace.sqlite"
    shutil.copy(fixture_trace(ONE), path)
    os.utime(path, (time.time() - 3600,) * 2)
    return path


class Counting:
    """``load_trace``, counted."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, path: Path, limits: Limits) -> Trace:
        self.times += 1
        return load_trace(path, limits)


def same(a: Trace, b: Trace) -> bool:
    parts = all(getattr(a, name) == getattr(b, name) for name in ("source", "session", "quality", "measured"))
    logs = a.embedded_log == b.embedded_log
    return parts and logs and all(a.tables[name].equals(b.tables[name]) for name in a.tables | b.tables)


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.count("-") == 1 and path.is_dir()]


def test_the_same_trace_read_once(trace: Path, tmp_path: Path) -> None:
    read = Counting()
    loaded = [ImportCache(tmp_path / "cache").load(trace, DEFAULT_LIMITS, read) for _ in range(3)]
    assert read.times == 1
    expected = load_trace(trace)
    assert all(same(one, expected) for one in loaded)
    copied = tmp_path / "copy.sqlite"
    shutil.copy(trace, copied)
    assert same(ImportCache(tmp_path / "cache").load(copied, DEFAULT_LIMITS, read), expected)
    assert read.times == 1


def test_other_content_under_the_same_name(trace: Path, tmp_path: Path) -> None:
    """Even where size, time and name stay: what was changed just now is hashed again."""
    read, kept = Counting(), ImportCache(tmp_path / "cache")
    kept.load(trace, DEFAULT_LIMITS, read)
    shutil.copy(fixture_trace(OTHER), trace)
    assert same(kept.load(trace, DEFAULT_LIMITS, read), load_trace(trace))
    assert read.times == 2


def test_a_file_changed_just_now_is_not_remembered(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "ALWAYS_HASHED", -1)
    os.utime(trace)
    ImportCache(tmp_path / "cache").load(trace, DEFAULT_LIMITS, load_trace)
    assert not (tmp_path / "cache" / "digests").exists()


def test_other_limits_and_other_code(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, folder = Counting(), tmp_path / "cache"
    ImportCache(folder).load(trace, DEFAULT_LIMITS, read)
    with pytest.raises(SourceError):
        ImportCache(folder).load(trace, replace(DEFAULT_LIMITS, table_rows=3), read)
    monkeypatch.setattr(cache, "code_digest", lambda packages: "another version")
    ImportCache(folder).load(trace, DEFAULT_LIMITS, read)
    assert read.times == 3


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_the_rest_of_a_write_beside_it(suffix: str, trace: Path, tmp_path: Path) -> None:
    """What is refused without a cache is refused with one."""
    kept = ImportCache(tmp_path / "cache")
    kept.load(trace, DEFAULT_LIMITS, load_trace)
    Path(f"{trace}{suffix}").write_bytes(b"x")
    with pytest.raises(SourceError) as caught:
        kept.load(trace, DEFAULT_LIMITS, load_trace)
    assert caught.value.slug == "database-unsafe"


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a table cut short": lambda entry: truncated(entry / "api_calls.arrow"),
    "a table gone": lambda entry: (entry / "kernels.arrow").unlink(),
    "another table's rows": lambda entry: shutil.copy(entry / "copies.arrow", entry / "kernels.arrow"),
    "an empty manifest": lambda entry: (entry / "manifest.json").write_text(""),
    "no manifest": lambda entry: (entry / "manifest.json").unlink(),
    "zeros": lambda entry: (entry / "api_calls.arrow").write_bytes(bytes(5000)),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_entry_is_made_again(name: str, trace: Path, tmp_path: Path) -> None:
    read, folder = Counting(), tmp_path / "cache"
    ImportCache(folder).load(trace, DEFAULT_LIMITS, read)
    DAMAGE[name](entries(folder)[0])
    assert same(ImportCache(folder).load(trace, DEFAULT_LIMITS, read), load_trace(trace))
    assert read.times == 2
    ImportCache(folder).load(trace, DEFAULT_LIMITS, read)
    assert read.times == 2


def test_a_note_that_is_none(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SETTLED_SECONDS", -1e9)
    monkeypatch.setattr(cache, "ALWAYS_HASHED", -1)
    kept = ImportCache(tmp_path / "cache")
    kept.load(trace, DEFAULT_LIMITS, load_trace)
    (note,) = (tmp_path / "cache" / "digests").iterdir()
    for text in ("", "../" * 20, "g" * 64, "é"):
        note.write_text(text)
        assert same(kept.load(trace, DEFAULT_LIMITS, load_trace), load_trace(trace))


def test_a_folder_of_others(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o777)
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(SourceError) as caught:
        ImportCache(tmp_path / "cache")
    assert caught.value.slug == "cache-unsafe"


def test_no_room_is_no_failure(trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    kept = ImportCache(folder)
    folder.chmod(0o500)
    try:
        assert same(kept.load(trace, DEFAULT_LIMITS, load_trace), load_trace(trace))
    finally:
        folder.chmod(0o700)


def test_the_longest_unused_goes(tmp_path: Path) -> None:
    read, kept = Counting(), ImportCache(tmp_path / "cache")
    for i, name in enumerate((ONE, OTHER, ONE)):
        kept.load(fixture_trace(name), DEFAULT_LIMITS, read)
        for entry in entries(kept.folder):
            if time.time() - entry.stat().st_mtime < 100:
                os.utime(entry, (1_000_000 + i,) * 2)
    assert read.times == 2
    kept.most_bytes = sum(f.stat().st_size for entry in entries(kept.folder) for f in entry.iterdir()) - 1
    kept.trim()
    kept.load(fixture_trace(ONE), DEFAULT_LIMITS, read)
    assert read.times == 2
    kept.load(fixture_trace(OTHER), DEFAULT_LIMITS, read)
    assert read.times == 3


def test_many_at_once(trace: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(tmp_path / "cache"), str(trace)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [(one.communicate(), one.returncode) for one in running]
    assert all(code == 0 for _, code in said), said
    assert len({out for (out, _), _ in said}) == 1
    assert len(entries(tmp_path / "cache")) == 1


def test_killed_at_any_time(trace: Path, tmp_path: Path) -> None:
    rng, folder, expected = random.Random(5), tmp_path / "cache", load_trace(trace)
    command = [sys.executable, "-c", LOAD, str(folder), str(trace)]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - began
    for _ in range(3):
        shutil.rmtree(folder)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            time.sleep(whole * rng.uniform(0.4, 1.0))
            started.send_signal(signal.SIGKILL)
        read = Counting()
        assert same(ImportCache(folder).load(trace, DEFAULT_LIMITS, read), expected)
        ImportCache(folder).load(trace, DEFAULT_LIMITS, read)
        assert read.times <= 1
