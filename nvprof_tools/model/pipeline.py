"""What one pipeline calls its events, ranges, calls and kernels: data that a pipeline file states.

A :class:`Pipeline` is plain, frozen data. Names are matched here (`api_category`, `StageRule.matches`), so that every
step reads a pipeline file the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

HoldTo = Literal["last_call", "section_end"]
Launch = Literal["cooperative", "regular"]

ROLES = ("synth_start", "synth_end", "sent", "picked", "gpu_start", "gpu_end")
"""What an event can mean, in the order a partition goes through them. ``<role>_ms`` is its column in the log's
partition table."""


@dataclass(frozen=True)
class LogEvents:
    """Names in the log. Each role may have several event names (releases differ).

    ``partition``, ``worker``, ``gpu_ms``, ``synth_ms``: keys of the detail. ``anchors``: texts that mark the wall-clock
    line of the engine's start. ``timing_tags``: words that start a line (or, after a time stamp, the message) of
    ``key=value`` figures; the first one's names are used as they are, the others' get the tag in front.
    ``completions``: messages, with time stamp, job and partition, that a GPU call is over. ``extra``: further events
    and what they mean; they are kept and shown.
    """

    synth_start: tuple[str, ...]
    synth_end: tuple[str, ...]
    sent: tuple[str, ...]
    picked: tuple[str, ...]
    gpu_start: tuple[str, ...]
    gpu_end: tuple[str, ...]
    partition: tuple[str, ...] = ("partition",)
    worker: tuple[str, ...] = ("worker",)
    gpu_ms: tuple[str, ...] = ("gpu_ms",)
    synth_ms: tuple[str, ...] = ("synth_ms",)
    anchors: tuple[str, ...] = ()
    timing_tags: tuple[str, ...] = ()
    completions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def roles(self) -> Mapping[str, str]:
        """Event name → role, for the events that have one."""
        return {name: role for role in ROLES for name in getattr(self, role)}


@dataclass(frozen=True)
class RangeNames:
    """NVTX range names by meaning; empty: the pipeline has no such range."""

    section: tuple[str, ...] = ()
    mutex_wait: tuple[str, ...] = ()
    barrier_wait: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    synthesis: tuple[str, ...] = ()

    @property
    def all(self) -> frozenset[str]:
        """Every name, for counting how many of a trace's ranges this pipeline explains."""
        return frozenset((*self.section, *self.mutex_wait, *self.barrier_wait, *self.hold, *self.synthesis))


@dataclass(frozen=True)
class InLock:
    """Which of a section's calls run under the GPU mutex, for traces without a hold range.

    ``hold_to``: ``last_call``: held from the earliest call named in ``first`` to the end of the latest one named in
    ``last``, both on the section's caller thread; ``section_end``: held from the end of the lock wait to the end of the
    section. ``pinning_outside``: page pinning and unpinning happen before and after the lock.
    """

    hold_to: HoldTo
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    pinning_outside: bool = False


@dataclass(frozen=True)
class ClockRules:
    """What lies inside a partition's bracket, so that it bounds the offset between the log's clock and the trace's."""

    launches_in_bracket: bool = True
    syncs_in_bracket: bool = True
    section_in_bracket: bool = False
    calls_in_bracket: bool = False


@dataclass(frozen=True)
class StageRule:
    """One way to recognise a kernel stage. The first rule of a pipeline that holds decides.

    ``kernels``: fully matched against the kernel's base name. ``signature``: searched in its demangled signature.
    ``launch``: only kernels launched this way. ``before``/``after``: only launches before (after) the first launch of
    that other stage in the same section (or on the same thread, outside all sections); neither holds where that stage
    is never launched.
    """

    stage: str
    kernels: re.Pattern[str]
    signature: re.Pattern[str] | None = None
    launch: Launch | None = None
    before: str | None = None
    after: str | None = None
    text: str = ""
    """``kernels`` as the file writes it."""

    def matches(self, name: str, signature: str | None, cooperative: bool | None) -> bool:
        """Whether a kernel fits, leaving aside ``before`` and ``after``. What is not known (null) does not fit a
        rule that asks for it."""
        if self.kernels.fullmatch(name) is None:
            return False
        if self.signature is not None and (signature is None or self.signature.search(signature) is None):
            return False
        return self.launch is None or (cooperative is not None and cooperative == (self.launch == "cooperative"))


@dataclass(frozen=True)
class Pipeline:
    """One pipeline file. ``bracket`` names the two log events between which the log says "GPU busy".

    ``api``: category → name patterns of CUDA calls, ``*`` standing for any run of characters. ``builtin``: ships with
    the package.
    """

    name: str
    description: str
    events: LogEvents
    ranges: RangeNames
    in_lock: InLock
    clock: ClockRules
    bracket: tuple[str, str]
    api: Mapping[str, tuple[str, ...]]
    stages: tuple[StageRule, ...]
    workers_per_device: int
    builtin: bool = False

    @property
    def bracket_columns(self) -> tuple[str, str]:
        """The columns of the log's partition table that hold the bracket's start and end."""
        roles = self.events.roles
        return f"{roles[self.bracket[0]]}_ms", f"{roles[self.bracket[1]]}_ms"

    def api_category(self, name: str) -> str | None:
        """Category of a CUDA call (ABI suffixes stripped); null: none, it counts as CPU time of that name.

        A name in full beats every pattern, a longer pattern beats a shorter one, so ``cudaFreeHost`` may be of another
        category than ``cudaFree*`` whatever the order of the file.
        """
        best: tuple[int, int, str] | None = None
        for category, patterns in self.api.items():
            for pattern in patterns:
                if "*" not in pattern:
                    if pattern == name:
                        return category
                elif (best is None or len(pattern) > best[0]) and _wildcard(pattern).fullmatch(name):
                    best = (len(pattern), 0, category)
        return None if best is None else best[2]


def _wildcard(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")))
