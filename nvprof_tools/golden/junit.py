"""Checks as a CI reads them: a JUnit file, and the annotation lines of GitHub Actions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from nvprof_tools.golden import manifest
from nvprof_tools.golden.check import Checked

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(results: Sequence[Checked]) -> bytes:
    """JUnit XML with one test case a golden, and one a line of its budget."""
    suite = ET.Element("testsuite", name="nvprof-tools golden check")
    for result in results:
        case = _case(suite, result.folder.as_posix(), "attribution")
        if result.error is not None:
            ET.SubElement(case, "error", type=result.error.slug, message=_xml(result.error.message)).text = _xml(
                result.error.hint
            )
        elif result.diff is not None and not result.diff.same:
            lines = result.diff.lines()
            ET.SubElement(case, "failure", type="golden-differs", message=_xml(lines[0])).text = _xml("\n".join(lines))
        for line in result.budget:
            case = _case(suite, result.folder.as_posix(), f"budget {line.limit.subject}")
            if not line.kept:
                ET.SubElement(case, "failure", type="budget-broken", message=_xml(line.message))
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    ET.indent(suite)
    text: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def workflow_lines(results: Sequence[Checked]) -> Iterator[str]:
    """One ``::error`` line a failure, on the file that a person would look at."""
    for result in results:
        if result.passed:
            continue
        lines = result.lines()
        file = result.folder / manifest.PAGE
        text = "\n".join(lines[:10]) + (f"\n… {len(lines) - 10} more" if len(lines) > 10 else "")
        title = _property(f"golden {result.folder.name}")
        yield f"::error file={_property(file.as_posix())},title={title}::{_data(text)}"


def _case(suite: ET.Element, folder: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_xml(folder), name=_xml(name))


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
