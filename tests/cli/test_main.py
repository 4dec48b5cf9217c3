"""The command line: its commands, exit codes, and what goes to which stream."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click
import pytest
from fixture_files import fixture_log, fixture_trace

from nvprof_tools.cli import main as main_module
from nvprof_tools.cli.main import COMMANDS, EXIT_INTERRUPTED, LazyGroup, cli, run
from nvprof_tools.errors import CheckFailed, InvariantError, ToolError

ROOT = Path(__file__).resolve().parents[2]
TRACE, LOG = "p9_gw2", "p9_gw2"


@pytest.fixture(scope="module")
def inputs() -> list[str]:
    return [str(fixture_trace(TRACE)), "--log", str(fixture_log(LOG))]


def test_every_command_has_help_and_the_list_says_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    assert isinstance(cli, LazyGroup)
    for name, _, line in COMMANDS:
        assert run([name, "--help"]) == 0
        out, err = capfd.readouterr()
        assert out.startswith(f"Usage: nvprof-tools {name}")
        assert err == ""
        assert line.endswith((".", "…"))


def test_every_command_is_in_the_readers_guide() -> None:
    text = (ROOT / "docs" / "reports.md").read_text("utf-8") + (ROOT / "README.md").read_text("utf-8")
    for name in ("demo", "attribute", "report", "import", "tables"):
        assert f"nvprof-tools {name}" in text


@pytest.mark.parametrize(
    ("args", "code", "slug"),
    [
        (["bogus"], 2, "usage"),
        (["attribute"], 2, "usage"),
        (["attribute", "x", "--nonsense"], 2, "usage"),
        (["attribute", "x", "-f", "docx"], 2, "usage"),
        (["report", "x", "-o", "x.docx"], 2, "unknown-report-suffix"),
        (["report", "x", "-o", "nosuffix"], 2, "unknown-report-suffix"),
        (["attribute", "/nonexistent/trace.sqlite"], 3, "file-missing"),
        (["attribute", str(ROOT / "README.md")], 3, "not-a-trace"),
        (["tables", "nope"], 2, "unknown-table"),
    ],
)
def test_wrong_usage_and_bad_input_give_two_lines(
    args: list[str], code: int, slug: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == code
    out, err = capfd.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith(f"error[{slug}]: ")
    assert second.startswith("hint: ")


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command("fail")
    def fail() -> NoReturn:
        raise error

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: fail)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ToolError("some-slug", "what", "do"), 3, "error[some-slug]: what\nhint: do\n"),
        (CheckFailed("some-slug", "what", "do"), 1, "error[some-slug]: what\nhint: do\n"),
        (InvariantError("some-slug", "what", "do"), 4, "error[some-slug]: what\nhint: do\n"),
        (
            ValueError("a\x1b[31m\nb"),
            4,
            "error[internal]: ValueError: a\\x1b[31m\\nb\nhint: report this as a bug, with the",
        ),
        (MemoryError(), 3, "error[out-of-memory]: "),
        (click.FileError("x", "gone"), 3, "error[unreadable-file]: "),
        (KeyboardInterrupt(), EXIT_INTERRUPTED, ""),
    ],
)
def test_errors_become_exit_codes_here_only(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, error)
    assert run(["fail"]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(said)
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    failing(monkeypatch, ValueError("x"))
    assert run(["--debug", "fail"]) == 4
    assert "Traceback" in capfd.readouterr().err
    monkeypatch.undo()
    assert run(["attribute", "/nonexistent", "--debug"]) == 3
    assert "Traceback" in capfd.readouterr().err


def test_a_command_may_give_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: click.Command("five", callback=lambda: 5))
    assert run(["five"]) == 5


def test_a_reader_that_goes_away_is_no_error(inputs: list[str]) -> None:
    program = [
        sys.executable,
        "-c",
        "from nvprof_tools.cli.main import main; main()",
        "attribute",
        *inputs,
        "-f",
        "json",
    ]
    writer = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    said = writer.stderr.read()
    writer.stderr.close()
    assert (writer.wait(), said) == (0, b"")


def test_results_go_to_stdout_and_all_else_to_stderr(
    inputs: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["attribute", *inputs, "-f", "json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["schema"] == "nvprof-tools/attribution/1"
    assert err == ""
    target = tmp_path / "answer.json"
    assert run(["attribute", *inputs, "-o", str(target)]) == 0
    written, err = capfd.readouterr()
    assert written == ""
    assert err == f"wrote {target}\n"
    assert target.read_text("utf-8") == out


def test_one_reading_gives_several_reports(
    inputs: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ["a.html", "a.md", "a.pftrace", "a.json", "a.csv", "a.txt", "a.svg", "a.png"]
    assert run(["report", *inputs, *(part for n in names for part in ("-o", str(tmp_path / n)))]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    assert all((tmp_path / n).stat().st_size > 1000 for n in names)
    assert (tmp_path / "a.txt").read_text().startswith("The log says 100 %, SMs were active 56 %")
    assert capfd.readouterr().out == ""


def test_strict_fails_after_the_report_was_given(capfd: pytest.CaptureFixture[str]) -> None:
    args = ["attribute", str(fixture_trace("p9_cut")), "--log", str(fixture_log("p9_cut"))]
    assert run(args) == 0
    plain = capfd.readouterr().out
    assert run([*args, "--strict"]) == 1
    out, err = capfd.readouterr()
    assert out == plain
    assert err.startswith("error[data-loss]: ")


def test_import_writes_tables_that_stand_for_the_trace(
    inputs: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tables"
    assert run(["import", inputs[0], "-o", str(folder)]) == 0
    assert run(["import", inputs[0], "-o", str(folder)]) == 3
    assert run(["import", inputs[0], "-o", str(folder), "--replace", "--format", "arrow"]) == 0
    capfd.readouterr()
    assert run(["attribute", str(folder), *inputs[1:], "-f", "csv"]) == 0
    from_tables = capfd.readouterr().out
    assert run(["attribute", *inputs, "-f", "csv"]) == 0
    assert from_tables == capfd.readouterr().out


def test_the_demo_prints_its_finding_and_writes_a_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "-o", str(tmp_path / "made")]) == 0
    out, _ = capfd.readouterr()
    first = " ".join(out.splitlines()[:2])
    cost = "pinning costs 150 ms itself and 110 ms more through the driver's lock."
    assert first == f"The log says 100 %, SMs were active 56 %; {cost}"
    assert re.search(r"^launch +1,798 +81\.1 .* 71\.7 \(pinning 71\.\d\)$", out, re.MULTILINE)
    assert "<h1>The log says 100 %" in (tmp_path / "made" / "report.html").read_text("utf-8")


def test_the_demo_is_the_golden_trace() -> None:
    for name in ("trace.sqlite.xz", "app.log"):
        bundled = ROOT / "nvprof_tools" / "data" / "demo" / name
        assert bundled.read_bytes() == (ROOT / "fixtures" / "traces" / "p9_gw2" / name).read_bytes()


def test_a_terminal_sees_progress_and_colour_a_pipe_neither(inputs: list[str]) -> None:
    program = [sys.executable, "-c", "from nvprof_tools.cli.main import main; main()", "attribute", *inputs]
    plain = subprocess.run(program, capture_output=True, check=True, cwd=ROOT, env={**os.environ, "PYTHONUTF8": "1"})
    assert plain.stderr == b""
    assert b"\x1b" not in plain.stdout
    assert plain.stdout.isascii()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(program, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0
    assert b"reading p9_gw2.sqlite" in seen
    assert b"\x1b[" in seen
    assert "█".encode() in seen


def test_tables_page_is_in_step(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["tables"]) == 0
    assert capfd.readouterr().out == (ROOT / "docs" / "tables.md").read_text("utf-8")
    assert run(["tables", "kernels"]) == 0
    assert capfd.readouterr().out.startswith("## `kernels`")


def test_the_program_is_the_same_as_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module, "run", lambda: 7)
    with pytest.raises(SystemExit) as stopped:
        main_module.main()
    assert stopped.value.code == 7


@pytest.mark.parametrize("command", [["attribute", "TRACE"], ["--help"]])
def test_standard_output_without_room(command: list[str]) -> None:
    """Is no bug of ours."""
    program = "import sys; from nvprof_tools.cli.main import main; main()"
    words = [str(fixture_trace("p9_cut")) if word == "TRACE" else word for word in command]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert done.stderr.startswith("error[output-disk-full]: ")
    assert len(done.stderr.splitlines()) == 2


def test_standard_output_closed() -> None:
    program = "import sys; from nvprof_tools.cli.main import main; main()"
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", program, "attribute", str(fixture_trace("p9_cut"))],
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("error[output-unwritable]: ")
