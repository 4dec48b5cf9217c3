"""The lanes of the timeline: who did what when, from the segments of the answer and the events of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.attribution import Attribution, PartitionView
from nvprof_tools.model.trace import Trace
from nvprof_tools.report.columns import distinct, integers, words
from nvprof_tools.report.detail import Events
from nvprof_tools.report.figures import largest_first, stage_totals
from nvprof_tools.report.packing import outermost, pack
from nvprof_tools.report.palette import EXTRA_COLOURS, colour_of
from nvprof_tools.report.words import BUSY

Ints = npt.NDArray[np.int64]
ROWS_A_LANE = 4
DEVICES = 16
WORKERS = 16
_FAR = 2**63 - 2
"""Neither a time nor the difference of two may pass what 64 bits hold."""
SECTION_COLOURS = ("#4d7fa8", "#8fb3d1")
"""By turns, so that neighbours can be told apart."""
COPY_CLASS = {"HtoD": "upload", "DtoH": "download"}


class Index:
    """Strings numbered in order of first use."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._place: dict[str, int] = {}

    def __call__(self, value: str) -> int:
        place = self._place.setdefault(value, len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return place

    def many(self, values: Sequence[str]) -> Ints:
        """The numbers of several strings."""
        return np.array([self(v) for v in values], np.int64)


@dataclass(frozen=True)
class Lane:
    """One row of the timeline: disjoint events, what they are evidence of, and the row's label."""

    group: str
    label: str
    evidence: str
    events: Events


@dataclass
class Timeline:
    """All lanes, the tables their events index (names, classes), and the range they show, ns."""

    start_ns: int
    end_ns: int
    names: Index = field(default_factory=Index)
    lanes: list[Lane] = field(default_factory=list)
    rows: int | None = ROWS_A_LANE
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def class_of(self, label: str, colour: str) -> int:
        """The number of a class: what the legend calls a colour."""
        return self._numbers.setdefault((label, colour), len(self._numbers))

    @property
    def classes(self) -> list[tuple[str, str]]:
        """(label, colour) by number."""
        return list(self._numbers)

    def add(self, group: str, label: str, evidence: str, start: Ints, end: Ints, name: Ints, kind: Ints) -> None:
        """One lane, or several rows of it where events overlap; what lies outside the shown range is cut off."""
        low, high = np.maximum(start, self.start_ns), np.minimum(end, self.end_ns)
        keep = (high > low) | ((start == end) & (start >= self.start_ns) & (start <= self.end_ns))
        order = np.lexsort((-high[keep], low[keep]))
        low, high, name, kind = (column[keep][order] for column in (low, high, name, kind))
        row = pack(low, high, self.rows)
        for k in range(int(row.max(initial=-1)) + 1):
            pick = row == k
            text = label if k == 0 else f"{label} ({k + 1})"
            self.lanes.append(Lane(group, text, evidence, Events.single(low[pick], high[pick], name[pick], kind[pick])))
        if (row < 0).any():
            crowd = _union(
                low[row < 0], high[row < 0], self.names("several at once"), self.class_of("several", "#5b5b5b")
            )
            self.lanes.append(Lane(group, f"{label} (more)", evidence, crowd))


def _union(start: Ints, end: Ints, name: int, kind: int) -> Events:
    """Overlapping events as the stretches they cover."""
    first = np.flatnonzero(np.concatenate([[True], start[1:] >= np.maximum.accumulate(end)[:-1]]))
    low, high = start[first], np.maximum.reduceat(end, first)
    count = np.diff(np.append(first, len(start)))
    return Events(low, high, np.full(len(low), name), np.full(len(low), kind), count, high - low)


def build(a: Attribution, trace: Trace | None, rows: int | None = ROWS_A_LANE, calls: bool = True) -> Timeline:
    """The timeline of a report; no lane is made for what was not measured.

    :param rows: rows a lane may have where its events overlap; what does not fit is drawn as one stretch. Null: any.
    :param calls: also the program's CUDA calls.
    """
    start, end = _range(a, trace)
    t = Timeline(start, end, rows=rows)
    for view in a.devices[:DEVICES]:
        _device(t, a, trace, view.device)
    for device, worker in _workers(a)[:WORKERS]:
        _worker(t, a, device, worker)
    _activities(t, a)
    if trace is not None and calls:
        _calls(t, trace)
    return t


def _range(a: Attribution, trace: Trace | None) -> tuple[int, int]:
    """The window, and what of sections and their preparation lies near it."""
    low, high = a.window.start_ns, a.window.end_ns
    wall = max(high - low, 1)
    for p in a.partitions:
        if p.start_ns is not None and p.end_ns is not None:
            low, high = min(low, p.start_ns), max(high, p.end_ns)
    if len(a.activities):
        low = min(low, int(integers(a.activities, "start_ns").min()))
        high = max(high, int(integers(a.activities, "end_ns").max()))
    if trace is not None and trace.session.end_ns is not None:
        high = max(min(high, trace.session.end_ns), a.window.end_ns)
    low = max(low, a.window.start_ns - 2 * wall, -_FAR)
    high = min(max(high, low + 1), a.window.end_ns + 2 * wall, low + _FAR // 2, _FAR)
    return low, max(high, low + 1)


def _device(t: Timeline, a: Attribution, trace: Trace | None, device: int) -> None:
    segments = a.device_segments.filter(pa.compute.equal(a.device_segments.column("device"), device))
    start, end = integers(segments, "start_ns"), integers(segments, "end_ns")
    category, category_words = words(segments, "category")
    detail, detail_words = words(segments, "detail")
    group = f"GPU {device}"
    is_kernel = category == (category_words.index("kernel") if "kernel" in category_words else -2)
    stage_classes = _stage_classes(t, a, detail_words, np.unique(detail[is_kernel]))
    if trace is None or not _kernels(t, trace, device, group, start, np.where(is_kernel, detail, -1), stage_classes):
        pick = is_kernel
        names = np.append(t.names.many(detail_words), t.names("kernel"))
        t.add(
            group,
            f"{group} kernels",
            "KERNEL",
            start[pick],
            end[pick],
            names[detail[pick]],
            stage_classes[detail[pick]],
        )
    if trace is None or not _copies(t, trace, device, group):
        _by_category(
            t, segments, group, f"{group} copies", "MEMCPY, MEMSET", [c for c in category_words if c in BUSY[1:]]
        )
    idle = [c for c in category_words if c not in BUSY]
    _by_category(t, segments, group, f"{group} idle", "device view", idle)
    _holder(t, a, segments, group)


def _stage_classes(t: Timeline, a: Attribution, known: Sequence[str], used: Ints) -> Ints:
    """The class of each stage by its number; of no stage at -1, the last place."""
    order = [name for name, _ in largest_first(stage_totals(a))]
    out = np.full(len(known) + 1, t.class_of("kernel", colour_of("kernel")), np.int64)
    for i in used[used >= 0].tolist():
        place = order.index(known[i]) if known[i] in order else len(order)
        out[i] = t.class_of(f"kernel: {known[i]}", EXTRA_COLOURS[place % len(EXTRA_COLOURS)])
    return out


def _kernels(t: Timeline, trace: Trace, device: int, group: str, at: Ints, stage: Ints, classes: Ints) -> bool:
    """Single kernels (and graphs traced as a whole), coloured by the stage of the device segment they start in."""
    found = False
    for table_name, label in (("kernels", "kernels"), ("graphs", "graphs")):
        table = trace[table_name]
        table = table.filter(pa.compute.equal(table.column("device"), device))
        if not len(table):
            continue
        start, end = integers(table, "start_ns"), integers(table, "end_ns")
        if table_name == "kernels":
            code, known = words(table, "name")
            name = np.append(t.names.many(known), t.names("unnamed kernel"))[code]
        else:
            name = np.full(len(table), t.names("CUDA graph"))
        place = np.searchsorted(at, start, "right") - 1
        inside = stage[np.maximum(place, 0)] if len(at) else np.full(len(start), -1)
        t.add(
            group,
            f"{group} {label}",
            "KERNEL" if label == "kernels" else "GRAPH_TRACE",
            start,
            end,
            name,
            classes[inside],
        )
        found = True
    return found


def _copies(t: Timeline, trace: Trace, device: int, group: str) -> bool:
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    copies, sets = (trace[n].filter(pa.compute.equal(trace[n].column("device"), device)) for n in ("copies", "memsets"))
    if len(copies):
        code, known = words(copies, "kind")
        source, memories = words(copies, "source_memory")
        kinds = [COPY_CLASS.get(k, "copy") for k in known]
        classes = np.array([*(t.class_of(k, colour_of(k)) for k in kinds), t.class_of("copy", colour_of("copy"))])
        unique, back = distinct(code, source)
        texts = [(known[k] if k >= 0 else "copy") + (f" from {memories[m]}" if m >= 0 else "") for k, m in unique]
        named = t.names.many(texts)[back]
        parts.append((integers(copies, "start_ns"), integers(copies, "end_ns"), named, classes[code]))
    if len(sets):
        n = len(sets)
        kind = t.class_of("memset", colour_of("memset"))
        parts.append(
            (integers(sets, "start_ns"), integers(sets, "end_ns"), np.full(n, t.names("memset")), np.full(n, kind))
        )
    if not parts:
        return False
    start, end, name, kind_of = (np.concatenate([p[i] for p in parts]) for i in range(4))
    t.add(group, f"{group} copies", "MEMCPY, MEMSET", start, end, name, kind_of)
    return True


def _by_category(
    t: Timeline, segments: pa.Table, group: str, label: str, evidence: str, wanted: Sequence[str], blocker: bool = False
) -> None:
    """Segments of the wanted categories, named by their detail."""
    category, known = words(segments, "category")
    pick = np.isin(category, [i for i, c in enumerate(known) if c in set(wanted)])
    if not pick.any():
        return
    classes = np.array([t.class_of(c, colour_of(c)) for c in known])
    detail, details = words(segments, "detail")
    blocked, blockers = words(segments, "blocker") if blocker else (np.full(len(segments), -1, np.int64), [])
    unique, back = distinct(category[pick], detail[pick], blocked[pick])
    texts = []
    for c, d, b in unique:
        text = known[c] if d < 0 else f"{known[c]}: {details[d]}"
        texts.append(text if b < 0 else f"{text}, waits in the driver for {blockers[b]}")
    name = t.names.many(texts)[back]
    t.add(
        group,
        label,
        evidence,
        integers(segments, "start_ns")[pick],
        integers(segments, "end_ns")[pick],
        name,
        classes[category[pick]],
    )


def _holder(t: Timeline, a: Attribution, segments: pa.Table, group: str) -> None:
    """Runs of segments that one section is in charge of or owns: who holds the GPU."""
    section = integers(segments, "section")
    if not (section >= 0).any():
        return
    start, end = integers(segments, "start_ns"), integers(segments, "end_ns")
    first = np.flatnonzero(np.concatenate([[True], section[1:] != section[:-1]]))
    last = np.append(first[1:], len(section)) - 1
    named = {p.section: _section_name(p) for p in a.partitions if p.section is not None}
    pick = section[first] >= 0
    texts = [named.get(s, f"section {s}") for s in section[first][pick].tolist()]
    kinds = [t.class_of("section", SECTION_COLOURS[s % 2]) for s in section[first][pick].tolist()]
    t.add(
        group,
        f"{group} in charge",
        "device view",
        start[first][pick],
        end[last][pick],
        t.names.many(texts),
        np.array(kinds, np.int64),
    )


def _workers(a: Attribution) -> list[tuple[int | None, int | None]]:
    seen = {(p.device, p.worker) for p in a.partitions if p.start_ns is not None}
    return sorted(seen, key=lambda dw: tuple(-1 if v is None else v for v in dw))


def _worker(t: Timeline, a: Attribution, device: int | None, worker: int | None) -> None:
    mine = [p for p in a.partitions if (p.device, p.worker) == (device, worker) and p.start_ns is not None]
    group = "sections" if worker is None else f"worker {worker}"
    if device is not None and len(a.devices) > 1:
        group += f" on GPU {device}"
    for label, low, high, evidence in (
        ("log brackets", "bracket_start_ns", "bracket_end_ns", "LOG"),
        ("sections", "start_ns", "end_ns", "sections"),
    ):
        rows = [(getattr(p, low), getattr(p, high), p) for p in mine]
        known = [(s, e, p) for s, e, p in rows if s is not None and e is not None]
        if known:
            kinds = [t.class_of("section", SECTION_COLOURS[i % 2]) for i in range(len(known))]
            names = [_section_name(p) for _, _, p in known]
            start, end = (np.array([row[i] for row in known], np.int64) for i in (0, 1))
            t.add(group, f"{group}: {label}", evidence, start, end, t.names.many(names), np.array(kinds, np.int64))
    ids = [p.section for p in mine if p.section is not None]
    segments = a.section_segments.filter(
        pa.compute.is_in(a.section_segments.column("section"), pa.array(ids, pa.int32()))
    )
    _by_category(
        t, segments, group, f"{group}: what they do", "section view", words(segments, "category")[1], blocker=True
    )


def _section_name(p: PartitionView) -> str:
    return work_name(p.job, p.partition) + (" (open)" if p.open else "") + (" (cold)" if p.cold else "")


def work_name(job: str | None, partition: int | None) -> str:
    """Partition first: job ids are long, and a narrow rectangle shows only a name's start."""
    parts = ([] if partition is None else [f"p{partition}"]) + ([] if job is None else [job])
    return " of ".join(parts) if parts else "unnamed"


def _activities(t: Timeline, a: Attribution) -> None:
    """What the log or ranges say beside sections, a lane a kind: synthesis, queued."""
    table = a.activities
    if not len(table):
        return
    kind, kinds = words(table, "kind")
    job, jobs = words(table, "job")
    partition = integers(table, "partition")
    evidence, sources = words(table, "evidence")
    start, end = integers(table, "start_ns"), integers(table, "end_ns")
    for k, label in enumerate(kinds):
        pick = kind == k
        if not pick.any():
            continue
        texts = [
            work_name(jobs[j] if j >= 0 else None, p if p >= 0 else None) if j >= 0 or p >= 0 else label
            for j, p in zip(job[pick].tolist(), partition[pick].tolist(), strict=True)
        ]
        shade = t.class_of(label, {"synthesis": "#cc79a7", "queued": "#e69f00"}.get(label, "#8a8a2a"))
        source = sources[int(evidence[pick][0])] if evidence[pick][0] >= 0 else ""
        t.add("pipeline", label, source, start[pick], end[pick], t.names.many(texts), np.full(int(pick.sum()), shade))


def _calls(t: Timeline, trace: Trace) -> None:
    """CUDA calls, a row for threads that do not live at the same time; calls inside calls are left out."""
    table = trace["api_calls"]
    if not len(table):
        return
    thread = integers(table, "thread")
    start, end = integers(table, "start_ns"), integers(table, "end_ns")
    code, known = words(table, "name")
    name = np.append(t.names.many(known), t.names("unnamed call"))[code]
    order = np.lexsort((-end, start, thread))
    lives = []
    for rows in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1):
        top = rows[outermost(start[rows], end[rows])]
        lives.append((int(start[top[0]]), int(end[top].max()), top))
    lives.sort(key=lambda life: life[:2])
    row = pack(np.array([life[0] for life in lives], np.int64), np.array([life[1] for life in lives], np.int64), 8)
    shade = t.class_of("CUDA call", "#6a4cb0")
    shown = 1
    for k in range(int(row.max(initial=-1)) + 1):
        pick = np.concatenate([life[2] for life, r in zip(lives, row.tolist(), strict=True) if r == k])
        before = len(t.lanes)
        t.add("host", f"CUDA calls {shown}", "RUNTIME", start[pick], end[pick], name[pick], np.full(len(pick), shade))
        shown += len(t.lanes) > before
