"""The ``compare`` command: what it prints, what it exits with, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest

from nvprof_tools.cli.main import run
from tests.fixture_files import fixture_log, fixture_trace

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "fixtures" / "runs"
SCHEMA = json.loads((ROOT / "nvprof_tools" / "report" / "comparison.schema.json").read_text())


def paths(*names: str) -> list[str]:
    return [str(RUNS / f"{name}.log") for name in names]


def document(capsys: pytest.CaptureFixture[str], *args: str) -> dict:
    run(["compare", *args, "-f", "json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    return found


def test_the_verdict_stands_in_the_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *paths("pinned_1", "pageable_2")]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "B is slower by 17.3 %: 1,188.0 -> 1,393.5 ms a proof (+17.3 %)"
    text = "\n".join(rest)
    assert "Smallest change of the whole that these data would have shown" in text
    assert "A pinned_1.log: log, 2 proofs of 10 partitions, 18 steady, 2 cold, 2 workers" in text


def test_several_runs_a_side_by_list_and_by_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    listed = document(capsys, *paths("pinned_1", "pinned_2"), "--against", *paths("pageable_1", "pageable_2"))
    assert [len(listed["sides"][s]) for s in "ab"] == [2, 2]
    assert listed["statistics"]["runs_as_units"]
    every = document(capsys, str(RUNS / "pinned_*.log"), str(RUNS / "pageable_*.log"))
    assert [len(every["sides"][s]) for s in "ab"] == [4, 4]
    assert every["verdict"] == "slower"
    assert every["statistics"]["detectable"] < 0.1


@pytest.mark.parametrize(
    ("a", "b", "limit", "code"),
    [
        ("pinned_1", "pageable_1", "3%", 1),
        ("pinned_1", "pageable_1", "30%", 0),
        ("pageable_1", "pinned_1", "3%", 0),
        ("pinned_1", "pinned_3", "3%", 5),
        ("pinned_1", "pinned_3", "20%", 0),
    ],
)
def test_exit_codes_with_a_limit(capsys: pytest.CaptureFixture[str], a: str, b: str, limit: str, code: int) -> None:
    assert run(["compare", *paths(a, b), "--fail-over", limit]) == code
    err = capsys.readouterr().err
    assert ("failed: slower by" in err) == (code == 1)


def test_the_json_document_keeps_its_contract_and_repeats_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", *paths("pinned_1", "pageable_1"), "-f", "json"]
    run(args)
    first = capsys.readouterr().out
    run(args)
    assert capsys.readouterr().out == first
    found = json.loads(first)
    jsonschema.validate(found, SCHEMA)
    assert found["headline"]["a_ns"] == 1_188_000_000
    assert found["headline"]["change_ns"] == found["headline"]["b_ns"] - found["headline"]["a_ns"]


def test_traces_with_their_logs(capsys: pytest.CaptureFixture[str]) -> None:
    logs = ["--log-a", str(fixture_log("p9_gw2")), "--log-b", str(fixture_log("p9_barrier"))]
    found = document(capsys, str(fixture_trace("p9_gw2")), str(fixture_trace("p9_barrier")), *logs)
    assert found["verdict"] == "slower"
    assert "barrier_wait" in found["moved"]
    ladder = {p["rung"]: (p["a"], p["b"]) for p in found["ladder"]}
    assert ladder["kernel_busy"][0] == pytest.approx(0.636, abs=0.002)
    shares = [c["share_a"] for c in found["changes"] if c["level"] == "categories"]
    assert sum(shares) == pytest.approx(1)


def test_a_trace_against_a_log_alone_compares_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    log = str(fixture_log("p9_gw2"))
    found = document(capsys, str(fixture_trace("p9_gw2")), log, "--log-a", log)
    assert {c["measure"] for c in found["changes"]} == {"gpu_bracket"}
    assert found["verdict"] == "no-evidence"
    assert any(d["aspect"] == "kind" for d in found["differences"])


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_every_format_goes_to_a_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    args = ["compare", *paths("pinned_1", "pinned_2"), "-f", form]
    assert run(args) == 0
    shown = capsys.readouterr().out
    assert run([*args, "-o", str(tmp_path / "x.txt")]) == 0
    assert (tmp_path / "x.txt").read_text() == shown


def test_csv_has_one_width_and_the_verdict_first(capsys: pytest.CaptureFixture[str]) -> None:
    run(["compare", *paths("pinned_1", "pageable_1"), "-f", "csv"])
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[1][:2] == ["verdict", "slower"]
    assert rows[2][:2] == ["walls", "wall"]


def test_markdown_tables_have_one_width(capsys: pytest.CaptureFixture[str]) -> None:
    run(["compare", *paths("pinned_1", "pageable_1"), "-f", "markdown"])
    text = capsys.readouterr().out
    assert text.startswith("**B is slower by 16.4 %")
    blocks = [[line for line in block.splitlines() if line.startswith("|")] for block in text.split("\n\n")]
    for block in blocks:
        assert len({line.count("|") for line in block}) <= 1


@pytest.mark.parametrize(
    ("args", "code", "slug"),
    [
        (paths("pinned_1"), 2, "compare-sides"),
        (paths("pinned_1", "pinned_2", "pinned_3"), 2, "compare-sides"),
        ([*paths("pinned_1", "pinned_2"), "--fail-over", "much"], 2, "usage"),
        ([*paths("pinned_1", "pinned_2"), "--log-a", "x", "--log-a", "y"], 2, "logs-do-not-match"),
        ([*paths("pinned_1"), "nowhere/*.log"], 2, "no-match"),
        ([*paths("pinned_1"), "nowhere.log"], 3, "file-missing"),
        ([*paths("pinned_1", "pinned_2"), "--run-b", "7"], 2, "unknown-run"),
        ([*paths("pinned_1"), str(ROOT / "README.md")], 3, "not-a-trace"),
        ([*paths("pinned_1", "pinned_2"), "--window-a", "0:5"], 2, "window-without-trace"),
    ],
)
def test_wrong_requests_are_two_lines(
    capsys: pytest.CaptureFixture[str], args: list[str], code: int, slug: str
) -> None:
    assert run(["compare", *args]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error[{slug}]: ")
    assert len(err.splitlines()) == 2


def test_other_set_ups_are_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    pair = [str(fixture_log("p9_gw2")), *paths("pinned_1")]  # 5 partitions a proof against 10
    assert run(["compare", *pair]) == 2
    assert (
        "error[not-comparable]: the proofs are cut into a different number of partitions (5 against 10)"
        in capsys.readouterr().err
    )
    assert run(["compare", *pair, "--force"]) in {0, 5}
    assert "NOT COMPARABLE" in capsys.readouterr().out


def test_a_log_whose_stamps_are_all_the_same_is_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"TIMELINE,5,{event},j,worker=0,partition={p}" for p in range(4) for event in ("GPU_START", "GPU_END")]
    (tmp_path / "x.log").write_text("\n".join(lines) + "\n")
    for form in ("table", "markdown", "csv", "json"):
        assert run(["compare", str(tmp_path / "x.log"), str(tmp_path / "x.log"), "-f", form]) == 5
    assert "inconclusive" in capsys.readouterr().out
