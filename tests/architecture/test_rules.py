"""The rules of ARCHITECTURE.md, checked on the source text: who may import whom, and what lives in one place only."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "nvprof_tools"
MARKERS = ROOT / "nvtx_markers"

LAYERS = {
    "cli": 7,
    "report": 6,
    "golden": 6,
    "capture": 6,
    "fleet": 6,
    "attribution": 5,
    "timeline": 4,
    "sources": 3,
    "pipelines": 2,
    "model": 1,
    "native": 0,
    "files": 0,
    "limits": 0,
    "errors": -1,
}
"""A module may import what lies in its own package or in a lower layer."""
ONLY = {
    "report": {"model", "files", "limits", "errors"},
    "files": {"errors"},
    "model": {"limits", "errors"},
}
"""Packages that may import less than their layer allows."""
PLACES = {
    "click": {"cli"},
    "sqlite3": {"sources.guarded_sqlite"},
    "adbc_driver_sqlite": {"sources.guarded_sqlite", "sources.bulk_adbc"},
    "connectorx": set(),
    "pandas": {"report", "model.trace"},
    "warnings": set(),
}
"""Libraries that are imported in these packages or modules only."""


def sources(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def module(path: Path) -> str:
    """``sources.base`` for nvprof_tools/sources/base.py."""
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return name.removesuffix(".__init__") if name != "__init__" else ""


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Names of imported modules and their lines, wherever in the file; imports for types only are left out."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(path)):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield node.module or "", node.lineno
            for alias in node.names:
                if (PACKAGE.parent / (node.module or "").replace(".", "/") / f"{alias.name}.py").is_file():
                    yield f"{node.module}.{alias.name}", node.lineno


def layer(name: str) -> str:
    """The package below nvprof_tools that a dotted name lies in; empty for the top."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", sources(PACKAGE), ids=module)
def test_imports_go_one_way(path: Path) -> None:
    own = layer(f"nvprof_tools.{module(path)}")
    for name, line in imports(path):
        if name.split(".")[0] != "nvprof_tools":
            continue
        other = layer(name)
        if other in {"", own}:
            continue
        where = f"{path.relative_to(ROOT)}:{line} imports {name}"
        assert own in LAYERS, where
        assert LAYERS[other] < LAYERS[own], where
        assert own not in ONLY or other in ONLY[own], where


@pytest.mark.parametrize("library", PLACES)
def test_some_libraries_have_their_place(library: str) -> None:
    for path in sources(PACKAGE):
        for name, line in imports(path):
            if name.split(".")[0] == library:
                allowed = {module(path), module(path).split(".")[0]} & PLACES[library]
                assert allowed, f"{path.relative_to(ROOT)}:{line} imports {library}"


def called(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            target = node.func
            yield (
                (
                    target.id
                    if isinstance(target, ast.Name)
                    else target.attr
                    if isinstance(target, ast.Attribute)
                    else ""
                ),
                node,
            )


def test_nothing_prints_outside_the_command_line() -> None:
    for path in sources(PACKAGE):
        if module(path).startswith("cli."):
            continue
        for name, node in called(path):
            plain = isinstance(node.func, ast.Name) and name == "print"
            assert not plain, f"{path.relative_to(ROOT)}:{node.lineno}"


LAST = {"cli.main", "sources.ncu_report_worker"}
"""Where a process ends: the program's, and that of the worker which shields it from a vendor's reader."""


def test_only_the_end_of_a_process_catches_everything() -> None:
    """A block that catches everything hides bugs."""
    for path in sources(PACKAGE):
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {n.id for n in caught if isinstance(n, ast.Name)}
            broad = node.type is None or names & {"Exception", "BaseException"}
            reraised = any(isinstance(n, ast.Raise) for n in ast.walk(node))
            assert not broad or reraised or module(path) in LAST, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_write_is_atomic() -> None:
    """No file is opened for writing but in files/atomic.py, or inside a folder that it puts in place as a whole."""
    inside_a_folder = {
        p for p in sources(PACKAGE) if any(n in {"atomic_directory", "TemporaryDirectory"} for n, _ in called(p))
    }
    allowed = {"files.atomic"} | {module(p) for p in inside_a_folder}
    for path in sources(PACKAGE):
        if module(path) in allowed:
            continue
        for name, node in called(path):
            constants = [
                a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)
            ]
            opens = name == "open" and any(
                isinstance(c, str) and re.fullmatch(r"[rbt+]*[wax][rbt+]*", c) for c in constants
            )
            writes = name in {"write_text", "write_bytes"} and isinstance(node.func, ast.Attribute)
            assert not opens and not writes, f"{path.relative_to(ROOT)}:{node.lineno} writes a file"


STREAMS = {
    "files.atomic",
    "capture.tee",
    "capture.capture_writer",
    "capture.running",
    "capture.launcher",
    "cli.main",
    "sources.ncu_report_worker",
}
"""Who may open a descriptor for writing. What a profiled program prints, and what one captures of itself, is a stream:
half of it is worth having when it was cut off. The launcher, a process of its own, notes how the program ended. The
last two open /dev/null."""


def test_descriptors_for_writing_have_their_place() -> None:
    for path in sources(PACKAGE):
        names = {n.attr for n in ast.walk(tree(path)) if isinstance(n, ast.Attribute)}
        writes = bool(names & {"O_WRONLY", "O_RDWR", "O_CREAT"})
        assert not writes or module(path) in STREAMS, path.relative_to(ROOT)


def test_nothing_happens_at_import() -> None:
    """Top-level statements define; a bare call at the top is a side effect."""
    for path in sources(PACKAGE):
        for node in tree(path).body:
            is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            assert not is_call, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_modules_stay_small() -> None:
    lengths = {p: len(p.read_text("utf-8").splitlines()) for p in [*sources(PACKAGE), *sources(MARKERS)]}
    assert {p.name: n for p, n in lengths.items() if n > 500} == {}
    assert statistics.median(lengths.values()) < 150


def test_every_module_says_what_it_is_for() -> None:
    for path in [*sources(PACKAGE), *sources(MARKERS)]:
        assert ast.get_docstring(tree(path)), path


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import nvtx_markers", ("pandas", "pyarrow", "numpy", "click", "rich", "nvprof_tools")),
        ("import nvprof_tools", ("pandas", "pyarrow", "numpy", "click", "rich")),
        ("from nvprof_tools.cli.main import run; run(['--help'])", ("pandas", "pyarrow", "numpy", "rich")),
        ("from nvprof_tools.cli.main import run; run(['attribute', '--help'])", ("pandas", "pyarrow", "numpy", "rich")),
    ],
)
def test_light_imports_stay_light(code: str, heavy: tuple[str, ...]) -> None:
    """In a fresh process, for what is loaded once stays loaded."""
    check = f"{code}\nimport sys\nsys.exit(' '.join(m for m in {heavy!r} if m in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_attributing_needs_no_pandas() -> None:
    """pandas alone takes longer to load than a typical capture to attribute."""
    code = "import nvprof_tools.attribution.run, nvprof_tools.report.console, sys\nsys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_no_two_test_files_share_a_name() -> None:
    """The test folders are no packages: of two files of one name pytest would collect only one."""
    names = [p.name for p in sources(ROOT / "tests") if p.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))
