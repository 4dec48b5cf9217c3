"""What the devices ran, each row with its category, sub-key, launching call and the section it was run for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nvprof_tools.attribution.categories import BUSY
from nvprof_tools.attribution.engine import Layer
from nvprof_tools.model.trace import Trace
from nvprof_tools.timeline.columns import classify, ints, names
from nvprof_tools.timeline.intervals import Ints
from nvprof_tools.timeline.lanes import Lanes

UPLOAD_KINDS = frozenset({"HtoD", "UVM-HtoD", "HtoA"})
DOWNLOAD_KINDS = frozenset({"DtoH", "UVM-DtoH", "AtoH"})
GRAPH_STAGE = "graph"


@dataclass(frozen=True)
class Work:
    """Device work, kernels first: ``category`` indexes ``BUSY``; ``detail`` indexes ``details`` (−1: none): a kernel's
    stage or a copy's host memory; ``call`` is the row of ``api_calls`` (−1: unlaunched); ``section`` −1: nobody's;
    ``name`` indexes ``names``."""

    start: Ints
    end: Ints
    device: Ints
    process: Ints
    category: Ints
    detail: Ints
    details: list[str]
    call: Ints
    section: Ints
    name: Ints
    names: list[str]
    kernels: int

    def __len__(self) -> int:
        return len(self.start)

    def owned(self, section: Ints) -> Work:
        """The same work with sections filled in."""
        return Work(**{**self.__dict__, "section": section})


def gather(trace: Trace, stage: Ints, stages: list[str]) -> Work:
    """All device work of a trace, sections unknown. ``stage[k]`` is kernel ``k``'s row of ``stages`` (−1: none)."""
    parts: list[tuple[str, Ints, Ints, Ints]] = []
    details = list(dict.fromkeys([*stages, GRAPH_STAGE]))
    words: list[str] = []

    def named(code: Ints, labels: list[str]) -> Ints:
        base = len(words)
        words.extend(labels)
        return np.where(code >= 0, code + base, -1)

    kernels = trace["kernels"]
    code, labels = names(kernels, "name")
    parts.append(("kernels", np.zeros(len(kernels), np.int64), stage, named(code, labels)))
    graphs = trace["graphs"]
    parts.append(
        (
            "graphs",
            np.zeros(len(graphs), np.int64),
            np.full(len(graphs), details.index(GRAPH_STAGE)),
            named(np.zeros(len(graphs), np.int64), ["CUDA graph"]),
        )
    )
    copies = trace["copies"]
    kind, kinds = names(copies, "kind")
    category = classify(kind, kinds, _copy_category)
    source, target = names(copies, "source_memory"), names(copies, "target_memory")
    memory = np.full(len(copies), -1, np.int64)
    for (codes, labels), wanted in ((source, BUSY.index("upload")), (target, BUSY.index("download"))):
        base = {word: _index(details, word) for word in labels}
        host = classify(codes, labels, lambda word, base=base: base[word])  # type: ignore[misc]
        memory = np.where(category == wanted, host, memory)
    parts.append(("copies", category, memory, named(kind, kinds)))
    memsets = trace["memsets"]
    parts.append(
        (
            "memsets",
            np.full(len(memsets), BUSY.index("memset")),
            np.full(len(memsets), -1, np.int64),
            named(np.zeros(len(memsets), np.int64), ["memset"]),
        )
    )

    def column(name: str) -> Ints:
        return np.concatenate([ints(trace[table], name) for table, *_ in parts])

    start = column("start_ns")
    return Work(
        start,
        column("end_ns"),
        column("device"),
        column("process"),
        np.concatenate([p[1] for p in parts]).astype(np.int64),
        np.concatenate([p[2] for p in parts]).astype(np.int64),
        details,
        column("api_call"),
        np.full(len(start), -1, np.int64),
        np.concatenate([p[3] for p in parts]).astype(np.int64),
        words,
        len(kernels),
    )


def device_of_sections(work: Work, count: int) -> Ints:
    """The device each section's work ran on: the one with most of its kernels, else of its copies; −1 for none."""
    device = np.full(count, -1, np.int64)
    for of_kind in (work.category > 0, work.category == 0):
        rows = np.flatnonzero(of_kind & (work.section >= 0))
        width = int(work.device.max(initial=0)) + 1
        seen = np.bincount(work.section[rows] * width + work.device[rows], minlength=count * width)
        seen = seen.reshape(count, width) if count else seen.reshape(0, width)
        has = seen.sum(axis=1) > 0
        device[has] = seen[has].argmax(axis=1)
    return device


def busy_layers(lanes: Lanes, work: Work, lane: Ints) -> list[Layer]:
    """A layer a busy category and sub-key, in order of precedence; rows with ``lane`` −1 count nowhere.

    Where kernels of several stages overlap, the stage that the pipeline file names first counts; a kernel of no stage
    counts last.
    """
    layers = []
    details = tuple(work.details)
    for code, category in enumerate(BUSY):
        rows = np.flatnonzero((work.category == code) & (lane >= 0))
        seen = np.unique(work.detail[rows]).tolist()
        for detail in sorted(seen, key=lambda d: (d < 0, d)):
            mine = rows[work.detail[rows] == detail]
            spans = lanes.place(lane[mine], work.start[mine], work.end[mine])
            layers.append(Layer(category, spans, np.full(len(spans), detail, np.int64), details))
    return layers


def _copy_category(kind: str) -> int:
    if kind in UPLOAD_KINDS:
        return BUSY.index("upload")
    return BUSY.index("download") if kind in DOWNLOAD_KINDS else BUSY.index("copy")


def _index(words: list[str], word: str) -> int:
    if word not in words:
        words.append(word)
    return words.index(word)
