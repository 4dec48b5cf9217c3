"""Two GPUs, two workers each, one mutex a GPU: drawn by hand, in microseconds, and added up by hand.

Stream 17 exists on both GPUs; holds of the two overlap; the launching threads are fresh and say nothing of themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export

US = 1_000


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Attribution:
    export = Export("2025.3", duration=300 * US)
    for board in (0, 1):
        export.board(board, ordinal=board)
        export.add("TARGET_INFO_CUDA_DEVICE", gpuId=board, cudaId=board, pid=100)

    def section(thread: int, start: int, end: int, wait: tuple[int, int], held: tuple[int, int]) -> None:
        export.nvtx(start * US, end * US, "gpu_prove", thread=thread)
        export.nvtx(wait[0] * US, wait[1] * US, "mutex_acquire", thread=thread)
        export.nvtx(held[0] * US, held[1] * US, "gpu_mutex_held", thread=thread)

    def call(thread: int, start: int, end: int, name: str, correlation: int = 0) -> None:
        export.call(start * US, end * US, f"{name}_v3020", thread=thread, correlation=correlation)

    # GPU 0: workers on threads 10 and 11.
    section(10, 0, 100, (10, 11), (11, 80))
    call(10, 0, 10, "cudaHostRegister")
    export.os_call(11 * US + 200, 11 * US + 700, "pthread_create", thread=10)
    call(50, 12, 14, "cudaLaunchKernel", 1)
    export.kernel(15 * US, 60 * US, "sort", correlation=1, device=0, stream=17)
    call(10, 70, 75, "cudaFree")
    call(10, 80, 95, "cudaHostUnregister")
    section(11, 20, 180, (40, 82), (82, 160))
    call(11, 20, 40, "cudaHostRegister")
    export.os_call(82 * US + 500, 83 * US, "pthread_create", thread=11)
    call(51, 84, 86, "cudaLaunchKernel", 2)
    export.kernel(90 * US, 150 * US, "sort", correlation=2, device=0, stream=17)
    call(11, 155, 158, "cudaFree")
    call(11, 160, 175, "cudaHostUnregister")
    # GPU 1: workers on threads 12 and 13. Thread 60 starts once GPU 0's mutex is held too: its creation tells.
    section(12, 0, 150, (5, 6), (6, 120))
    call(12, 0, 5, "cudaHostRegister")
    export.os_call(12 * US + 500, 12 * US + 900, "pthread_create", thread=12)
    call(60, 13, 14, "cudaLaunchKernel", 3)
    export.kernel(15 * US, 75 * US, "sort", correlation=3, device=1, stream=17)
    call(60, 76, 77, "cudaMemcpyAsync", 4)
    export.copy(78 * US, 80 * US, correlation=4, device=1, stream=17)
    section(13, 30, 140, (31, 122), (122, 135))
    call(61, 123, 124, "cudaLaunchKernel", 5)
    export.kernel(125 * US, 130 * US, "sort", correlation=5, device=1, stream=17)
    path = export.write(tmp_path_factory.mktemp("two") / "trace.sqlite")
    return attribute(load_trace(Path(path)), None, [load_pipeline("cuzk")], Options(window="0us:200us"))


def us(categories: object) -> dict[str, int]:
    assert isinstance(categories, dict)
    return {name: ns // US for name, ns in categories.items()}


def test_each_device_has_its_own_sections_mutex_and_causes(found: Attribution) -> None:
    views = {view.device: us(dict(view.categories)) for view in found.devices}
    assert views[0] == {
        "kernel": 105,
        "host_register": 10,
        "mutex_handover": 3,
        "cpu": 35,
        "launch": 4,
        "free": 8,
        "host_unregister": 15,
        "unattributed": 20,
    }
    assert views[1] == {
        "kernel": 65,
        "upload": 2,
        "host_register": 5,
        "mutex_handover": 3,
        "cpu": 72,
        "launch": 2,
        "upload_issue": 1,
        "unattributed": 50,
    }


def test_sections_belong_to_the_device_their_kernels_ran_on(found: Attribution) -> None:
    assert [p.device for p in found.partitions] == [0, 1, 0, 1]
    own = [us(dict(p.categories)) for p in found.partitions]
    assert [o["kernel"] for o in own] == [45, 60, 60, 5]
    assert own[0] == {"kernel": 45, "mutex_wait": 1, "host_register": 10, "launch": 2, "free": 5,
                      "host_unregister": 15, "cpu": 22}  # fmt: skip


def test_a_stream_id_on_two_devices_is_two_streams(found: Attribution) -> None:
    busy = {r.device: r.busy_ns for r in found.ladder if r.rung == "device_busy"}
    assert busy == {0: 105 * US, 1: 67 * US}


def test_mutexes_are_held_apart(found: Attribution) -> None:
    held = {r.device: r.busy_ns for r in found.ladder if r.rung == "mutex_held"}
    assert held == {0: (69 + 78) * US, 1: (114 + 13) * US}
