"""What a CI reads: a well-formed JUnit file and annotation lines that cannot be broken out of."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from nvprof_tools.errors import CheckFailed
from nvprof_tools.golden.budget import BudgetLine, limit_of
from nvprof_tools.golden.check import Checked
from nvprof_tools.golden.diff import Deviation, Diff
from nvprof_tools.golden.junit import document, workflow_lines

HOSTILE = 'job <&">]]>\x00\x1b[31m\n::error::owned % , :'


def results() -> list[Checked]:
    same = Diff((), None)
    moved = Diff((Deviation(("partitions", HOSTILE, "wall_ns"), 1, 2),), "first differing device segment: x")
    broken = BudgetLine(limit_of("host_register", "< 5 %"), 0.07)
    return [
        Checked(Path("goldens/good"), same, (BudgetLine(limit_of("cpu", "< 50 %"), 0.1),)),
        Checked(Path("goldens/moved"), moved, (broken,)),
        Checked(
            Path("goldens/spoilt"), None, error=CheckFailed("golden-changed", "files are not as recorded", "go back")
        ),
    ]


def test_one_case_a_golden_and_one_a_budget_line() -> None:
    root = ET.fromstring(document(results()))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "2", "1")
    cases = {(c.get("classname"), c.get("name")): c for c in root.iter("testcase")}
    assert len(cases) == 5
    assert list(cases["goldens/good", "attribution"]) == []
    failure = cases["goldens/moved", "attribution"].find("failure")
    assert failure is not None
    assert failure.get("type") == "golden-differs"
    assert "first differing device segment" in (failure.text or "")
    assert cases["goldens/moved", "budget host_register"].find("failure") is not None
    assert cases["goldens/spoilt", "attribution"].find("error") is not None


def test_annotations_are_one_line_each_whatever_a_trace_holds() -> None:
    lines = list(workflow_lines(results()))
    assert len(lines) == 2
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line
        assert line.count("::error file=goldens/") == 1
        assert line.startswith("::error file=goldens/")
        assert "%0A" in line or "spoilt" in line
    assert "::error::owned" not in lines[0].split("::", 3)[2] or lines[0].index("::error") == 0
