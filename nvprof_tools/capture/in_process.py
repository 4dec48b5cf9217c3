"""A stretch of a Python program, captured from within through the package cupti-python; read like any capture."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nvprof_tools import __version__
from nvprof_tools.capture.capture_writer import ABSENT, CaptureWriter
from nvprof_tools.errors import ToolError
from nvprof_tools.sources.capture_blocks import SUFFIX

_KINDS = (
    "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "RUNTIME", "SYNCHRONIZATION", "OVERHEAD", "CONTEXT", "DEVICE",
    "MARKER",
)  # fmt: skip
_BUFFER_BYTES = 8 << 20
_SYSTEM_THREADS, _OF_THREAD = 1, 2
_MARK, _BEGIN, _END = 1, 2, 4
_RUNTIME_DOMAIN, _DRIVER_DOMAIN = 2, 1
_running = threading.Lock()


@contextmanager
def collect(
    folder: Path | str, *, graph_nodes: bool = False, memory: bool = False, driver: bool = False
) -> Iterator[Path]:
    """Record what CUDA does inside the ``with`` block into a new file of ``folder``, which is made; gives the file.

    :param graph_nodes: a row a kernel of a CUDA graph instead of one a launch.
    :param memory: allocations and frees of device memory.
    :param driver: calls of the driver's API too, those that the runtime makes included.
    :raises ToolError: ``cupti-python-missing``; ``cupti-python-failed``: there is no driver, another profiler is in the
        process, or a capture is running already.
    """
    cupti = _library()
    if not _running.acquire(blocking=False):
        raise _failed("a capture is running already")
    try:
        session = _Session(cupti, Path(folder), graph_nodes, memory, driver)
        try:
            yield session.path
        finally:
            session.finish()
    finally:
        _running.release()


def _library() -> Any:
    try:
        from cupti import cupti
    except ImportError as error:
        raise ToolError(
            "cupti-python-missing",
            "capturing within a Python program needs the package cupti-python",
            "pip install 'nvprof-tools[cupti]'",
        ) from error
    return cupti


def _failed(why: object) -> ToolError:
    line = " ".join(str(why).split())[:200] or "it does not say why"
    return ToolError(
        "cupti-python-failed",
        f"CUPTI cannot record: {line}",
        "is there a driver, and no other profiler in the process?",
    )


class _Session:
    """A running capture."""

    def __init__(self, cupti: Any, folder: Path, graph_nodes: bool, memory: bool, driver: bool) -> None:
        self.cupti = cupti
        self.errors = (cupti.cuptiError, RuntimeError, OSError, AttributeError)
        self.offset = 0
        self.open_markers: dict[int, tuple[int, int, int, int]] = {}
        self.names: dict[tuple[int, int], int] = {}
        self.enabled: list[Any] = []
        wanted = [*_KINDS, *(["MEMORY2"] if memory else []), *(["DRIVER"] if driver else [])]
        wanted += [] if graph_nodes else ["GRAPH_TRACE"]
        self.path = _free(folder)
        refused = self._start(wanted)
        info = {
            "collector": f"{__version__} (in process)",
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "program": Path(sys.argv[0] or "python").name,
            "clock": "monotonic",
            "cupti_clock": "converted",
            "cupti": None,
            "driver": None,
            "enabled": [kind.name for kind in self.enabled],
            "refused": refused,
            "options": {"graph": "node" if graph_nodes else "graph", "memory": memory},
        }
        try:
            self.writer = CaptureWriter(self.path, info)
        except OSError as error:
            self._disable()
            raise ToolError(
                "output-unwritable", f"the capture cannot be written: {error.strerror}", "check the folder"
            ) from error
        for said in refused:
            self.writer.notice("cupti-refused", 1, f"{said['what']}: {said['why']}")
        self._clock()

    def _start(self, wanted: Iterable[str]) -> list[dict[str, str]]:
        refused = []
        try:
            with suppress(*self.errors):  # older ones number threads their own way
                self.cupti.set_thread_id_type(_SYSTEM_THREADS)
            for name in wanted:
                kind = self.cupti.ActivityKind[name]
                try:
                    self.cupti.activity_enable(kind)
                except self.cupti.cuptiError as error:
                    refused.append({"what": name, "why": " ".join(str(error).split())[:200]})
                else:
                    self.enabled.append(kind)
            if self.enabled:
                self.cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._completed)
        except self.errors as error:
            self._disable()
            raise _failed(error) from error
        if not self.enabled:
            raise _failed(refused[0]["why"])
        return refused

    def _disable(self) -> None:
        for kind in self.enabled:
            with suppress(*self.errors):  # one that is off already
                self.cupti.activity_disable(kind)

    def finish(self) -> None:
        """Take what CUPTI still holds, and end the file."""
        complete, dropped = True, ctypes.c_size_t()
        try:
            self.cupti.activity_flush_all(1)
            self.cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
        except self.errors as error:
            complete = False
            self.writer.notice("flush-timeout", 1, " ".join(str(error).split())[:200])
        self._disable()
        with suppress(*self.errors):
            self._clock()
        self._still_open()
        self.writer.close({"dropped_by_cupti": dropped.value, "complete": complete and not dropped.value})

    def _clock(self) -> None:
        before = time.monotonic_ns()
        cupti, realtime = int(self.cupti.get_timestamp()), time.time_ns()
        monotonic = (before + (after := time.monotonic_ns())) // 2
        self.offset = monotonic - cupti
        values = {"cupti": cupti, "realtime": realtime, "monotonic": monotonic, "uncertainty": after - before}
        self.writer.add("clock", [self.writer.packed("clock", values)])

    def _completed(self, activities: list[Any]) -> None:
        """CUPTI's buffer, as objects. Nothing may leave this as an error: it is called from C."""
        rows: dict[str, list[bytes]] = {}
        unread = 0
        for activity in activities:
            try:
                found = self._row(activity)
            except (AttributeError, TypeError, ValueError, KeyError):  # of a kind or version that is not understood
                unread += 1
                continue
            if found is not None:
                rows.setdefault(found[0], []).append(self.writer.packed(*found))
        for table, packed in rows.items():
            self.writer.add(table, packed)
        if unread:
            self.writer.notice("record-unknown", unread, "records that were not understood")
        with suppress(*self.errors):
            self._clock()

    def _time(self, value: int) -> int:
        return int(value) + self.offset if value else 0

    def _row(self, a: Any) -> tuple[str, Mapping[str, int]] | None:
        """(table, row) of a record; null where it is none, or only half of one."""
        kind = self.cupti.ActivityKind(a.kind).name
        maker = getattr(self, f"_{kind.lower()}", None)
        return None if maker is None else maker(a)

    def _work(self, a: Any) -> dict[str, int]:
        return {
            "start": self._time(a.start), "end": self._time(a.end), "deviceId": a.device_id, "contextId": a.context_id,
            "streamId": a.stream_id, "correlationId": a.correlation_id,
        }  # fmt: skip

    def _concurrent_kernel(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "kernel", {
            **self._work(a), "name": self.writer.word(a.name or ""), "graphNodeId": a.graph_node_id,
            "graphId": a.graph_id, "gridX": a.grid_x, "gridY": a.grid_y, "gridZ": a.grid_z, "blockX": a.block_x,
            "blockY": a.block_y, "blockZ": a.block_z, "staticSharedMemory": a.static_shared_memory,
            "dynamicSharedMemory": a.dynamic_shared_memory, "registersPerThread": a.registers_per_thread,
            "launchType": a.launch_type,
        }  # fmt: skip

    def _memcpy(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "memcpy", {
            **self._work(a), "bytes": a.bytes, "graphNodeId": a.graph_node_id, "copyKind": a.copy_kind,
            "srcKind": a.src_kind, "dstKind": a.dst_kind, "flags": a.flags_,
        }  # fmt: skip

    _memcpy2 = _memcpy

    def _memset(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "memset", {
            **self._work(a), "bytes": a.bytes, "graphNodeId": a.graph_node_id, "value": a.value,
            "memKind": a.memory_kind,
        }  # fmt: skip

    def _api(self, table: str, domain: int, a: Any) -> tuple[str, Mapping[str, int]]:
        name = self.names.get((domain, a.cbid))
        if name is None:
            name = self.names[domain, a.cbid] = self.writer.word(str(self.cupti.get_callback_name(domain, a.cbid)))
        return table, {
            "start": self._time(a.start), "end": self._time(a.end), "tid": a.thread_id, "cbid": a.cbid, "name": name,
            "correlationId": a.correlation_id, "returnValue": a.return_value,
        }  # fmt: skip

    def _runtime(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return self._api("runtime", _RUNTIME_DOMAIN, a)

    def _driver(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return self._api("driver", _DRIVER_DOMAIN, a)

    def _synchronization(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "synchronization", {
            "start": self._time(a.start), "end": self._time(a.end), "contextId": a.context_id,
            "streamId": a.stream_id & ABSENT, "correlationId": a.correlation_id, "syncType": a.type,
        }  # fmt: skip

    def _overhead(self, a: Any) -> tuple[str, Mapping[str, int]]:
        tid = a.object_id.pt.thread_id if a.object_kind == _OF_THREAD else ABSENT
        times = {"start": self._time(a.start), "end": self._time(a.end)}
        return "overhead", {**times, "overheadKind": a.overhead_kind, "tid": tid}

    def _memory2(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "memory", {
            "start": self._time(a.timestamp), "address": a.address, "bytes": a.bytes, "memKind": a.memory_kind,
            "memoryOperationType": a.memory_operation_type, "deviceId": a.device_id, "contextId": a.context_id,
            "correlationId": a.correlation_id,
        }  # fmt: skip

    def _graph_trace(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "graph", {**self._work(a), "graphId": a.graph_id}

    def _context(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "context", {"contextId": a.context_id, "deviceId": a.device_id}

    def _device(self, a: Any) -> tuple[str, Mapping[str, int]]:
        return "device", {
            "id": a.id, "name": self.writer.word(a.name or ""), "globalMemorySize": a.global_memory_size,
            "globalMemoryBandwidth": a.global_memory_bandwidth, "computeMajor": a.compute_capability_major,
            "computeMinor": a.compute_capability_minor, "numMultiprocessors": a.num_multiprocessors,
            "maxWarpsPerMultiprocessor": a.max_warps_per_multiprocessor, "coreClockRate": a.core_clock_rate,
        }  # fmt: skip

    def _marker(self, a: Any) -> tuple[str, Mapping[str, int]] | None:
        """A range comes as two records, of which the first has the name."""
        tid = a.object_id.pt.thread_id if a.object_kind == _OF_THREAD else ABSENT
        time_ns = self._time(a.timestamp)
        domain = self.writer.word(a.domain) if a.domain else ABSENT
        if a.flags_ & _MARK:
            text = self.writer.word(a.name or "")
            return "nvtx_mark", {"start": time_ns, "tid": tid, "text": text, "domain": domain, "category": 0}
        if a.flags_ & _BEGIN:
            self.open_markers[a.id] = (time_ns, tid, self.writer.word(a.name or ""), domain)
            return None
        begun = self.open_markers.pop(a.id, None) if a.flags_ & _END else None
        return None if begun is None else ("nvtx_range", _range(begun, time_ns, tid))

    def _still_open(self) -> None:
        rows = [self.writer.packed("nvtx_range", _range(begun, 0, ABSENT)) for begun in self.open_markers.values()]
        self.writer.add("nvtx_range", rows)


def _range(begun: tuple[int, int, int, int], end: int, end_tid: int) -> dict[str, int]:
    start, tid, text, domain = begun
    across = end_tid not in {tid, ABSENT}
    return {
        "start": start, "end": end, "tid": tid, "endTid": end_tid if across else ABSENT, "text": text,
        "domain": domain, "category": 0, "type": int(across),
    }  # fmt: skip


def _free(folder: Path) -> Path:
    """A name in the folder that is not taken."""
    stem = f"python-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError("output-unwritable", f"the folder cannot be made: {error.strerror}", "name another") from error
    number = 0
    while (path := folder / f"{stem}{f'-{number}' if number else ''}{SUFFIX}").exists():
        number += 1
    return path
