"""Building the native parts: with a compiler, without one, without headers, and not at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nvtx_markers.library import BUILD_NOTE, LIBRARY
from tests.native.conftest import ROOT, nvtx_include


def build(folder: Path, env: dict[str, str]) -> dict[str, str]:
    """Runs ``build_ext`` on a copy of what it needs; the note it leaves. It must not fail."""
    for name in ("setup.py", "nvtx_markers"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("*.so", "_native_build.json", "__pycache__")
            )
        else:
            shutil.copy(source, folder / name)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "out"]
    # Requirements of the build are the front end's business; asked for here they would be fetched.
    keep = {name: value for name, value in os.environ.items() if name not in {"CUDA_HOME", "CUDA_PATH"}}
    done = subprocess.run(command, cwd=folder, env=keep | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    note = json.loads((folder / "out" / "nvtx_markers" / BUILD_NOTE).read_text(encoding="utf-8"))
    assert isinstance(note, dict)
    assert str(folder) not in json.dumps(note), "the note travels in wheels"
    return note


def test_with_a_compiler(tmp_path: Path) -> None:
    headers = nvtx_include()
    if shutil.which("gcc") is None or headers is None:
        pytest.skip("needs gcc and NVTX headers")
    note = build(tmp_path, {"NVTX_INCLUDE": str(headers)})
    assert note[LIBRARY] == "built"
    assert (tmp_path / "out" / "nvtx_markers" / LIBRARY).is_file()


def test_without_a_compiler(tmp_path: Path) -> None:
    include = tmp_path / "include" / "nvtx3"
    include.mkdir(parents=True)
    (include / "nvToolsExt.h").touch()
    note = build(tmp_path, {"NVTX_INCLUDE": str(include.parent), "CC": "/bin/false"})
    assert note[LIBRARY].startswith("not built: the C compiler failed or is missing")
    assert not (tmp_path / "out" / "nvtx_markers" / LIBRARY).exists()


def test_not_asked_for(tmp_path: Path) -> None:
    note = build(tmp_path, {"NVPROF_TOOLS_NO_NATIVE": "1"})
    assert note[LIBRARY] == "left out: NVPROF_TOOLS_NO_NATIVE is set"
