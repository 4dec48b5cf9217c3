"""Traces that nsys 2025.3.2 recorded of `fixtures/markers/eight_steps.cu` on an H200, against the program's own truth.

Read with plain SQL: the importer is not involved. The clock is the marks' own.
"""

from __future__ import annotations

import csv
import lzma
import re
import sqlite3
import statistics
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from nvtx_markers import conventions

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "markers"
CASES = {"preload": 8, "shared": 8, "header": 8, "osrt": 6}
"""Folder → partitions. `preload`: unmodified, all under the lock. `shared`: unmodified, shared runtime, nine writes a
line, pinning outside the lock. `header`: built with the header. `osrt`: unmodified, with nsys' OS tracing on."""

US = 1_000
MARK = re.compile(conventions.TIMELINE_MARK_PATTERN)
SECTION = re.compile(conventions.SECTION_PATTERN)


@dataclass
class Recording:
    """One trace and its truth, both on the trace's clock."""

    ranges: list[tuple[str, int, int, int | None]]
    events: dict[tuple[str, int], int]
    marks: list[tuple[int, re.Match[str]]]
    shim: list[str]
    truth: list[tuple[str, int, int, int]]
    log: list[str]

    def named(self, name: str) -> list[tuple[int, int]]:
        return sorted((start, end) for text, start, end, _ in self.ranges if text == name)

    def measured(self, step: str) -> list[tuple[int, int]]:
        return sorted((start, end) for name, _, start, end in self.truth if name == step)


@pytest.fixture(scope="module", params=list(CASES))
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def recording(case: str, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = RECORDED / case
    path = tmp_path_factory.mktemp("recorded") / "trace.sqlite"
    path.write_bytes(lzma.decompress((folder / "trace.sqlite.xz").read_bytes()))
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT e.start, e.end, e.eventType, COALESCE(s.value, e.text), e.uint64Value, e.domainId FROM NVTX_EVENTS e "
        "LEFT JOIN StringIds s ON s.id = e.textId WHERE e.eventType IN (34, 59, 60, 75)"
    ).fetchall()
    connection.close()
    assert {text for _, _, kind, text, _, _ in rows if kind == 75} == {conventions.DOMAIN}
    texts = [(start, text) for start, _, kind, text, _, _ in rows if kind == 34]
    marks = [(start, match) for start, text in texts if (match := MARK.match(text)) is not None]
    # The clock is read just before the mark is made: the largest difference is the one with the least delay.
    offset = max(int(match["wall_ns"]) - start for start, match in marks)
    truth = []
    for row in csv.DictReader((folder / "truth.csv").read_text(encoding="utf-8").splitlines()):
        partition = int(row["job"].rpartition("/")[2])
        truth.append((row["step"], partition, int(row["start_utc_ns"]) - offset, int(row["end_utc_ns"]) - offset))
    events = {}
    for start, match in marks:
        fields = match["line"].split(",", 4)
        found = re.search(r"partition=(\d+)", fields[4])
        assert found is not None
        events[fields[2], int(found[1])] = start - int(match["late_ns"])
    return Recording(
        [
            (text, start, end, payload)
            for start, end, kind, text, payload, _ in rows
            if kind in {59, 60} and text != "shim"
        ],
        events,
        marks,
        [text for _, text in texts if text.startswith(conventions.SHIM_PREFIX)],
        truth,
        (folder / "app.log").read_text(encoding="utf-8").splitlines(),
    )


def test_every_line_of_the_log_is_a_mark(recording: Recording, case: str) -> None:
    lines = sorted(match["line"] for _, match in recording.marks)
    assert len(lines) == 6 * CASES[case]
    if case == "shared":  # pieces of several threads are mixed in the log; in the marks they are not
        assert sorted("".join(recording.log)) == sorted("".join(lines))
        assert sorted(recording.log) != lines
    else:
        assert lines == sorted(recording.log)


def test_events_lie_where_the_program_says(recording: Recording) -> None:
    truth = {(step[6:], partition): start for step, partition, start, _ in recording.truth if step.startswith("event:")}
    assert recording.events.keys() == truth.keys()
    late = sorted(recording.events[key] - truth[key] for key in truth)
    # The truth is read before the program's own printing begins: an event is never earlier, and rarely much later.
    assert late[0] > -US
    assert statistics.median(late) < 5 * US
    assert late[-1] < 25 * US


def test_the_clocks_agree(recording: Recording) -> None:
    offsets = sorted(int(match["wall_ns"]) - start for start, match in recording.marks)
    assert offsets[-1] - offsets[-4] < 1 * US, "the least delayed marks give one offset"
    walls = [int(match["wall_ns"]) - int(match["mono_ns"]) for _, match in recording.marks]
    assert max(walls) - min(walls) < 20 * US


def closest(spans: list[tuple[int, int]], to: tuple[int, int]) -> int:
    """The worse end of the span that lies closest."""
    return min(max(abs(start - to[0]), abs(end - to[1])) for start, end in spans)


def test_waits_and_holds_are_those_of_the_program(recording: Recording) -> None:
    held = recording.named("mutex_held")
    # One program has one GPU mutex, and a few locks that are not: the address tells.
    locks = {payload for text, _, _, payload in recording.ranges if text == "mutex_held"}
    assert len(locks) == 1
    assert len(held) >= 3
    waited = [(start, end) for text, start, end, lock in recording.ranges if text == "mutex_wait" and lock in locks]
    assert all(closest(recording.measured("gpu_mutex_held"), span) < 10 * US for span in held)
    off = sorted(closest(recording.measured("mutex_acquire"), span) for span in waited)
    assert off[-1] < 25 * US, "the process's first wait may be a few microseconds over 20"
    assert off[-2] < 20 * US
    # No wait of any length is missing: what the program measured and no range covers was no wait.
    for start, end in recording.measured("mutex_acquire"):
        assert end - start < 20 * US or closest(waited, (start, end)) < 25 * US
    assert all(before[1] <= after[0] for before, after in pairwise(held))


def test_the_header_marks_every_step(recording: Recording, case: str) -> None:
    if case != "header":
        assert not any(SECTION.match(text) for text, *_ in recording.ranges), "nobody named the sections"
        return
    sections = {}
    for text, start, end, _ in recording.ranges:
        if (match := SECTION.match(text)) is not None:
            assert match["job"] == "job-1 [7 7]"
            sections[int(match["partition"])] = (start, end)
    measured = {partition: (start, end) for step, partition, start, end in recording.truth if step == "gpu_prove"}
    assert sections.keys() == measured.keys()
    assert all(closest([sections[key]], measured[key]) < 20 * US for key in measured)
    steps = ["synthesis", "device_sync", "pool_trim", "mem_info", "alloc", "host_register", "upload", "kernels", "free"]
    for step in [*steps, "host_unregister"]:
        spans = recording.named(step)
        assert len(spans) == CASES[case], step
        assert all(closest(spans, span) < 20 * US for span in recording.measured(step)), step


def test_the_shared_runtime_is_seen_by_category(recording: Recording, case: str) -> None:
    if case != "shared":
        return
    for step in ("device_sync", "mem_info", "alloc", "host_register", "host_unregister"):
        spans = recording.named(step)
        assert all(closest(spans, span) < 20 * US for span in recording.measured(step)), step
    assert recording.named("driver_lock"), "pinning outside the lock blocks the other workers in the driver"


def test_what_the_shim_says_of_itself(recording: Recording, case: str) -> None:
    assert len(recording.shim) == 1
    match = re.match(conventions.SHIM_PATTERN, recording.shim[0])
    assert match is not None
    assert match["source"] == ("header" if case == "header" else "preload")
