"""What the driver shows of each GPU while the program runs: sampled by a thread of ours, never in the program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nvprof_tools.files.atomic import atomic_writer
from nvprof_tools.model.nvml import NVML_SCHEMA

PERIOD_S = 0.1


class Sampler:
    """Samples every GPU that NVML shows, every 100 ms, until told to stop.

    ``missing`` says why nothing is sampled; empty when it is. ``devices`` names the GPUs, ``driver`` is its version.
    """

    def __init__(self, library: Any = None, period_s: float = PERIOD_S) -> None:
        self.missing = ""
        self.devices: list[str] = []
        self.driver: str | None = None
        self._period = period_s
        self._rows: list[dict[str, int | None]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="nvml", daemon=True)
        self._handles: list[Any] = []
        try:
            self._nvml = import_module("pynvml") if library is None else library
        except ImportError:
            self.missing = "the package nvidia-ml-py is not installed: pip install 'nvprof-tools[profile]'"
            return
        try:
            self._nvml.nvmlInit()
            self.driver = _text(self._nvml.nvmlSystemGetDriverVersion())
            self._handles = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
            self.devices = [_text(self._nvml.nvmlDeviceGetName(handle)) for handle in self._handles]
        except self._nvml.NVMLError as error:
            self.missing = f"the driver's management library does not answer: {error}"
            self._handles = []

    def start(self) -> None:
        """Begin to sample, where there is something to sample."""
        if self._handles:
            self._thread.start()

    def stop(self) -> pa.Table:
        """End, and give what was seen (:data:`nvprof_tools.model.nvml.NVML_SCHEMA`)."""
        if self._handles:
            self._stop.set()
            self._thread.join()
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        return pa.Table.from_pylist(self._rows, schema=NVML_SCHEMA)

    def _sample(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            for device, handle in enumerate(self._handles):
                self._rows.append(self._one(device, handle))
            # Late is late: a sample that was missed is not made up for.
            due = max(due + self._period, time.monotonic())
            self._stop.wait(max(due - time.monotonic(), 0))

    def _one(self, device: int, handle: Any) -> dict[str, int | None]:
        nvml = self._nvml
        rates = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or getattr(
            nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", None
        )
        return {
            "time_utc_ns": time.time_ns(),
            "device": device,
            "gpu_pct": None if rates is None else int(rates.gpu),
            "memory_pct": None if rates is None else int(rates.memory),
            "used_bytes": None if memory is None else int(memory.used),
            "sm_mhz": self._ask(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            "power_mw": self._ask(lambda: int(nvml.nvmlDeviceGetPowerUsage(handle))),
            "throttle_reasons": None if reasons is None else self._ask(lambda: int(reasons(handle))),
        }

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Null for what this board or this user is not told."""
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def write(table: pa.Table, path: Path) -> None:
    """As Parquet."""
    with atomic_writer(path) as out:
        pq.write_table(table, out, compression="zstd")


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
