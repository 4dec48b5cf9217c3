"""The preload library beside programs that know nothing of it: they behave as ever, and what is marked is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from nvtx_markers import conventions
from tests.native.conftest import PROGRAMS, Event, Kit, Run

Compare = Callable[..., Run]
MS = 1_000_000


def spans(events: list[Event], name: str) -> list[tuple[int, int, int, str]]:
    """(thread, start, end, payload) of ranges by that name, both kinds."""
    open_pushes: dict[int, list[Event]] = {}
    open_starts: dict[int, Event] = {}
    found = []
    for event in events:
        if event.kind == "push":
            open_pushes.setdefault(event.tid, []).append(event)
        elif event.kind == "pop":
            begun = open_pushes[event.tid].pop()
            found.append((begun.text, begun.tid, begun.mono_ns, event.mono_ns, begun.payload))
        elif event.kind == "start":
            open_starts[event.range_id] = event
        elif event.kind == "end":
            begun = open_starts.pop(event.range_id)
            found.append((begun.text, begun.tid, begun.mono_ns, event.mono_ns, begun.payload))
    return [row[1:] for row in found if row[0] == name]


def test_a_contended_lock_has_waits_and_holds(compare: Compare) -> None:
    run = compare("contend")
    waits, holds = spans(run.events, conventions.WAIT_RANGE), spans(run.events, conventions.HELD_RANGE)
    # Eight holds of 4 ms on one mutex by two threads: whoever is second waits, nearly all along.
    assert 1 <= len(waits) <= 7
    assert 1 <= len(holds) <= 7, "the holds before the first long wait cannot be known of"
    assert all(end - start >= 3.5 * MS for _, start, end, _ in holds)
    assert len({payload for *_, payload in waits + holds}) == 1, "one address"
    ordered = sorted((start, end) for _, start, end, _ in holds)
    assert all(before[1] <= after[0] for before, after in pairwise(ordered)), "holds of one mutex never overlap"
    assert {event.domain for event in run.events} == {conventions.DOMAIN}


def test_a_mutex_named_by_symbol_is_held_visibly_from_the_first_time(compare: Compare) -> None:
    run = compare("contend", env={"NVTX_MARKERS_HOLD_SYMBOLS": "nothing_of_that_name,gpu_mutex"})
    assert len(spans(run.events, conventions.HELD_RANGE)) == 8


def test_brief_holds_are_given_up(compare: Compare) -> None:
    run = compare("brief", env={"NVTX_MARKERS_HOLD_AFTER_US": "0"})
    assert len(spans(run.events, conventions.HELD_RANGE)) <= 1200, "of 40,000: too brief to be worth a range"


@pytest.mark.parametrize("name", ["kinds", "robust", "errno"])
def test_every_answer_of_the_library_stays_the_same(compare: Compare, name: str) -> None:
    compare(name)


def test_condition_waits_cut_holds(compare: Compare) -> None:
    run = compare("conditions", env={"NVTX_MARKERS_HOLD_SYMBOLS": "gpu_mutex"})
    holds = sorted((start, end) for _, start, end, _ in spans(run.events, conventions.HELD_RANGE))
    assert len(holds) >= 10
    assert all(before[1] <= after[0] for before, after in pairwise(holds)), "a waiting thread holds nothing"


def test_crossing_holds_and_a_mutex_unlocked_by_another_thread(compare: Compare) -> None:
    run = compare("crossing", env={"NVTX_MARKERS_HOLD_SYMBOLS": "gpu_mutex,other_mutex"})
    holds = spans(run.events, conventions.HELD_RANGE)
    assert len({payload for *_, payload in holds}) == 2
    assert sum(payload == holds[0][3] for *_, payload in holds) >= 6


def test_hammer(compare: Compare) -> None:
    run = compare("hammer", ordered=False)
    assert run.out == b"sum 160000\n"
    assert sorted(run.lines()) == sorted(line.decode() for line in run.err.splitlines())


def test_lines_in_any_number_of_pieces_become_one_mark_each(compare: Compare) -> None:
    run = compare("lines")
    assert run.lines() == [
        "TIMELINE,1,WHOLE,job,",
        "TIMELINE,2,NINE,job [1 2],worker=0,partition=3",
        "TIMELINE,3,TORN_PREFIX,job,",
        "TIMELINE,4,TWO_IN_ONE,job,",
        "TIMELINE,6,STDOUT,job,",
        "TIMELINE,9,BYTES,job,",
        "TIMELINE,10,WRITEV,job,",
        "TIMELINE,11,SPLIT,job,",
        "TIMELINE,12,FPRINTF,job,partition=4",
        "TIMELINE,13,FPRINTF_PERCENT,job,",
        "TIMELINE,15,FPUTS,job,",
        "TIMELINE,16,PRINTF,job,",
        "TIMELINE,17,PUTS,job,",
        "TIMELINE,18,FWRITE,job,",
        "TIMELINE,19,PUTCHAR,job,",
        "TIMELINE,20,DPRINTF,job,",
        "TIMELINE,22,CRLF,job,",
        "TIMELINE,23,BAD??é,job,",
    ]


def test_a_mark_carries_the_clocks_of_its_instant(compare: Compare) -> None:
    run = compare("lines")
    pattern = re.compile(conventions.TIMELINE_MARK_PATTERN)
    marks = [event for event in run.events if event.text.startswith(conventions.TIMELINE_PREFIX)]
    walls = []
    for event in marks:
        found = pattern.match(event.text)
        assert found is not None, event.text
        delay = event.mono_ns - int(found["mono_ns"])
        assert 0 <= delay < 50 * MS, "the mark is made right after the clock is read"
        walls.append(int(found["wall_ns"]) - int(found["mono_ns"]))
        assert int(found["late_ns"]) < 100 * MS
    assert max(walls) - min(walls) < 50 * MS, "two clocks read together"


def test_short_writes(compare: Compare) -> None:
    assert compare("short-writes").lines() == ["TIMELINE,1,SHORT,job,partition=12345"]


def test_a_forked_child_says_nothing(compare: Compare) -> None:
    run = compare("forks", ordered=False)
    assert run.lines() == ["TIMELINE,1,PARENT,job,", "TIMELINE,3,PARENT,job,"]
    assert len({event.pid for event in run.events}) == 1
    compare("forks-while-locked")


def test_after_exec_it_starts_anew(compare: Compare) -> None:
    run = compare("execs")
    assert run.lines() == ["TIMELINE,1,AFTER_EXEC,job,"] * 2
    assert len(run.texts("mark", conventions.SHIM_PREFIX)) == 3, "once a program image"


def test_signal_handlers_that_write(kit: Kit, scenario: Path) -> None:
    """How often the handler ran differs from run to run: only what the program itself wrote can be compared."""
    run = kit.run([scenario, "signals"])
    assert run.code == 0, run.err
    assert run.out == b"".join(b"TIMELINE,%d,IN_SIGNALS,job,\n" % i for i in range(300))
    assert [line for line in run.lines() if "IN_SIGNALS" in line] == run.out.decode().splitlines()


def test_locks_contended_in_exit_handlers(compare: Compare) -> None:
    run = compare("exits")
    assert run.code == 9
    assert run.lines() == ["TIMELINE,1,BEFORE_EXIT,job,"]


@pytest.mark.parametrize(("name", "code"), [("_exit", 11), ("exit", 12), ("abort", -6), ("kill", -9), ("return", 13)])
def test_a_program_that_ends_in_the_middle(compare: Compare, name: str, code: int) -> None:
    run = compare(f"dies-{name}")
    assert run.code == code
    assert run.lines() == ["TIMELINE,1,DYING,job,"]
    assert run.texts("push", conventions.WAIT_RANGE)


def test_waits_inside_the_driver_and_only_there(compare: Compare) -> None:
    run = compare("driver")
    waits = spans(run.events, conventions.DRIVER_LOCK_RANGE)
    assert 2 <= len(waits) <= 6, "the program's own reader-writer lock waits are not the driver's"
    assert len({payload for *_, payload in waits}) == 1
    assert max(end - start for _, start, end, _ in waits) > 1 * MS


def test_runtime_calls_by_category(compare: Compare) -> None:
    run = compare("cuda")
    assert run.texts("push") == ["alloc", "device_sync", "upload", "launch", "free"]


def test_parts_can_be_switched_off(compare: Compare) -> None:
    run = compare("contend", env={"NVTX_MARKERS_DISABLE": "mutex,held"})
    assert run.texts("push") + run.texts("start") == []
    assert " mutex=off held=off driver_lock=on cuda=on tap=on osrt=off" in run.texts("mark")[0]
    run = compare("cuda", env={"NVTX_MARKERS_DISABLE": "all"})
    assert run.events == []


def test_what_it_says_of_itself(compare: Compare) -> None:
    run = compare("cuda", env={"QUADD_INJECTION_PROXY": "Mmap,OSRT,NVTX"})
    found = re.match(conventions.SHIM_PATTERN, run.texts("mark", conventions.SHIM_PREFIX)[0])
    assert found is not None
    assert found["conventions"] == str(conventions.CONVENTIONS_VERSION)
    assert found["parts"] == " mutex=on held=on driver_lock=on cuda=on tap=on osrt=on"


def test_opened_at_run_time_and_closed_again(kit: Kit, scenario: Path) -> None:
    run = kit.run([scenario, "opened"], preload=[])
    assert (run.code, run.out, run.err) == (0, b"listening 1\n" * 3, b"")
    assert run.texts("start", "section") == [f"section job=job [7 7] partition={i} worker=-" for i in range(3)]
    assert run.lines() == ["TIMELINE,5,ABI,job,"] * 3
    quiet = kit.run([scenario, "opened"], preload=[], tool=False)
    assert (quiet.code, quiet.out, quiet.events) == (0, b"listening 0\n" * 3, [])


# ---- beside other tools ----


@pytest.mark.parametrize("how", ["lock", "print", "write", "errno"])
@pytest.mark.parametrize("name", ["contend", "lines", "errno"])
def test_a_tool_that_locks_and_prints_in_its_callbacks(kit: Kit, scenario: Path, name: str, how: str) -> None:
    plain = kit.run([scenario, name], preload=[], tool=False)
    run = kit.run([scenario, name], env={"FAKE_NVTX_HOSTILE": how})
    assert (run.code, run.out) == (plain.code, plain.out)
    err = b"".join(line for line in run.err.splitlines(keepends=True) if b"FROM_TOOL" not in line)
    if how in {"lock", "errno"} or name == "contend":
        assert err == plain.err
    assert not any("FROM_TOOL" in line for line in run.lines()), "what a tool does is not the program's"


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("real", ["next", "default"])
def test_beside_a_library_that_wraps_the_same_functions(kit: Kit, scenario: Path, first: str, real: str) -> None:
    other = kit.folder / "libother_wrapper.so"
    if not other.exists():
        kit.compile("gcc", other, [PROGRAMS / "other_wrapper.c"], "-std=gnu11", "-O1", "-fPIC", "-shared")
    order = [kit.library, other] if first == "ours" else [other, kit.library]
    for name in ("contend", "lines", "kinds", "conditions"):
        plain = kit.run([scenario, name], preload=[], tool=False)
        run = kit.run([scenario, name], preload=order, env={"OTHER_WRAPPER_REAL": real})
        assert (run.code, run.out, run.err) == (plain.code, plain.out, plain.err), name
        assert run.texts("mark", "TIMELINE,") or name != "lines"
        assert run.texts("push", conventions.WAIT_RANGE) or name != "contend"


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_beside_a_tracer_that_hands_out_stubs(kit: Kit, scenario: Path, first: str) -> None:
    """As nsys traces the OS runtime: the naive way (forward to what dlsym gives) ends in SIGSEGV here."""
    tracer = kit.folder / "tool" / "libToolsInjectionFake.so"
    if not tracer.exists():
        kit.compile("gcc", tracer, [PROGRAMS / "os_tracer.c"], "-std=gnu11", "-O1", "-fPIC", "-shared")
    order = [kit.library, tracer] if first == "ours" else [tracer, kit.library]
    for name in ("contend", "lines", "conditions", "forks", "dies-_exit"):
        plain = kit.run([scenario, name], preload=[], tool=False)
        run = kit.run([scenario, name], preload=order, env={"QUADD_INJECTION_PROXY": "Mmap,OSRT,NVTX"})
        assert (run.code, run.out, run.err) == (plain.code, plain.out, plain.err), name
        assert run.texts("push", conventions.WAIT_RANGE) or name != "contend"


@pytest.mark.parametrize("first", ["naive", "tracer"])
def test_the_naive_way_does_crash_there(kit: Kit, scenario: Path, first: str) -> None:
    """The stand-ins are hostile enough: without this the two tests above would prove nothing."""
    other = kit.compile(
        "gcc", kit.folder / "libother_again.so", [PROGRAMS / "other_wrapper.c"], "-O1", "-fPIC", "-shared"
    )
    naive = kit.compile("gcc", kit.folder / "libnaive.so", [PROGRAMS / "naive.c"], "-O1", "-fPIC", "-shared")
    order = [naive, other] if first == "naive" else [other, naive]
    assert kit.run([scenario, "contend"], preload=order, tool=False, env={"OTHER_WRAPPER_REAL": "next"}).code == -11


def test_a_tool_that_cannot_be_loaded(kit: Kit, scenario: Path) -> None:
    plain = kit.run([scenario, "lines"], preload=[], tool=False)
    for path in ("/nonexistent/libtool.so", "", "relative"):
        run = kit.run([scenario, "lines"], env={"NVTX_INJECTION64_PATH": path})
        assert (run.code, run.out, run.err, run.events) == (plain.code, plain.out, plain.err, [])


def test_ordinary_programs_are_left_alone(kit: Kit) -> None:
    for command in (["sh", "-c", "echo a; echo b >&2; exit 3"], ["cat", "/dev/null"], ["env", "-i", "true"]):
        plain = kit.run(command, preload=[], tool=False)
        run = kit.run(command)
        assert (run.code, run.out, run.err) == (plain.code, plain.out, plain.err)
