"""Which profiled launches stand for which launches of a trace.

Kernels are matched kind by kind: a kind is one kernel in one shape (grid and block). Of two names the strictest
spelling that both tools share decides: the raw symbol, then the demangled name from strict to lenient
(:func:`~nvprof_tools.model.kernel_names.spellings`), then, where one tool gives no more, the base name. A lenient
spelling that fits several kernels of one shape decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nvprof_tools.model.arrays import from_numpy
from nvprof_tools.model.counters import BLOCK, GRID, CounterTable
from nvprof_tools.model.kernel_names import base_name, spellings
from nvprof_tools.timeline.columns import ints, names
from nvprof_tools.timeline.intervals import Index, Ints

Shape = tuple[int, ...]
BASE_LEVEL = 4
_TABLE = 1 << 22
LEVELS = ("symbol", "signature", "without namespaces", "without parameters", "base name")


@dataclass(frozen=True)
class Kind:
    """One kernel in one shape, as one tool names it; a name is null where the tool does not give it."""

    name: str | None
    signature: str | None
    mangled: str | None
    shape: Shape | None

    def spelled(self, level: int) -> str | None:
        """The name at a level of :data:`LEVELS`; null: not at this level."""
        if level == 0:
            return self.mangled
        if level == BASE_LEVEL:
            return self.name or (base_name(self.signature) if self.signature else None)
        return spellings(self.signature)[level - 1] if self.signature else None


@dataclass
class Kinds:
    """Distinct kinds and each launch's one."""

    kinds: list[Kind]
    of_launch: Index

    @staticmethod
    def of(table: pa.Table, name_column: str) -> Kinds:
        """The kinds of a table of launches that has name, signature, mangled, grid and block columns."""
        text_columns = (name_column, "signature", "mangled")
        first, inverse = distinct_rows(
            chain((names(table, column)[0] for column in text_columns), (ints(table, c) for c in (*GRID, *BLOCK)))
        )
        rows = table.take(from_numpy(first)).select([*text_columns, *GRID, *BLOCK]).to_pylist()
        kinds = []
        for row in rows:
            shape = tuple(row[column] for column in (*GRID, *BLOCK))
            known = None not in shape and min(shape) >= 0
            kinds.append(Kind(row[name_column], row["signature"], row["mangled"], shape if known else None))
        return Kinds(kinds, inverse)


def distinct_rows(columns: Iterable[npt.NDArray[np.signedinteger]]) -> tuple[Index, Index]:
    """``(first row of each distinct combination, each row's combination)``.

    Column by column the combinations so far are numbered anew, so that one number a row is all that is held, and looked
    up in a table where the numbers are few: sorting ten million rows of nine columns would take a minute.
    """
    packed: Ints | None = None
    for column in columns:
        codes, count = _numbered(column.astype(np.int64, copy=False))
        packed = codes if packed is None else _numbered(packed * count + codes)[0]
    if packed is None or not len(packed):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    first = np.zeros(int(packed.max()) + 1, np.intp)
    first[packed[::-1]] = np.arange(len(packed) - 1, -1, -1)
    return first, packed


def _numbered(values: Ints) -> tuple[Ints, int]:
    """Values numbered from 0 in their order, and how many there are."""
    if not len(values):
        return values, 1
    low, high = int(values.min()), int(values.max())
    if high - low >= _TABLE:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1).astype(np.int64), len(distinct)
    seen = np.zeros(high - low + 1, np.int64)
    shifted = values - low
    seen[shifted] = 1
    place = np.cumsum(seen) - 1
    return place[shifted], int(place[-1]) + 1


@dataclass
class KindMatch:
    """``sources[t]``: counter kinds that stand for trace kind ``t``; ``level[t]``: how (−1: not matched).

    ``other_shape``: trace kinds whose kernel was profiled, in another shape only. ``ambiguous``: counter kinds whose
    name fits several kernels. ``unused``: counter kinds that stand for nothing.
    """

    sources: list[list[int]]
    level: list[int]
    other_shape: set[int] = field(default_factory=set)
    ambiguous: set[int] = field(default_factory=set)
    unused: set[int] = field(default_factory=set)


def match_kinds(trace: Sequence[Kind], counters: Sequence[Kind]) -> KindMatch:
    """Match kinds of counters to kinds of a trace."""
    found = KindMatch([[] for _ in trace], [-1] * len(trace))
    index = _index(trace)
    claims: dict[int, list[tuple[int, int]]] = {}
    for c, kind in enumerate(counters):
        hits, level = _hits(kind, trace, index, found, c)
        for t in hits:
            claims.setdefault(t, []).append((level, c))
        if not hits:
            found.unused.add(c)
    for t, claim in claims.items():
        best = min(level for level, _ in claim)
        found.level[t] = best
        found.sources[t] = [c for level, c in claim if level == best]
    known = _profiled_names(counters)
    for t, kind in enumerate(trace):
        if found.level[t] < 0 and any((level, kind.spelled(level)) in known for level in range(BASE_LEVEL)):
            found.other_shape.add(t)
    return found


def _index(trace: Sequence[Kind]) -> dict[tuple[int, str, Shape], list[int]]:
    index: dict[tuple[int, str, Shape], list[int]] = {}
    for t, kind in enumerate(trace):
        for level in range(len(LEVELS)):
            word = kind.spelled(level)
            if word is not None and kind.shape is not None:
                index.setdefault((level, word, kind.shape), []).append(t)
    return index


def _hits(
    kind: Kind, trace: Sequence[Kind], index: dict[tuple[int, str, Shape], list[int]], found: KindMatch, number: int
) -> tuple[list[int], int]:
    """Trace kinds a counter kind stands for, and the level that decides."""
    if kind.shape is None:
        return [], -1
    for level in range(len(LEVELS)):
        word = kind.spelled(level)
        if word is None:
            continue
        hits = [t for t in index.get((level, word, kind.shape), []) if _comparable(kind, trace[t], level)]
        if not hits:
            continue
        if len({_identity(trace[t], level) for t in hits}) > 1:
            found.ambiguous.add(number)
            return [], level
        return hits, level
    return [], -1


def _comparable(counter: Kind, traced: Kind, level: int) -> bool:
    """Whether a spelling may decide: not where both have a symbol, and a base name only where one tool has no more."""
    if level > 0 and counter.mangled is not None and traced.mangled is not None:
        return False
    return level < BASE_LEVEL or counter.signature is None or traced.signature is None


def _identity(kind: Kind, level: int) -> str:
    """What must be one kernel for a spelling to decide: the raw symbol, else the strictest spelling there is."""
    stricter = kind.mangled or (spellings(kind.signature)[0] if kind.signature else None)
    return stricter or kind.spelled(level) or ""


def _profiled_names(counters: Sequence[Kind]) -> set[tuple[int, str | None]]:
    return {(level, word) for kind in counters for level in range(BASE_LEVEL) if (word := kind.spelled(level))}


def trace_kinds(table: pa.Table) -> Kinds:
    """Kinds of a trace's kernels."""
    return Kinds.of(table, "name")


def counter_kinds(counters: CounterTable) -> Kinds:
    """Kinds of profiled launches."""
    return Kinds.of(counters.launches, "kernel")
