"""Kept answers: the same answer as without them, for the same files and questions only, whatever the folder holds."""

from __future__ import annotations

import io
import lzma
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nvprof_tools.attribution import answers, from_files
from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.errors import AlignmentError, SourceError
from nvprof_tools.limits import parse_limits
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.pipelines.load import builtin_source
from nvprof_tools.report.base import Report
from nvprof_tools.report.registry import by_name, make
from tests.fixture_files import ROOT, fixture_log, fixture_trace

ONE = "p9_cut"
COUNTERS = ROOT / "ncu" / "p9_launches.raw.csv.xz"
KINDS = ("p9_gw2", "p9_nonvtx", "p9_two_procs", "sim_w2", "torch_graph")
"""With GPU metrics and counters, without NVTX, of two processes, simulated, without a log."""


def copied(source: Path, target: Path) -> Path:
    """A copy last changed an hour ago."""
    shutil.copy(source, target)
    os.utime(target, (time.time() - 3600,) * 2)
    return target


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return copied(fixture_trace(ONE), tmp_path / "trace.sqlite")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return copied(fixture_log(ONE), tmp_path / "run.log")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every trace that was attributed, not answered from what is kept."""
    seen: list[Path] = []
    plain = from_files.attributed

    def attributed(trace: Path, **options: Any) -> Any:
        seen.append(trace)
        return plain(trace, **options)

    monkeypatch.setattr(from_files, "attributed", attributed)
    return seen


def alike(a: Attribution, b: Attribution) -> bool:
    """Equal in value and type: what a renderer writes of them is the same byte by byte."""
    for field in fields(Attribution):
        one, other = getattr(a, field.name), getattr(b, field.name)
        same = one.equals(other) if isinstance(one, pa.Table) else repr(one) == repr(other)
        if not same:
            return False
    return True


@pytest.mark.parametrize("name", KINDS)
def test_the_same_answer(name: str, tmp_path: Path, made: list[Path]) -> None:
    trace = fixture_trace(name)
    asked: dict[str, Any] = {} if name == "torch_graph" else {"log": fixture_log(name)}
    if name == "p9_gw2":
        asked["counters"] = [tmp_path / "counters.csv"]
        asked["counters"][0].write_bytes(lzma.decompress(COUNTERS.read_bytes()))
    expected, _ = attribute_files(trace, **asked)
    first, _ = attribute_files(trace, **asked, cache=tmp_path / "cache")
    second, read = attribute_files(trace, **asked, cache=tmp_path / "cache")
    assert len(made) == 2
    assert alike(first, expected)
    assert alike(second, expected)
    pages = []
    for answer in (expected, second):
        out = io.BytesIO()
        make(by_name("json")).render(Report(answer, read), out)
        pages.append(out.getvalue())
    assert pages[0] == pages[1]


def test_every_question_has_its_own_answer(trace: Path, log: Path, tmp_path: Path, made: list[Path]) -> None:
    cache = tmp_path / "cache"
    questions: list[dict[str, Any]] = [
        {"log": log},
        {},
        {"log": log, "window": "trace"},
        {"log": log, "pipeline": "generic"},
        {"log": log, "device": 0},
        {"log": log, "run": 1},
    ]
    fresh = [attribute_files(trace, cache=cache, **question)[0] for question in questions]
    assert len(made) == len(questions)
    kept = [attribute_files(trace, cache=cache, **question)[0] for question in questions]
    assert len(made) == len(questions)
    assert all(alike(one, other) for one, other in zip(fresh, kept, strict=True))


def test_other_files(trace: Path, log: Path, tmp_path: Path, made: list[Path]) -> None:
    """Another log, another trace, another pipeline file under the same name is another answer."""
    cache, pipeline = tmp_path / "cache", tmp_path / "mine.toml"
    text = builtin_source("cuzk") or ""
    pipeline.write_text(text.replace('"cuzk"', '"mine"', 1))
    os.utime(pipeline, (time.time() - 3600,) * 2)

    def asked() -> Attribution:
        return attribute_files(trace, log=log, pipeline=str(pipeline), cache=cache)[0]

    assert asked().pipeline == asked().pipeline == "mine"
    assert len(made) == 1
    pipeline.write_text(text.replace('"cuzk"', '"other"', 1))
    assert asked().pipeline == "other"
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    changed = asked()
    assert len(made) == 3
    assert len(changed.partitions) > 0
    log.write_bytes(whole)
    asked()
    assert len(made) == 3
    shutil.copy(fixture_trace("sim_w2"), trace)
    with pytest.raises(AlignmentError):
        asked()
    assert len(made) == 4


def test_a_file_that_changes_meanwhile(
    trace: Path, log: Path, tmp_path: Path, made: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is not known then: nothing is kept."""
    plain, whole = from_files.attributed, log.read_bytes()

    def slow(*given: Any, **options: Any) -> Any:
        answer = plain(*given, **options)
        log.write_bytes(whole + b"one line more\n")
        return answer

    monkeypatch.setattr(from_files, "attributed", slow)
    attribute_files(trace, log=log, cache=tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.endswith("-answer")]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut short": lambda entry: _cut(entry / "answer.msgpack"),
    "empty": lambda entry: (entry / "answer.msgpack").write_bytes(b""),
    "of another shape": lambda entry: (entry / "answer.msgpack").write_bytes(b"\x81\xa1a\x01"),
    "no file": lambda entry: _pipe(entry / "answer.msgpack"),
    "without end": lambda entry: _endless(entry / "answer.msgpack"),
    "a table that is no file": lambda entry: _pipe(entry / "section_segments.arrow"),
    "no directory": lambda entry: (shutil.rmtree(entry), entry.write_text("in the way")),
    "a link to nowhere": lambda entry: (shutil.rmtree(entry), entry.symlink_to("nowhere")),
    "a link to elsewhere": lambda entry: entry.rename(entry.with_name("moved")) and entry.symlink_to("moved"),
    "gone": lambda entry: (entry / "answer.msgpack").unlink(),
    "a table cut short": lambda entry: _cut(entry / "device_segments.arrow"),
    "a table gone": lambda entry: (entry / "activities.arrow").unlink(),
    "another table's rows": lambda entry: shutil.copy(
        entry / "device_segments.arrow", entry / "section_segments.arrow"
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_answer_is_made_again(name: str, trace: Path, log: Path, tmp_path: Path, made: list[Path]) -> None:
    cache = tmp_path / "cache"
    expected, _ = attribute_files(trace, log=log, cache=cache)
    (entry,) = (path for path in cache.iterdir() if path.name.endswith("-answer"))
    DAMAGE[name](entry)
    again, _ = attribute_files(trace, log=log, cache=cache)
    assert alike(again, expected)
    assert len(made) == 2
    attribute_files(trace, log=log, cache=cache)
    assert len(made) == 2


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_the_rest_of_a_write_beside_it(suffix: str, trace: Path, log: Path, tmp_path: Path) -> None:
    attribute_files(trace, log=log, cache=tmp_path / "cache")
    Path(f"{trace}{suffix}").write_bytes(b"x")
    with pytest.raises(SourceError) as caught:
        attribute_files(trace, log=log, cache=tmp_path / "cache")
    assert caught.value.slug == "database-unsafe"


def test_other_code(trace: Path, log: Path, tmp_path: Path, made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_files(trace, log=log, cache=tmp_path / "cache")
    monkeypatch.setattr(answers, "code_digest", lambda packages: "another version")
    attribute_files(trace, log=log, cache=tmp_path / "cache")
    assert len(made) == 2


def test_the_cap_on_memory_holds_for_kept_answers(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_files(trace, cache=tmp_path / "cache")
    with pytest.raises(SourceError) as caught:
        attribute_files(trace, cache=tmp_path / "cache", limits=parse_limits("memory=1MiB"))
    assert caught.value.slug == "limit-memory"


def test_a_change_that_no_time_shows(trace: Path, log: Path, tmp_path: Path, made: list[Path]) -> None:
    """As through a mapping: size and times stay."""
    before = log.stat()
    attribute_files(trace, log=log, cache=tmp_path / "cache")
    log.write_bytes(log.read_bytes().replace(b"GPU_END", b"GPU_eND", 1))
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    attribute_files(trace, log=log, cache=tmp_path / "cache")
    assert len(made) == 2
