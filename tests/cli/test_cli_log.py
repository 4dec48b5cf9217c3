"""`nvprof-tools log` and `pipelines` as a user runs them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nvprof_tools.cli.main import run
from nvprof_tools.pipelines.load import builtin_source
from tests.fixture_files import fixture_log
from tests.log_samples import LOGS

THREE = str(LOGS / "three_jobs.log")


def test_table_on_a_pipe() -> None:
    code = "from nvprof_tools.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "log", THREE], capture_output=True, check=True)
    assert done.stdout.startswith(b"A GPU bracket is open 85.0 %")
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_the_input_is_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(Path(THREE).read_bytes())
    before = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
    for name in ("table", "markdown", "csv", "json"):
        assert run(["log", str(path), "-f", name, "-o", str(tmp_path / name)]) == 0
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["csv", "json", "markdown", "table", "x.log"]


@pytest.mark.parametrize(
    ("suffix", "start"), [(".json", "{"), (".csv", "job,"), (".md", "**A GPU"), (".txt", "A GPU"), ("", "A GPU")]
)
def test_the_suffix_chooses_the_form(tmp_path: Path, suffix: str, start: str) -> None:
    out = tmp_path / f"x{suffix}"
    assert run(["log", THREE, "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith(start)


def test_run_and_pipeline(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "x.log"
    path.write_text(Path(THREE).read_text() + fixture_log("p9_gw2").read_text())
    assert run(["log", str(path), "--run", "1", "-f", "json", "--pipeline", "generic"]) == 0
    data = json.loads(capsysbinary.readouterr().out)
    assert (data["run"], data["runs"], data["pipeline"], data["summary"]["wall_ms"]) == (1, 2, "generic", 102_355)


@pytest.mark.parametrize(
    ("arguments", "code", "slug"),
    [
        (["log", "absent.log"], 3, "log-unreadable"),
        (["log", THREE, "--pipeline", "nothing"], 3, "unknown-pipeline"),
        (["log", THREE, "--pipeline", "absent.toml"], 3, "pipeline-file-unreadable"),
        (["log", str(LOGS / "README.md")], 3, "log-without-timeline"),
        (["log", THREE, "--run", "2"], 2, "unknown-run"),
        (["log", THREE, "--run", "0"], 2, "usage"),
        (["log", THREE, "-f", "html"], 2, "usage"),
        (["log", THREE, "-o", "no/such/place.json"], 3, "output-unwritable"),
        (["pipelines", "nothing"], 3, "unknown-pipeline"),
        (["pipelines", "--source"], 2, "usage"),
        (["pipelines", "nothing", "--source"], 2, "usage"),
    ],
)
def test_one_line_and_a_hint(arguments: list[str], code: int, slug: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    error, hint = captured.err.splitlines()
    assert error.startswith(f"error[{slug}]: ")
    assert hint.startswith("hint: ")


def test_pipelines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipelines"]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()[:2]] == ["cuzk", "generic"]
    assert run(["pipelines", "cuzk"]) == 0
    shown = capsys.readouterr().out
    for word in ("CHAN_SEND, GPU_QUEUE", "gpu_mutex_held", "cudaMemPoolTrimTo", "_CT_NTT", "before batch_add"):
        assert word in shown
    assert run(["pipelines", "cuzk", "--source"]) == 0
    assert capsys.readouterr().out == builtin_source("cuzk")


def test_a_file_of_ones_own_is_checked_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mi\\u001b[31mne"\n[events]\ngpu_start = "A"\ngpu_end = "B"\n' + 'bracket = ["A", "B"]\n')
    assert run(["pipelines", str(path)]) == 3
    assert "`events.bracket` is not a key" in capsys.readouterr().err
    path.write_text('name = "mi\\u001b[31mne"\nbracket = ["A", "B"]\n[events]\ngpu_start = "A"\ngpu_end = "B"\n')
    assert run(["pipelines", str(path)]) == 0
    assert capsys.readouterr().out.startswith("mi\\x1b[31mne: ")
