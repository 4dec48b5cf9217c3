"""Which profiled launches stand for which launches of a trace.

Kernels are matched kind by kind: a kind is one kernel in one shape (grid and block). Of two names the strictest
spelling that both tools share decides: the raw symbol, then the demangled name from strict to lenient
(:func:`~nvprof_tools.model.kernel_names.spellings`), then, where one tool gives no more, the base name. A lenient
spelling that fits several kernels of one shape decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nvprof_tools.model.counters import BLOCK, GRID, CounterTable
from nvprof_tools.model.kernel_names import base_name, spellings
from nvprof_tools.timeline.columns import ints, names
from nvprof_tools.timeline.intervals import Index, Ints

Shape = tuple[int, ...]
BASE_LEVEL = 4
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
        columns = [names(table, column) for column in (name_column, "signature", "mangled")]
        shape = [ints(table, column) for column in (*GRID, *BLOCK)]
        numbers = [*(codes for codes, _ in columns), *shape]
        first, inverse = distinct_rows(numbers)
        kinds = []
        for row in zip(*(column[first].tolist() for column in numbers), strict=True):
            words = [None if code < 0 else text[code] for code, (_, text) in zip(row, columns, strict=False)]
            size = tuple(row[3:])
            kinds.append(Kind(words[0], words[1], words[2], None if min(size) < 0 else size))
        return Kinds(kinds, inverse)


def distinct_rows(columns: Sequence[Ints]) -> tuple[Index, Index]:
    """``(first row of each distinct combination, each row's combination)``: columns are packed into one number a row,
    which sorts many times faster than rows of columns do."""
    packed = np.zeros(len(columns[0]), np.int64)
    span = 1
    for column in columns:
        if not len(column):
            break
        low, high = int(column.min()), int(column.max())
        if span * (high - low + 1) >= 2**62:
            # What is packed so far takes fewer numbers than rows once numbered anew; the column may as well.
            packed = np.unique(packed, return_inverse=True)[1].reshape(-1).astype(np.int64)
            column = np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64)  # noqa: PLW2901
            span, low, high = int(packed.max()) + 1, 0, int(column.max())
        packed = packed * (high - low + 1) + (column - low)
        span *= high - low + 1
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1).astype(np.intp)


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
