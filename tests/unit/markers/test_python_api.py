"""The Python package with a stand-in for the ``nvtx`` package: what is emitted, and nothing where nobody listens."""

from __future__ import annotations

import asyncio
import io
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

import nvtx_markers
from nvtx_markers import _backend, conventions, cuda, timeline


class FakeDomain:
    """Records calls; numbers categories as they are asked for, as the real one does."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, int]] = []
        self.categories: dict[str, int] = {}
        self.ranges = 0

    def get_category_id(self, name: str) -> int:
        return self.categories.setdefault(name, len(self.categories) + 1)

    def get_event_attributes(self, message: str, color: object, category: int, payload: object) -> tuple[Any, ...]:
        return message, category, payload

    def _note(self, kind: str, value: Any) -> None:
        self.calls.append((kind, value, threading.get_ident()))

    def push_range(self, attributes: Any) -> None:
        self._note("push", attributes)

    def pop_range(self) -> None:
        self._note("pop", None)

    def start_range(self, attributes: Any) -> int:
        self.ranges += 1
        self._note("start", (*attributes, self.ranges))
        return self.ranges

    def end_range(self, token: int) -> None:
        self._note("end", token)

    def mark(self, attributes: Any) -> None:
        self._note("mark", attributes)

    def texts(self, kind: str) -> list[str]:
        return [value[0] for made, value, _ in self.calls if made == kind]


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDomain]:
    """A tool listens, and the ``nvtx`` package is ours."""
    made = FakeDomain()
    fake = types.ModuleType("nvtx")
    fake.get_domain = lambda name: made if name == conventions.DOMAIN else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "tool.so")
    monkeypatch.delenv("NVTX_DISABLE", raising=False)
    monkeypatch.setattr(_backend, "_found", None)
    assert nvtx_markers.active()
    made.calls.clear()
    yield made
    monkeypatch.setattr(_backend, "_found", None)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No tool."""
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.setattr(_backend, "_found", None)
    yield
    monkeypatch.setattr(_backend, "_found", None)


def test_numbers_are_those_of_the_conventions(domain: FakeDomain) -> None:
    assert domain.categories == conventions.CATEGORY_IDS


def test_sections_and_ranges(domain: FakeDomain) -> None:
    with nvtx_markers.section(job="job [1 2]", partition=3, worker=0), nvtx_markers.range("upload"):
        nvtx_markers.mark("hello")
    with nvtx_markers.section(job="a\nb"):
        pass
    assert [(kind, value) for kind, value, _ in domain.calls] == [
        ("start", ("section job=job [1 2] partition=3 worker=0", conventions.CATEGORY_IDS["section"], None, 1)),
        ("push", ("upload", conventions.CATEGORY_IDS["upload"], None)),
        ("mark", ("hello", conventions.CATEGORY_IDS["shim"], None)),
        ("pop", None),
        ("end", 1),
        ("start", ("section job=a b partition=- worker=-", conventions.CATEGORY_IDS["section"], None, 2)),
        ("end", 2),
    ]


def test_the_section_pattern_reads_the_section_format() -> None:
    for job, partition, worker in [
        ("j", "0", "1"),
        ("wdpost-1-0-[12 200] partition=9 worker=9", "-", "12"),
        ("", "3", "-"),
    ]:
        text = conventions.SECTION_FORMAT.format(job=job, partition=partition, worker=worker)
        match = re.match(conventions.SECTION_PATTERN, text)
        assert match is not None
        assert match.groupdict() == {"job": job, "partition": partition, "worker": worker}


def test_decorators_and_errors(domain: FakeDomain) -> None:
    @nvtx_markers.range("synthesis")
    @nvtx_markers.section(job="j", partition=1)
    def work(depth: int) -> int:
        if depth == 0:
            raise KeyError
        return work(depth - 1)

    with pytest.raises(KeyError):
        work(2)
    kinds = [kind for kind, *_ in domain.calls]
    assert kinds == ["push", "start"] * 3 + ["end", "pop"] * 3
    with pytest.raises(ValueError, match="unknown range 'uplaod'"):
        nvtx_markers.range("uplaod")


def test_a_lock_marks_waits_apart_from_holds(domain: FakeDomain) -> None:
    lock = nvtx_markers.wrap_lock(threading.Lock())
    inside = threading.Event()

    def hold() -> None:
        with lock:
            inside.set()
            time.sleep(0.02)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    with lock:
        pass
    thread.join()
    me = threading.get_ident()
    assert [kind for kind, _, who in domain.calls if who == me] == ["push", "pop", "start", "end"]
    assert [kind for kind, _, who in domain.calls if who != me] == ["start", "end"], (
        "an uncontended lock waits for nobody"
    )
    assert len({value[2] for kind, value, _ in domain.calls if kind in {"push", "start"}}) == 1, "one address"


def test_a_lock_behaves_as_before(domain: FakeDomain) -> None:
    lock = nvtx_markers.wrap_lock(threading.Lock())
    assert lock.acquire() is True
    assert lock.locked()
    assert lock.acquire(False) is False
    assert lock.acquire(blocking=False) is False
    assert lock.acquire(timeout=0.001) is False
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()
    assert nvtx_markers.wrap_lock(lock) is lock
    with pytest.raises(TypeError, match="has no acquire"):
        nvtx_markers.wrap_lock(object())
    with pytest.raises(TypeError, match="asynchronous"):
        nvtx_markers.wrap_lock(asyncio.Lock())
    assert domain.texts("start") == ["mutex_held"]
    assert domain.texts("push") == ["mutex_wait"], "the timed try waited; those that do not block did not"


def test_a_reentrant_lock_is_held_once(domain: FakeDomain) -> None:
    lock = nvtx_markers.wrap_lock(threading.RLock())
    with lock, lock:
        with lock:
            pass
        assert domain.texts("start") == ["mutex_held"]
        assert "end" not in [kind for kind, *_ in domain.calls]
    assert [kind for kind, *_ in domain.calls] == ["start", "end"]


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_a_condition_gives_the_lock_up(domain: FakeDomain, make: Any) -> None:
    condition = threading.Condition(nvtx_markers.wrap_lock(make()))
    with condition:
        assert condition.wait(0.01) is False
    assert [kind for kind, *_ in domain.calls if kind in {"start", "end"}] == ["start", "end"] * 2


def test_semaphores_and_locks_of_others(domain: FakeDomain) -> None:
    two = nvtx_markers.wrap_lock(threading.Semaphore(2))
    with two, two:
        assert two.acquire(blocking=False) is False
    assert [kind for kind, *_ in domain.calls] == ["start", "start", "end", "end"]

    class Odd:
        taken = 0

        def acquire(self, patience: int = 1) -> None:
            self.taken += patience

        def release(self) -> None:
            self.taken -= 1

    domain.calls.clear()
    odd = Odd()
    with nvtx_markers.wrap_lock(odd):
        assert odd.taken == 1
    assert [kind for kind, *_ in domain.calls] == ["push", "pop", "start", "end"], (
        "it cannot be tried: every wait is marked"
    )
    assert odd.taken == 0
    process_lock = nvtx_markers.wrap_lock(multiprocessing.get_context("spawn").Lock())
    with process_lock:
        assert process_lock.acquire(False) is False
    with pytest.raises((RuntimeError, TypeError)):
        pickle.dumps(nvtx_markers.wrap_lock(threading.Lock()))


def test_timeline_event_prints_and_marks(domain: FakeDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "_epoch_ns", None)
    zero = nvtx_markers.timeline_epoch()
    assert nvtx_markers.timeline_epoch() == zero
    stream = io.StringIO()
    before = time.time_ns(), time.monotonic_ns()
    nvtx_markers.timeline_event("GPU_START", "job [1\n2]", stream=stream, worker=0, partition=3)
    after = time.time_ns(), time.monotonic_ns()
    printed = stream.getvalue()
    match = re.match(conventions.TIMELINE_MARK_PATTERN, domain.texts("mark")[0])
    assert match is not None
    assert match["line"] + "\n" == printed
    assert re.fullmatch(r"TIMELINE,\d+,GPU_START,job \[1 2\],worker=0,partition=3\n", printed)
    assert before[0] <= int(match["wall_ns"]) <= after[0]
    assert before[1] <= int(match["mono_ns"]) <= after[1]
    assert match["late_ns"] == "0"


def test_timeline_event_prints_without_a_tool(nobody: None, capsys: pytest.CaptureFixture[str]) -> None:
    nvtx_markers.timeline_event("CHAN_SEND", "j")
    assert re.fullmatch(r"TIMELINE,\d+,CHAN_SEND,j,\n", capsys.readouterr().err)


def test_nothing_happens_without_a_tool(nobody: None) -> None:
    assert not nvtx_markers.active()
    lock = nvtx_markers.wrap_lock(threading.RLock())
    with nvtx_markers.section(job="j"), nvtx_markers.range("free"), lock, lock:
        nvtx_markers.mark("x")
    condition = threading.Condition(lock)
    with condition:
        condition.wait(0.001)
    assert nvtx_markers.instrument_cuda() == ()


def test_a_broken_nvtx_package_disables_the_shim_and_not_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = types.ModuleType("nvtx")
    monkeypatch.setitem(sys.modules, "nvtx", broken)
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "tool.so")
    monkeypatch.setattr(_backend, "_found", None)
    assert not nvtx_markers.active()
    monkeypatch.setattr(_backend, "_found", None)


def test_a_forked_child_is_silent(domain: FakeDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = nvtx_markers.wrap_lock(threading.Lock())
    section = nvtx_markers.section(job="j")
    section.__enter__()
    lock.acquire()
    made = len(domain.calls)
    monkeypatch.setattr(os, "getpid", lambda: -5)  # as in the child
    lock.release()
    with lock, nvtx_markers.range("alloc"):
        pass
    section.__exit__(None, None, None)
    assert len(domain.calls) == made


def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> tuple[types.ModuleType, types.ModuleType]:
    runtime, driver = types.ModuleType("cuda.bindings.runtime"), types.ModuleType("cuda.bindings.driver")
    for name in ("cudaMalloc", "cudaMemGetInfo", "cudaLaunchKernelExC", "cudaGetErrorName", "cudaFreeHost"):
        setattr(runtime, name, lambda *values, _name=name: (_name, values))
    for name in ("cuMemAlloc", "cuLaunchKernel", "cuMemHostRegister", "cuInit", "cuCtxSynchronize", "cuMemFree_v2"):
        setattr(driver, name, lambda *values, _name=name: (_name, values))
    core = types.ModuleType("cuda.core")
    core.launch = lambda *values: ("launch", values)  # type: ignore[attr-defined]
    for module in (runtime, driver, core):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "cuda.core.experimental", types.ModuleType("cuda.core.experimental"))
    return runtime, driver


def test_cuda_calls_by_category(domain: FakeDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, driver = fake_cuda(monkeypatch)
    plain = runtime.cudaMalloc
    try:
        names = nvtx_markers.instrument_cuda()
        assert nvtx_markers.instrument_cuda() == names, "twice is once"
        assert "cuda.bindings.runtime.cudaMalloc" in names
        assert "cuda.core.launch" in names
        assert not any(name.endswith(("cuInit", "cudaGetErrorName")) for name in names)
        assert runtime.cudaMalloc(64) == ("cudaMalloc", (64,))
        runtime.cudaMemGetInfo(), runtime.cudaFreeHost(1), runtime.cudaLaunchKernelExC()
        (
            driver.cuMemAlloc(1),
            driver.cuLaunchKernel(),
            driver.cuMemHostRegister(),
            driver.cuCtxSynchronize(),
            driver.cuMemFree_v2(),
        )
        sys.modules["cuda.core"].launch("stream")
    finally:
        nvtx_markers.uninstrument_cuda()
    assert runtime.cudaMalloc is plain
    assert domain.texts("push") == [
        *("alloc", "mem_info", "host_unregister", "launch"),
        *("alloc", "launch", "host_register", "device_sync", "free"),
        "launch",
    ]
    assert [kind for kind, *_ in domain.calls] == ["push", "pop"] * 10


def test_every_category_of_a_call_is_a_range() -> None:
    assert set(conventions.API_CATEGORY.values()) <= set(conventions.RANGES)
    assert cuda._category("cudaMemcpy2DAsync_ptsz") == "upload"
    assert cuda._category("cuMemFree_v2") == "free"
    assert cuda._category("printf") is None


def test_import_is_light() -> None:
    code = (
        "import sys; before = set(sys.modules); import nvtx_markers; "
        "print(sorted({m.partition('.')[0] for m in set(sys.modules) - before} & "
        "{'numpy', 'pandas', 'pyarrow', 'click', 'nvtx', 'ctypes', 'cuda'}))"
    )
    keep = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=keep)
    assert done.stdout == "[]\n"


def test_native_parts_say_where_they_are_and_why_not(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from nvtx_markers import library

    assert (nvtx_markers.include_directory() / "nvtx_markers.h").is_file()
    monkeypatch.setattr(library, "_HERE", tmp_path)
    assert library.preload_library() is None
    assert library.native_status() == (False, "never tried: the package was not installed by pip")
    (tmp_path / library.BUILD_NOTE).write_text(
        '{"libnvtx_markers_preload.so": "not built: no compiler"}', encoding="utf-8"
    )
    assert library.native_status() == (False, "not built: no compiler")
    (tmp_path / library.BUILD_NOTE).write_text("[]", encoding="utf-8")
    assert library.native_status().reason == "never tried"
    (tmp_path / library.LIBRARY).touch()
    assert library.native_status().built
    assert library.preload_library() == tmp_path / library.LIBRARY
