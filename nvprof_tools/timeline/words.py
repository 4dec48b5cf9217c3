"""String ids to dictionary-encoded names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import flat, from_numpy, ints, strings, to_numpy, validity
from nvprof_tools.timeline.ids import Codes, factorise

UNNAMED = ""


def canonical(codes: Codes, words: pa.Array) -> pa.DictionaryArray:
    """``words[codes]`` with repeats merged, unused words dropped and the rest sorted; a code below 0 is null.

    The same rows so have the same array whatever order they were read in.
    """
    given = codes >= 0
    count = np.bincount(codes[given], minlength=len(words)) if given.any() else np.zeros(len(words), np.int64)
    used = np.flatnonzero(count)
    merged = words.take(from_numpy(used)).dictionary_encode()
    order = to_numpy(pc.sort_indices(merged.dictionary)).astype(np.int64)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    table = np.zeros(len(words) + 1, np.int32)
    table[used] = rank[to_numpy(merged.indices)] if len(used) else 0
    indices = table[np.where(given, codes, 0)].astype(np.int32)
    return pa.DictionaryArray.from_arrays(from_numpy(indices, given), merged.dictionary.take(from_numpy(order)))


def from_text(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """A string column as names; null stays null."""
    return canonical(*factorise(column))


class Words:
    """The string table of one export."""

    def __init__(self, table: pa.Table) -> None:
        ids = ints(table["id"])
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._words = flat(table["value"]).take(from_numpy(order))

    def places(self, column: pa.Array | pa.ChunkedArray) -> tuple[Codes, pa.Array]:
        """Codes and words of a column of string ids; −1 where null, or where no string has the id."""
        codes, distinct = factorise(column)
        wanted = ints(distinct)
        at = np.searchsorted(self._ids, wanted)
        inside = np.minimum(at, max(len(self._ids) - 1, 0))
        found = (self._ids[inside] == wanted) if len(self._ids) else np.zeros(len(wanted), np.bool_)
        words = self._words.take(from_numpy(inside[found])) if len(self._ids) else strings([])
        renumber = np.full(len(wanted) + 1, -1, np.int32)
        renumber[:-1][found] = np.arange(int(np.count_nonzero(found)), dtype=np.int32)
        full = validity(words)
        if not full.all():
            renumber[:-1][found] = np.where(full, renumber[:-1][found], -1)
        return renumber[codes], words

    def names(self, column: pa.Array | pa.ChunkedArray, default: str | None = None) -> pa.DictionaryArray:
        """Names of a column of string ids; ``default`` (null) where there is none."""
        codes, words = self.places(column)
        return canonical(*with_default(codes, words, default))

    def text(self, string_id: int) -> str | None:
        """One string."""
        at = int(np.searchsorted(self._ids, string_id))
        if at < len(self._ids) and self._ids[at] == string_id:
            value = self._words[at].as_py()
            return None if value is None else str(value)
        return None


def with_default(codes: Codes, words: pa.Array, default: str | None) -> tuple[Codes, pa.Array]:
    """The same with ``default`` where the code is below 0."""
    if default is None or (codes >= 0).all():
        return codes, words
    return np.where(codes < 0, np.int32(len(words)), codes), pa.concat_arrays([words, strings([default])])
