"""String ids to dictionary-encoded names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import canonical, flat, from_numpy, ints, strings, validity
from nvprof_tools.timeline.ids import Codes, factorise

UNNAMED = ""


def from_text(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """A string column as names; null stays null."""
    return canonical(*factorise(column))


class Words:
    """The string table of one export."""

    def __init__(self, table: pa.Table) -> None:
        ids = ints(table["id"])
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self.missing: set[int] = set()
        """Ids that were asked for and have no text."""
        self._words = flat(table["value"]).take(from_numpy(order))

    def places(self, column: pa.Array | pa.ChunkedArray) -> tuple[Codes, pa.Array]:
        """Codes and words of a column of string ids; −1 where null, or where no string has the id."""
        codes, distinct = factorise(column)
        wanted = ints(distinct)
        at = np.searchsorted(self._ids, wanted)
        inside = np.minimum(at, max(len(self._ids) - 1, 0))
        found = (self._ids[inside] == wanted) if len(self._ids) else np.zeros(len(wanted), np.bool_)
        words = self._words.take(from_numpy(inside[found])) if len(self._ids) else strings([])
        self.missing.update(wanted[~found].tolist())
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
