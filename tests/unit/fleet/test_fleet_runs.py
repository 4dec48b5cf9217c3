"""Which runs a folder, a pattern or a list names, what they are called, and which log goes with each."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.errors import UsageError
from nvprof_tools.fleet import ledger, runs


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return folder


def named(found: list[runs.Run]) -> dict[str, str]:
    return {run.name: run.node for run in found}


def test_a_folder_of_nodes(tmp_path: Path) -> None:
    touched(tmp_path, "n1/night1/trace.sqlite", "n1/night1/app.log", "n2/night1/trace.sqlite", "n2/a.sqlite", "x.txt")
    found = runs.find(str(tmp_path))
    assert named(found) == {"n1/night1": "n1", "n2/a": "n2", "n2/night1": "n2"}
    assert {run.name: run.log for run in found} == {
        "n1/night1": tmp_path / "n1/night1/app.log",
        "n2/a": None,
        "n2/night1": None,
    }


def test_of_a_report_and_its_export_the_export(tmp_path: Path) -> None:
    touched(tmp_path, "a.nsys-rep", "a.sqlite", "b.nsys-rep")
    assert [run.trace.name for run in runs.find(str(tmp_path))] == ["a.sqlite", "b.nsys-rep"]


def test_an_imported_directory_is_one_run(tmp_path: Path) -> None:
    touched(tmp_path, "night/manifest.json", "night/kernels.parquet", "night/deep/z.sqlite", "y.sqlite")
    assert named(runs.find(str(tmp_path))) == {"night": "", "y": ""}
    assert [run.trace for run in runs.find(str(tmp_path / "night"))] == [tmp_path / "night"]


def test_a_pattern_and_a_list(tmp_path: Path) -> None:
    touched(tmp_path, "a/one.sqlite", "b/two.sqlite", "b/log.txt")
    assert named(runs.find(str(tmp_path / "*" / "*.sqlite"))) == {"a/one": "a", "b/two": "b"}
    (tmp_path / "list.txt").write_text("# nights\na/one.sqlite\n\nb/two.sqlite\tb/log.txt\n")
    found = runs.find(str(tmp_path / "list.txt"))
    assert [(run.trace, run.log) for run in found] == [
        (tmp_path / "a/one.sqlite", None),
        (tmp_path / "b/two.sqlite", tmp_path / "b/log.txt"),
    ]


def test_a_trace_a_list_names_and_nobody_has(tmp_path: Path) -> None:
    """It is a run: that it failed is said with the others."""
    (tmp_path / "list.txt").write_text("gone/one.sqlite\n")
    assert [run.trace.name for run in runs.find(str(tmp_path / "list.txt"))] == ["one.sqlite"]


def test_names_are_unique_and_safe(tmp_path: Path) -> None:
    touched(tmp_path, "a b/x.sqlite", "a_b/x.sqlite", "a~b/x.sqlite", "a_b/x.2.sqlite", "..hidden/é.sqlite")
    names = [run.name for run in runs.find(str(tmp_path))]
    assert len(set(names)) == 5
    flat = [ledger.flat_name(name) for name in names]
    assert len(set(flat)) == 5
    assert not any("/" in name or name.startswith(".") for name in flat)


@pytest.mark.parametrize(
    ("logs", "traces", "chosen"),
    [
        (["a.log", "z.log"], ["a.sqlite", "b.sqlite"], "a.log"),
        (["z.log"], ["a.sqlite"], "z.log"),
        (["z.log"], ["a.sqlite", "b.sqlite"], None),
        (["y.log", "z.log"], ["a.sqlite"], None),
    ],
)
def test_the_log_beside(logs: list[str], traces: list[str], chosen: str | None, tmp_path: Path) -> None:
    touched(tmp_path, *logs, *traces)
    assert runs.beside(tmp_path / "a.sqlite") == (None if chosen is None else tmp_path / chosen)


@pytest.mark.parametrize("given", ["nothing", "*.sqlite", "none.sqlite"])
def test_nothing_there(given: str, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UsageError) as caught:
        runs.find(str(tmp_path / given))
    assert caught.value.slug == "no-runs"


def test_a_text_that_lists_no_trace_is_no_list(tmp_path: Path) -> None:
    """A log, say: its lines are no missing traces."""
    log = tmp_path / "app.log"
    log.write_text("TIMELINE,0,GPU_START,j,worker=0,partition=0\n" + "x" * 5000 + "\n\0\n")
    with pytest.raises(UsageError) as caught:
        runs.find(str(log))
    assert caught.value.slug == "no-runs"
