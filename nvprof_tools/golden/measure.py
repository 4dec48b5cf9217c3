"""One run as numbers to compare: from an attribution, or from a log alone.

Cold partitions are the first one of each worker, whose calls find an idle device and untouched memory. A run of three
proofs or more can spare its whole first proof and does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from nvprof_tools.attribution.categories import CATEGORIES
from nvprof_tools.errors import SourceError
from nvprof_tools.model.attribution import Attribution, PartitionView
from nvprof_tools.model.comparison import RunFacts
from nvprof_tools.model.trace import LogRun, Trace

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MS = 1_000_000
SPARING_PROOFS = 3
"""From so many proofs on the whole first one is left out of the steady part."""

SETUP_FACTS: Final = (
    "driver_version",
    "cuda_version",
    "cuda_graph_trace",
    "gpu_memory_usage",
    "gpu_metrics_hz",
    "os_threshold_ns",
)
"""Facts about a capture that may explain a change of figures."""


@dataclass(frozen=True)
class Measured:
    """One run. ``columns`` maps a measure to ns a partition (in order of start), ``cold`` flags the cold ones.

    ``wall_ns`` spans the first start to the last end; ``increments`` are the times between the steady completions.
    ``ladder`` maps rungs to fractions, ``device`` categories of the device view to ns over the run.
    """

    facts: RunFacts
    wall_ns: int
    columns: Mapping[str, Floats]
    cold: Bools
    increments: Floats
    ladder: Mapping[str, float | None] = field(default_factory=dict)
    device: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """How many proofs the wall holds; partitions where proofs are not known."""
        return self.facts.proofs if self.facts.proofs is not None else float(len(self.cold))

    @property
    def per_unit(self) -> int:
        """Partitions a proof; 1 where proofs are not known."""
        return self.facts.partitions_per_proof or 1


def from_log(run: LogRun, label: str, pipeline: str | None, kind: str = "log") -> Measured:
    """A run from its log alone: brackets, synthesis.

    :raises SourceError: ``run-without-partitions``: no partition has both ends of its bracket.
    """
    rows = run.partitions
    start, end, began, made, sent, picked = (
        _stamps(rows.column(f"{name}_ms").to_pylist())
        for name in ("gpu_start", "gpu_end", "synth_start", "synth_end", "sent", "picked")
    )
    worker = rows.column("worker").to_pylist()
    job = rows.column("job").to_pylist()
    whole = np.flatnonzero(~np.isnan(start) & ~np.isnan(end))
    if len(whole) == 0:
        raise _nothing("the log holds no partition with both ends of its bracket")
    order = whole[np.lexsort((end[whole], start[whole]))]
    jobs = [job[i] for i in order.tolist()]
    workers = {worker[i] for i in order.tolist() if worker[i] is not None}
    cold = _cold(jobs, len(workers) or _overlap(start[order], end[order]))
    columns = {"gpu_bracket": end[order] - start[order]}
    synthesis = made[order] - began[order]
    if not np.isnan(synthesis).any():
        columns["synthesis"] = synthesis
    queue = picked[order] - sent[order]
    device = {} if np.isnan(queue).any() else {"queue": int(queue.sum())}
    facts = _facts(label, kind, pipeline, jobs, cold, len(workers) or None, _median_count(job))
    return Measured(
        facts,
        int(end[order].max() - start[order].min()),
        columns,
        cold,
        _increments(start[order].min(), end[order], cold),
        {},
        device,
    )


def from_attribution(a: Attribution, trace: Trace | None, label: str, kind: str = "trace") -> Measured:
    """A run from its attribution: sections and their categories, the ladder, the device view.

    :raises SourceError: ``run-without-partitions``: no whole section lies in the window.
    """
    sections = [(p.start_ns, p.end_ns, p) for p in a.partitions if p.start_ns is not None and p.end_ns is not None]
    chosen = a.window.source == "option"
    whole = [row for row in sections if not row[2].open and (not chosen or _inside(row[0], row[1], a))]
    whole.sort(key=lambda row: row[:2])
    if not whole:
        raise _nothing("no whole section lies in the window")
    start = np.array([row[0] for row in whole], np.float64)
    end = np.array([row[1] for row in whole], np.float64)
    partitions = [row[2] for row in whole]
    jobs = [p.job for p in partitions]
    workers = {(p.device, p.worker) for p in partitions if p.worker is not None}
    cold = _cold(jobs, len(workers) or _overlap(start, end))
    opened = float(a.window.start_ns)
    if chosen and any(row[0] < a.window.start_ns - MS for row in sections):
        cold[:] = False  # the window opens on a run under way: on the completion before its own first one
        opened = max([opened, *(e for s, e, _ in sections if s < a.window.start_ns - MS and e < end.min())])
    wall = int(end.max() - opened) if chosen else a.window.wall_ns
    columns = {"section": end - start}
    for name in _category_order(partitions):
        columns[name] = np.array([p.categories.get(name, 0) for p in partitions], np.float64)
    ladder = _mean_ladder(a)
    device: dict[str, int] = {}
    for view in a.devices:
        for category, length in view.categories.items():
            device[category] = device.get(category, 0) + length
    facts = _facts(label, kind, a.pipeline, jobs, cold, len(workers) or None, _partitions_a_proof(a))
    facts = _with_trace(facts, a, trace, None if chosen else len(whole))
    return Measured(facts, wall, columns, cold, _increments(opened, end, cold), ladder, device)


def brackets_of(a: Attribution, label: str, kind: str = "trace") -> Measured:
    """A run from the brackets that its attribution took from the log: what can be held against a log alone.

    :raises SourceError: ``run-without-partitions``: there was no log.
    """
    rows = [p for p in a.partitions if p.bracket_start_ns is not None and p.bracket_end_ns is not None]
    if not rows:
        raise _nothing("the trace has no log, and so no brackets")
    rows.sort(key=lambda p: (p.bracket_start_ns or 0, p.bracket_end_ns or 0))
    start = np.array([p.bracket_start_ns for p in rows], np.float64)
    end = np.array([p.bracket_end_ns for p in rows], np.float64)
    workers = {(p.device, p.worker) for p in rows if p.worker is not None}
    jobs = [p.job for p in rows]
    cold = _cold(jobs, len(workers) or _overlap(start, end))
    facts = _facts(label, kind, a.pipeline, jobs, cold, len(workers) or None, _partitions_a_proof(a))
    wall = int(end.max() - start.min())
    return Measured(facts, wall, {"gpu_bracket": end - start}, cold, _increments(start.min(), end, cold))


def _facts(
    label: str,
    kind: str,
    pipeline: str | None,
    jobs: Sequence[str | None],
    cold: Bools,
    workers: int | None,
    per_proof: int | None,
) -> RunFacts:
    proofs = len(jobs) / per_proof if per_proof else None
    return RunFacts(label, kind, pipeline, proofs, int((~cold).sum()), int(cold.sum()), per_proof, workers)


def _with_trace(facts: RunFacts, a: Attribution, trace: Trace | None, sections: int | None) -> RunFacts:
    devices = tuple(sorted(view.name or "unknown GPU" for view in a.devices))
    setup: dict[str, str] = {}
    if a.inputs.trace is not None:
        setup["source"] = a.inputs.trace.kind
        if a.inputs.trace.version is not None:
            setup["profiler version"] = a.inputs.trace.version
        if a.inputs.trace.schema_version is not None:
            setup["export schema"] = a.inputs.trace.schema_version
    if trace is None:
        return replace(facts, devices=devices, setup=setup)
    setup |= {name: trace.session.facts[name] for name in SETUP_FACTS if name in trace.session.facts}
    clocks = sorted({str(hz) for hz in trace["devices"].column("clock_hz").to_pylist() if hz is not None})
    if clocks:
        setup["maximum SM clock (Hz)"] = ", ".join(clocks)
    return replace(
        facts,
        devices=devices,
        setup=setup,
        measured=trace.measured,
        kernels_per_partition=None if sections is None else len(trace["kernels"]) / sections,
        upload_bytes_per_partition=None if sections is None else _uploaded(trace) / sections,
    )


def _inside(start: int, end: int, a: Attribution) -> bool:
    """Whether a section lies in the window, give or take the millisecond that a log's stamps leave open."""
    return start >= a.window.start_ns - MS and end <= a.window.end_ns + MS


def _uploaded(trace: Trace) -> int:
    table = trace["copies"]
    kinds = np.array(table.column("kind").to_pylist(), dtype=object)
    sizes = table.column("bytes").to_numpy(zero_copy_only=False)
    return int(sizes[kinds == "HtoD"].sum()) if len(table) else 0


def _category_order(partitions: Sequence[PartitionView]) -> list[str]:
    seen = {name for p in partitions for name, length in p.categories.items() if length}
    return [c for c in CATEGORIES if c in seen] + sorted(seen - set(CATEGORIES))


def _mean_ladder(a: Attribution) -> dict[str, float | None]:
    """Each rung's mean over the devices it was measured on, in the ladder's order."""
    rungs: dict[str, list[float]] = {}
    for rung in a.ladder:
        known = rungs.setdefault(rung.rung, [])
        if rung.fraction is not None:
            known.append(rung.fraction)
    return {name: sum(values) / len(values) if values else None for name, values in rungs.items()}


def _cold(jobs: Sequence[str | None], workers: int) -> Bools:
    """Flags of the cold partitions, in order of start."""
    cold = np.zeros(len(jobs), np.bool_)
    cold[: min(max(workers, 1), max(len(jobs) - 2, 0))] = True
    named = {job for job in jobs if job is not None}
    if len(named) >= SPARING_PROOFS and jobs[0] is not None:
        cold |= np.array([job == jobs[0] for job in jobs])
    return cold


def _overlap(start: Floats, end: Floats) -> int:
    """The largest number of intervals open at once: how many workers there must be."""
    times = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start)), -np.ones(len(end))])
    order = np.lexsort((steps, times))
    return int(np.cumsum(steps[order]).max()) if len(start) else 0


def _increments(opened: float, end: Floats, cold: Bools) -> Floats:
    """Times between completions, one a steady partition: from the last cold completion on, or from the opening."""
    ends = np.append(opened, np.sort(end))
    return np.asarray(np.diff(ends[int(cold.sum()) :]))


def _partitions_a_proof(a: Attribution) -> int | None:
    """As the log counts them, whatever part of it the capture holds; null where jobs have no names."""
    counts = [j.partitions for j in a.jobs if j.job is not None and j.partitions]
    return int(np.median(counts)) if counts else None


def _median_count(jobs: Sequence[str | None]) -> int | None:
    counts = Counter(job for job in jobs if job is not None)
    return int(np.median(list(counts.values()))) if counts else None


def _stamps(values: Sequence[int | None]) -> Floats:
    return np.array([np.nan if v is None else v * MS for v in values], np.float64)


def _nothing(message: str) -> SourceError:
    return SourceError(
        "run-without-partitions", message, "compare runs whose log or trace holds at least one whole partition"
    )
