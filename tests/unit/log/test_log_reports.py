"""The four forms of `log`: the contract, the width, and text that nobody vouches for."""

from __future__ import annotations

import csv
import io
import json
from importlib import resources

import jsonschema
import pytest
from markdown_it import MarkdownIt

from nvprof_tools.attribution.log_summary import summarise
from nvprof_tools.model.log_summary import LogSummary
from nvprof_tools.report.log_formats import renderer
from nvprof_tools.report.log_json import document
from tests.fixture_files import fixture_log
from tests.log_samples import CUZK, LOGS, Call, log_of, published_run, read

SCHEMA = json.loads(resources.files("nvprof_tools.report").joinpath("log.schema.json").read_text(encoding="utf-8"))
HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1",
    "@SUM(A1)",
    "\x1b[31mred\x1b[0m\x07",
    "\u202eevil\u2066",
    "<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "![x](https://example.org/x.png)",
    "a|b|c`d`*e*",
    "https://example.org",
    "x" * 400,
    "\u0430\u0301\u0301\u0301\u0301",
]


def rendered(s: LogSummary, name: str, colour: bool = False) -> str:
    out = io.BytesIO()
    renderer(name, colour).render(s, out)
    return out.getvalue().decode("utf-8")


def samples() -> dict[str, LogSummary]:
    texts = {name: fixture_log(name).read_text() for name in ("p9_gw2", "sim_w2", "p9_two_procs", "p9_cut")}
    texts["three_jobs"] = (LOGS / "three_jobs.log").read_text()
    texts["published"] = "\n".join(published_run())
    texts["open"] = "TIMELINE,1,GPU_START,a,worker=0\n"
    texts["bare"] = "TIMELINE,1,NEWS,a,nothing known\n"
    texts["gpus"] = "\n".join(log_of([Call("a", p, p, 0, 9, 9, 9, 9, 9 + p) for p in range(6)]))
    texts["hostile"] = hostile_log()
    return {name: summarise(read(text), CUZK) for name, text in texts.items()}


def hostile_log() -> str:
    lines = []
    for place, job in enumerate(HOSTILE):
        lines += log_of([Call(job.replace(",", ";"), 0, 0, place, place, place, place, 10 * place, 10 * place + 9)])
        lines.append(f"TIMELINE,{10 * place},EV_{place},{job.replace(',', ';')},{job}")
    return "\n".join(lines)


SAMPLES = samples()


@pytest.mark.parametrize("name", SAMPLES)
def test_json_keeps_the_contract(name: str) -> None:
    text = rendered(SAMPLES[name], "json")
    jsonschema.validate(json.loads(text), SCHEMA)
    assert json.loads(text) == json.loads(json.dumps(document(SAMPLES[name])))
    assert text.isascii()
    assert text.endswith("}\n")


def test_the_schema_refuses_what_it_should() -> None:
    good = document(SAMPLES["three_jobs"])
    for change in ({"schema": "x"}, {"runs": None}, {"more": 1}, {"jobs": [{}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**good, **change}, SCHEMA)


def test_json_figures() -> None:
    data = json.loads(rendered(SAMPLES["three_jobs"], "json"))
    assert data["summary"]["idle_ms"] == 15_364
    assert data["jobs"][0]["idle_before_ms"] is None
    assert data["jobs"][2]["idle_cause"] == "starved"
    assert data["partitions"][3]["gpu_start_ms"] is None
    assert data["summary"]["seconds_per_proof"] == 50.128
    assert json.loads(rendered(SAMPLES["p9_gw2"], "json"))["timing"]["mutex_held_ms"] == {
        "count": 10,
        "sum": 1135,
        "mean": 113.5,
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_the_table_fits_a_hundred_columns(name: str) -> None:
    from rich.cells import cell_len

    text = rendered(SAMPLES[name], "table")
    assert max(cell_len(line) for line in text.split("\n")) <= 100
    assert "\x1b" not in text
    assert not any(line.endswith(" ") for line in text.split("\n"))


def test_the_table_says_what_matters() -> None:
    text = rendered(SAMPLES["three_jobs"], "table")
    assert "A GPU bracket is open 85.0 % of 102.4 s; 3 proofs, 50.13 s a proof" in text
    assert "15.3 s starved" in text
    p1, p3, p4 = (next(line for line in text.split("\n") if line.startswith(name)) for name in ("P1", "P3", "P4"))
    assert p1.split() == ["P1", "1", "48,006", "-", "26,229", "-", "-", "-", "-", "cold"]
    assert p3.split() == ["P3", "1", "44,126", "-", "27,890", "15,350", "starved", "-", "0"]
    assert p4.split() == ["P4", "1", "-", "-", "-", "-", "-", "-", "-", "open"]


def test_colour_only_where_asked() -> None:
    assert "\x1b[1m" in rendered(SAMPLES["three_jobs"], "table", colour=True)


def test_csv_has_a_row_a_partition_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(rendered(SAMPLES["hostile"], "csv"))))
    assert len(rows) == len(HOSTILE)
    for row in rows:
        assert row["job"].lstrip()[:1] not in set("=+-@\t\r")
        assert row["job"].isprintable()
    three = list(csv.DictReader(io.StringIO(rendered(SAMPLES["three_jobs"], "csv"))))
    assert [row["idle_before_ms"] for row in three] == ["", "14", "15350", ""]
    assert [row["cold"] for row in three] == ["true", "false", "false", "false"]


def test_markdown_holds_no_markup_of_the_log() -> None:
    text = rendered(SAMPLES["hostile"], "markdown")
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for forbidden in ("<script", "<a ", "<img", 'javascript:alert(1)"', "\x1b", "\u202e"):
        assert forbidden not in html
    assert html.count("<table>") == 3
    job_table = html.split("<table>")[2]
    assert job_table.count("<tr>") == len(HOSTILE) + 1
    assert job_table.count("<td") == 10 * len(HOSTILE)


def test_nothing_hostile_reaches_a_terminal() -> None:
    text = rendered(SAMPLES["hostile"], "table")
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_many_jobs_are_cut_short() -> None:
    calls = [Call(f"job-{n}", 0, 0, n, n, n, 10 * n, 10 * n, 10 * n + 5) for n in range(100)]
    s = summarise(read("\n".join(log_of(calls))), CUZK)
    assert "60 jobs more" in rendered(s, "table")
    assert "60 jobs more" in rendered(s, "markdown")
    assert len(json.loads(rendered(s, "json"))["jobs"]) == 100


@pytest.mark.parametrize("name", ["table", "markdown", "csv", "json"])
def test_the_same_bytes_twice(name: str) -> None:
    text = fixture_log("p9_gw2").read_text()
    assert rendered(summarise(read(text), CUZK), name) == rendered(summarise(read(text), CUZK), name)
