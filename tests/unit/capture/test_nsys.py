"""Options by what a version can do; failures by what nsys says and leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.capture.nsys import Wish, explain, explain_export, frequency, options, refused_metrics, telling
from nvprof_tools.capture.tools import Tool
from nvprof_tools.errors import UsageError

NEW = "--cpuctxsw --cuda-graph-trace --cuda-memory-usage --discard-environment --gpu-metrics-devices"
OLD = "--cpuctxsw --gpu-metrics-device"


def test_markers_stand_in_for_the_tracing_of_system_calls() -> None:
    assert "--trace=cuda,nvtx" in options(Wish(), NEW, True)
    assert "--trace=cuda,nvtx,osrt" in options(Wish(), NEW, False)
    assert "--trace=cuda,nvtx,osrt" in options(Wish(os_calls=True), NEW, True)


@pytest.mark.parametrize(("known", "option"), [(NEW, "--gpu-metrics-devices=all"), (OLD, "--gpu-metrics-device=all")])
def test_the_option_for_metrics_has_the_name_of_its_version(known: str, option: str) -> None:
    assert option in options(Wish(metrics=True), known, True)
    assert not any("metrics" in o for o in options(Wish(), known, True))


def test_options_a_version_does_not_know_are_left_out() -> None:
    wish = Wish(memory=True, graph_nodes=True)
    assert "--cuda-graph-trace=node" in options(wish, NEW, True)
    assert "--cuda-memory-usage=true" in options(wish, NEW, True)
    assert options(wish, "", True) == ["--trace=cuda,nvtx", "--sample=none", "--force-overwrite=true"]


def test_the_environment_is_discarded_where_nsys_can_and_it_is_not_asked_for() -> None:
    assert "--discard-environment=true" in options(Wish(), NEW, True)
    assert not any("environment" in o for o in options(Wish(keep_environment=True), NEW, True))


@pytest.mark.parametrize(
    ("wish", "hertz"),
    [
        (Wish(), 2_000),
        (Wish(expected_s=1), 10_000),
        (Wish(expected_s=250), 2_000),
        (Wish(expected_s=1e6), 100),
        (Wish(expected_s=1e6, duration_s=250), 2_000),
        (Wish(expected_s=250, metrics_hz=123), 123),
        (Wish(expected_s=0), 2_000),
    ],
)
def test_samples_are_fitted_to_the_length(wish: Wish, hertz: int) -> None:
    assert frequency(wish) == hertz


def test_times_and_ranges() -> None:
    chosen = options(Wish(delay_s=1.5, duration_s=20, extra=("--x",)), NEW, True)
    assert chosen[-3:] == ["--delay=1.5", "--duration=20", "--x"]
    assert "--capture-range=cudaProfilerApi" in options(Wish(capture_range="cudaProfilerApi"), NEW, True)
    ranged = options(Wish(capture_range="nvtx:proof@app"), NEW, True)
    assert "--nvtx-capture=proof@app" in ranged
    assert "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0" in ranged


@pytest.mark.parametrize("text", ["", "nvtx", "nvtx:", "hotkey", "proof"])
def test_no_range(text: str) -> None:
    with pytest.raises(UsageError, match="no capture range"):
        options(Wish(capture_range=text), NEW, True)


@pytest.mark.parametrize(
    ("said", "left", "slug", "hint"),
    [
        ("lib: error while loading shared libraries: libdw.so.1: no", True, "nsys-import-failed", "libdw1"),
        ("error while loading shared libraries: libzzz.so: no", True, "nsys-import-failed", "what holds libzzz.so"),
        ("Importer error", True, "nsys-import-failed", "trace.qdstrm"),
        ("made by a newer version", True, "nsys-import-failed", "same version"),
        ("", True, "nsys-import-failed", "trace.qdstrm"),
        ("write: No space left on device", True, "capture-disk-full", "space"),
        ("unrecognised option", False, "nsys-failed", "app.log"),
        ("", False, "nsys-failed", "app.log"),
        ("Generated:\n\tNo reports were generated", False, "capture-empty", "range"),
    ],
)
def test_why_there_is_no_report(tmp_path: Path, said: str, left: bool, slug: str, hint: str) -> None:
    if left:
        (tmp_path / "trace.qdstrm").touch()
    error = explain(said, 1, tmp_path, Tool("nsys", tmp_path / "nsys", None))
    assert error.slug == slug
    assert hint in error.hint
    assert "\n" not in error.message


def test_what_nsys_hides_its_importer_tells(tmp_path: Path) -> None:
    """As seen on a machine: nsys says that something went wrong; only the importer itself says what."""
    said = "Importer error status: An unknown error occurred.\nUnable to retrieve the importer version"
    nsys = Tool("nsys", tmp_path / "host" / "target-linux-x64" / "nsys", "2025.3.1.0")
    (tmp_path / "trace.qdstrm").touch()
    other = tmp_path / "host" / "linux-desktop-glibc_2_11_3-x64"
    other.mkdir(parents=True)
    assert explain(said, 0, tmp_path, nsys).hint.startswith("ln -s linux-desktop-glibc_2_11_3-x64 ")
    other.rename(tmp_path / "host" / "host-linux-x64")
    tool = tmp_path / "host" / "host-linux-x64" / "QdstrmImporter"
    tool.write_text("#!/bin/sh\necho 'error while loading shared libraries: libdw.so.1: no' >&2; exit 127\n")
    tool.chmod(0o755)
    error = explain(said, 0, tmp_path, nsys)
    assert "libdw.so.1" in error.message
    assert "libdw1" in error.hint
    tool.write_text("#!/bin/sh\n")
    assert "same version" in explain(said, 0, tmp_path, nsys).hint


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        ("database or disk is full", "capture-disk-full"),
        ("error while loading shared libraries: libelf.so.1: no", "nsys-import-failed"),
        ("unsupported report version", "nsys-export-failed"),
        ("", "nsys-export-failed"),
    ],
)
def test_why_there_is_no_export(said: str, slug: str) -> None:
    assert explain_export(said, 1).slug == slug


def test_what_is_about_metrics() -> None:
    assert refused_metrics("Illegal --gpu-metrics-devices argument")
    assert refused_metrics("Insufficient privilege, see ERR_NVGPUCTRPERM")
    assert not refused_metrics("unrecognised option '--trace'")


def test_the_telling_line() -> None:
    assert telling("Collecting\n\nError:   bad\nmore") == "Error: bad"
    assert telling("Illegal argument\nInsufficient privilege") == "Insufficient privilege"
    assert telling("only\nwords") == "words"
    assert telling("") == "it said nothing"
    assert len(telling("error " * 1000)) == 200
