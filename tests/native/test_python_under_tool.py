"""The Python package with the real ``nvtx`` package, a tool listening, and the preload library there too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nvtx_markers import conventions
from tests.native.conftest import ROOT, Kit

PROGRAM = """
import threading, time, nvtx_markers
lock = nvtx_markers.wrap_lock(threading.Lock())
inside = threading.Event()
def hold():
    with lock:
        inside.set()
        time.sleep(0.01)
with nvtx_markers.section(job="job 7", partition=3, worker=0):
    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    with lock, nvtx_markers.range("upload"):
        nvtx_markers.timeline_event("GPU_START", "job 7", worker=0, partition=3)
    thread.join()
print("done", nvtx_markers.active())
"""


@pytest.mark.parametrize("preloaded", [False, True])
def test_what_reaches_the_tool(kit: Kit, tmp_path: Path, preloaded: bool) -> None:
    pytest.importorskip("nvtx")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    preload = [kit.library] if preloaded else []
    env = {"PYTHONPATH": str(ROOT), "NVTX_MARKERS_DISABLE": "mutex,held"}
    run = kit.run([sys.executable, program], preload=preload, env=env)
    assert (run.code, run.out) == (0, b"done True\n")
    assert run.texts("start", "section") == ["section job=job 7 partition=3 worker=0"]
    assert sorted(run.texts("push")) == ["mutex_wait", "upload"]
    assert run.texts("start", "mutex_held") == ["mutex_held"] * 2
    assert run.lines() == [run.err.decode().rstrip("\n")], "one mark, whoever else is listening to the line"
    numbers = {event.text: event.category for event in run.events if event.kind in {"push", "start"}}
    assert all(numbers[name] == conventions.CATEGORY_IDS[name] for name in ("upload", "mutex_wait", "mutex_held"))
    sources = [text.split("source=")[1].split(" ")[0] for text in run.texts("mark", conventions.SHIM_PREFIX)]
    assert sorted(sources) == (["preload", "python"] if preloaded else ["python"])
    assert len({event.payload for event in run.events if event.text in {"mutex_wait", "mutex_held"}}) == 1
