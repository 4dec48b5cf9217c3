"""Two attribution documents held against each other, figure by figure, and the difference as a person reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from nvprof_tools.golden import segments
from nvprof_tools.golden.tolerance import Tolerance, for_path
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import Trace

Document: TypeAlias = Mapping[str, Any]
Name = Callable[[Mapping[str, Any]], str]

_NAMES: Final[Mapping[str, Name]] = {
    "ladder": lambda x: f"{x.get('device')}.{x.get('rung')}",
    "devices": lambda x: str(x.get("device")),
    "partitions": lambda x: f"{x.get('job')}/{x.get('partition')}" if x.get("job") else f"at {x.get('start_ns')}",
    "jobs": lambda x: str(x.get("job")),
    "overheads": lambda x: str(x.get("category")),
    "latency": lambda x: str(x.get("stage")),
    "memory": lambda x: str(x.get("device")),
    "counters": lambda x: f"{x.get('kernel')}.{x.get('stage')}",
    "quality": lambda x: f"{x.get('slug')} {str(x.get('message')).partition(':')[0]}",
}
"""How the entries of a list are told apart; others by their place."""

_SPARSE: Final = frozenset({"categories", "stages", "blockers", "driver_locks", "details", "drop"})
"""Maps in which what is missing is zero."""

_LEFT_OUT: Final = ("schema", "inputs")
"""What a document says of its inputs: the digests of the golden's own files, checked as such."""

MOST_LINES: Final = 60


@dataclass(frozen=True)
class Deviation:
    """One figure that is not as recorded; ``path`` runs from the document's key to the figure, dots between."""

    path: tuple[str, ...]
    expected: Any
    actual: Any


@dataclass(frozen=True)
class Diff:
    """Every deviation in the order of the document, and the first segment that parts, as a sentence."""

    deviations: tuple[Deviation, ...]
    segment: str | None

    @property
    def same(self) -> bool:
        """Whether everything is as recorded, within the tolerances."""
        return not self.deviations and self.segment is None

    def lines(self, most: int = MOST_LINES) -> list[str]:
        """For a person: one line an object, the figures that moved most first."""
        shown = list(_objects(self.deviations))
        out = shown[:most]
        if len(shown) > most:
            out.append(f"… and {len(shown) - most} more lines")
        if self.segment is not None:
            out.append(self.segment)
        return out


def compare(expected: Document, actual: Document, tolerances: Mapping[str, Tolerance]) -> tuple[Deviation, ...]:
    """Deviations beyond the tolerances."""
    found: list[Deviation] = []
    for key in dict.fromkeys((*expected, *actual)):
        if key not in _LEFT_OUT:
            found.extend(_walk((key,), expected.get(key), actual.get(key), tolerances))
    return tuple(found)


def first_segment(expected: tuple[pa.Table, pa.Table], found: Attribution) -> str | None:
    """The first segment of the devices, else of the sections, that is not as recorded; null: all are."""
    names = {p.section: f"{p.job}/{p.partition}" for p in found.partitions if p.section is not None and p.job}
    for table, actual, lane in zip(
        expected, (found.device_segments, found.section_segments), ("device", "section"), strict=True
    ):
        parting = segments.first_difference(table, actual)
        if parting is not None:
            before, after = (_segment(row, lane, names) for row in parting)
            return f"first differing {lane} segment: expected {before}, found {after}"
    return None


def event_lines(expected: Trace, actual: Trace) -> Iterator[str]:
    """The first event of each table that is not as recorded: a change may lie where no figure shows it."""
    for name, table in expected.tables.items():
        parting = segments.first_difference(table, actual[name])
        if parting is not None:
            before, after = ("no more rows" if row is None else _event(row) for row in parting)
            yield f"no figure moved, but table {name} did: expected {before}, found {after}"


def _event(row: Mapping[str, Any]) -> str:
    shown = [key for key in ("name", "start_ns", "end_ns", "time_ns", "thread", "device", "value") if key in row]
    return ", ".join(f"{key} {row[key]}" for key in shown) or "another row"


def _walk(
    path: tuple[str, ...], expected: Any, actual: Any, tolerances: Mapping[str, Tolerance]
) -> Iterator[Deviation]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        missing = 0 if path[-1] in _SPARSE or (len(path) > 1 and path[-2] in _SPARSE) else None
        for key in dict.fromkeys((*expected, *actual)):
            yield from _walk((*path, str(key)), expected.get(key, missing), actual.get(key, missing), tolerances)
    elif isinstance(expected, list) and isinstance(actual, list):
        before, after = _named(path[-1], expected), _named(path[-1], actual)
        for key in dict.fromkeys((*before, *after)):
            yield from _walk((*path, key), before.get(key), after.get(key), tolerances)
    elif expected != actual and not for_path(tolerances, ".".join(path)).holds(expected, actual):
        yield Deviation(path, expected, actual)


def _named(key: str, entries: Sequence[Any]) -> dict[str, Any]:
    """Entries by name; one whose name was taken gets its place added."""
    out: dict[str, Any] = {}
    name = _NAMES.get(key)
    for i, entry in enumerate(entries):
        label = name(entry) if name is not None and isinstance(entry, Mapping) else str(i)
        out[label if label not in out else f"{label}#{i}"] = entry
    return out


def _objects(deviations: Sequence[Deviation]) -> Iterator[str]:
    groups: dict[str, list[tuple[float, str]]] = {}
    for d in deviations:
        owner, figure = _split(d.path)
        groups.setdefault(owner, []).append((_size(d), f"{figure} {_moved(d)}"))
    for owner, figures in groups.items():
        figures.sort(key=lambda pair: -pair[0])
        more = f", and {len(figures) - 8} more" if len(figures) > 8 else ""
        yield f"{owner}: " + ", ".join(text for _, text in figures[:8]) + more


def _split(path: tuple[str, ...]) -> tuple[str, str]:
    """The object a figure belongs to, and the figure's name in it."""
    if path[0] in _NAMES and len(path) > 1:
        rest = [part for part in path[2:] if part not in {"categories", "stages"}]
        return f"{path[0].removesuffix('s') if path[0] != 'jobs' else 'job'} {path[1]}", ".".join(rest) or "entry"
    return path[0], ".".join(path[1:]) or "value"


def _size(d: Deviation) -> float:
    numbers = [x for x in (d.expected, d.actual) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    return abs(numbers[1] - numbers[0]) if len(numbers) == 2 else float("inf")


def _moved(d: Deviation) -> str:
    both = all(isinstance(x, int) and not isinstance(x, bool) for x in (d.expected, d.actual))
    if both and (d.path[-1].endswith("_ns") or any(part in _SPARSE for part in d.path)):
        return f"{d.expected / 1e6:,.6f} -> {d.actual / 1e6:,.6f} ms ({(d.actual - d.expected) / 1e6:+,.6f})"
    return f"{_short(d.expected)} -> {_short(d.actual)}"


def _short(value: Any) -> str:
    text = "absent" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 120 else f"{text[:117]}…"


def _segment(row: Mapping[str, Any] | None, lane: str, names: Mapping[int, str]) -> str:
    if row is None:
        return "no more segments"
    where = names.get(row[lane], f"{lane} {row[lane]}") if lane == "section" else f"{lane} {row[lane]}"
    what = row["category"] + (f" ({row['detail']})" if row["detail"] is not None else "")
    extra = row.get("blocker")
    what += f" on a driver lock, blocker {extra}" if extra is not None else ""
    return f"{what} of {where} from {row['start_ns']:,} to {row['end_ns']:,} ns"
