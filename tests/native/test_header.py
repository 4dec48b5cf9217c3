"""The C and C++ header, the C ABI from Rust, and that all of them keep to the conventions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nvtx_markers import conventions
from tests.native.conftest import INCLUDE, PROGRAMS, ROOT, Kit

STRICT = ["-O2", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]


@pytest.fixture(scope="session")
def program(kit: Kit) -> Path:
    """C++ and C together, NVTX's own headers as system headers (they are not ours to keep clean)."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    system = ["-isystem", str(kit.nvtx)]
    half = kit.folder / "header_other.o"
    kit.compile("gcc", half, [PROGRAMS / "header_other.c"], "-std=gnu11", *STRICT, *system, "-c")
    return kit.compile("g++", kit.folder / "header", [PROGRAMS / "header.cpp", half], "-std=c++11", *STRICT, *system)


def test_what_the_header_emits(kit: Kit, program: Path) -> None:
    run = kit.run([program], preload=[])
    assert run.code == 3
    assert run.texts("mark", conventions.SHIM_PREFIX) == ["nvtx_markers conventions=1 source=header"], (
        "one for both files"
    )
    assert run.lines() == ["TIMELINE,0,GPU_START,job-1 [7 7],worker=0,partition=3", run.err.decode().splitlines()[1]]
    assert run.texts("push") == ["upload", "free", "mutex_wait", "barrier_wait"]
    held = [event for event in run.events if event.text == "mutex_held"]
    assert len(held) == 4
    assert len({event.payload for event in held}) == 2, "the lock's address, and the one from C"
    assert run.texts("start", "section") == [
        "section job=job-1 [7 7] partition=3 worker=0",
        "section job=job-2 partition=- worker=-",
        "section job=from c partition=1 worker=-",
    ]
    assert sum(event.kind == "pop" for event in run.events) == sum(event.kind == "push" for event in run.events)
    assert sum(event.kind == "end" for event in run.events) == sum(event.kind == "start" for event in run.events)


def test_with_the_preload_library_no_line_is_marked_twice(kit: Kit, program: Path) -> None:
    run = kit.run([program])
    assert len(run.lines()) == 2


def test_without_a_tool_only_the_log_is_left(kit: Kit, program: Path) -> None:
    run = kit.run([program], preload=[], tool=False)
    lines = [re.sub(r",\d+,", ",0,", line, count=1) for line in run.err.decode().splitlines()]
    assert lines == ["TIMELINE,0,GPU_START,job-1 [7 7],worker=0,partition=3", "TIMELINE,0,GPU_END,from c,"]
    assert (run.code, run.events) == (3, [])


def test_compiled_away(kit: Kit) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    half = kit.folder / "disabled_other.o"
    kit.compile(
        "gcc", half, [PROGRAMS / "header_other.c"], "-std=c11", "-D_GNU_SOURCE", *STRICT, "-DNVTX_MARKERS_DISABLE", "-c"
    )
    sources = [PROGRAMS / "header.cpp", half]
    program = kit.compile("g++", kit.folder / "disabled", sources, "-std=c++20", *STRICT, "-DNVTX_MARKERS_DISABLE")
    run = kit.run([program], preload=[])
    assert (run.code, run.events, len(run.err.splitlines())) == (3, [], 2)


def test_the_header_and_the_library_keep_to_the_conventions() -> None:
    header = (INCLUDE / "nvtx_markers.h").read_text(encoding="utf-8")
    found = {name.lower(): int(number) for name, number in re.findall(r"NVTX_MARKERS_([A-Z_]+) = (\d+)", header)}
    assert found.pop("category_count") == len(conventions.CATEGORY_IDS) + 1
    assert found == conventions.CATEGORY_IDS
    in_order = ["", *conventions.CATEGORY_IDS]
    table = header[header.index("texts[NVTX_MARKERS_CATEGORY_COUNT]") :]
    assert re.findall(r'"(\w*)"', table[: table.index("}")]) == in_order
    internal = (ROOT / "nvtx_markers/native/internal.h").read_text(encoding="utf-8")
    listed = internal[internal.index("enum nm_category {") :]
    assert [
        name.lower() for name in re.findall(r"NM_([A-Z_]+)[ ,=]", listed[: listed.index("NM_CATEGORY_COUNT")])
    ] == in_order[1:]
    emit = (ROOT / "nvtx_markers/native/emit.c").read_text(encoding="utf-8")
    assert dict(re.findall(r'\[NM_([A-Z_]+)\] = "(\w+)"', emit)) == {
        name.upper(): name for name in conventions.CATEGORY_IDS
    }
    abi = (INCLUDE / "nvtx_markers_abi.h").read_text(encoding="utf-8")
    for name in conventions.RANGES:
        assert re.search(rf"\b{name} {conventions.CATEGORY_IDS[name]}\b", abi.replace("\n *", "")), name


def test_calls_the_library_wraps_have_the_category_the_conventions_give() -> None:
    source = (ROOT / "nvtx_markers/native/cuda_calls.c").read_text(encoding="utf-8")
    wrapped = re.findall(r"^CUDA_CALL\(NM_([A-Z_]+), cuda(\w+),", source, re.MULTILINE)
    assert len(wrapped) > 20
    assert {call: category.lower() for category, call in wrapped} == {
        call: conventions.API_CATEGORY[call] for _, call in wrapped
    }


# ---- Rust ----


def rust_program(kit: Kit, source: Path, name: str) -> Path:
    """Compiles, or skips where there is no Rust."""
    if shutil.which("rustc") is None:
        pytest.skip("needs rustc")
    output = kit.folder / name
    done = subprocess.run(
        ["rustc", "--edition", "2021", "-O", "-o", str(output), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "no default toolchain" in done.stderr or "no override and no default" in done.stderr:
        pytest.skip("rustc has no toolchain")
    assert done.returncode == 0, done.stderr
    return output


def test_a_rust_program_writes_a_line_in_pieces(kit: Kit) -> None:
    program = rust_program(kit, PROGRAMS / "eprintln.rs", "eprintln")
    plain, run = kit.run([program], preload=[], tool=False), kit.run([program])
    assert (run.code, run.out, run.err) == (plain.code, plain.out, plain.err)
    assert run.lines() == [*run.err.decode().splitlines(), "TIMELINE,16,ON_STDOUT,job,"]


def test_the_rust_snippet_of_the_manual(kit: Kit, tmp_path: Path) -> None:
    manual = (ROOT / "docs" / "markers.md").read_text(encoding="utf-8")
    snippet = re.search(r"```rust\n(.*?)```", manual, re.DOTALL)
    assert snippet is not None
    source = tmp_path / "snippet.rs"
    source.write_text(snippet[1], encoding="utf-8")
    program = rust_program(kit, source, "snippet")
    quiet = kit.run([program], preload=[], tool=False)
    assert (quiet.code, quiet.events) == (0, [])
    run = kit.run([program])
    assert run.code == 0
    assert run.texts("start", "section") == ["section job=job-7 partition=3 worker=0"]
    assert run.texts("push") == ["mutex_wait"]
    assert run.texts("start", "mutex_held") == ["mutex_held"]
