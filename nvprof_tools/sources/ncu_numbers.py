"""Numbers as a command line prints them in any locale, read without asking the locale of this machine.

``1,698.25``, ``1.698,25``, ``1 698,25``, ``1'698.25`` and ``1698.25`` are one number; ``117.344`` may be two. Which
mark is the decimal one is decided once for a whole page, from all its cells: a mark that stands twice in a number
groups digits, and so does one followed by exactly three digits, since the profiler prints two decimals or six, never
three.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import Bools, flat, to_numpy

_SPACES = "['’\u00a0\u202f\u2009 ]"  # digit grouping marks that are no decimal mark anywhere
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
_NOT_A_NUMBER = r"^[+-]?(?i:nan(?:\([a-z0-9]*\))?|inf(?:inity)?)$"
_NO_DATA = r"^(?:\(!\)\s*)?(?i:n/a|no data|)$"


@dataclass
class Marks:
    """Evidence for either mark, over any number of pages' cells: how often each must be the decimal or grouping one."""

    decimal_point: int = 0
    decimal_comma: int = 0
    ambiguous: int = 0

    def observe(self, cells: pa.Array) -> None:
        """Count what these cells tell; null and non-numeric cells tell nothing."""
        cells = _without_spaces(cells)
        for mark, other, sign in ((".", ",", "decimal_point"), (",", ".", "decimal_comma")):
            m, o = f"[{mark}]", f"[{other}]"
            body = rf"[+-]?[0-9]{{1,3}}(?:{o}[0-9]{{3}})*"
            # Both marks, or one that cannot group digits: not followed by three of them, or after a zero or four.
            sure = rf"^(?:{body}{m}(?:[0-9]{{1,2}}|[0-9]{{4,}})|[+-]?0{m}[0-9]+|[+-]?[0-9]{{4,}}{m}[0-9]+)"
            both = rf"^[+-]?[0-9]{{1,3}}(?:{o}[0-9]{{3}})+{m}[0-9]+"
            twice = rf"^[+-]?[0-9]{{1,3}}(?:{o}[0-9]{{3}}){{2,}}$"
            found = sum(_count(cells, pattern) for pattern in (rf"{sure}(?:[eE][+-]?[0-9]+)?$", f"{both}$", twice))
            setattr(self, sign, getattr(self, sign) + found)
        self.ambiguous += _count(cells, r"^[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}$")

    @property
    def comma(self) -> bool:
        """Whether the comma is the decimal mark."""
        if self.decimal_comma == self.decimal_point:
            # Nothing to go by but lone groups of three: both marks group then, and the point is the usual decimal.
            return False
        return self.decimal_comma > self.decimal_point

    @property
    def guessed(self) -> bool:
        """Whether there are numbers that only a rule of thumb reads."""
        return self.ambiguous > 0 and self.decimal_comma == self.decimal_point

    @property
    def conflicting(self) -> int:
        """Cells that contradict the choice."""
        return min(self.decimal_comma, self.decimal_point)


@dataclass(frozen=True)
class Parsed:
    """Cells read as numbers: ``value`` is NaN unless ``number``; ``nan``: printed as not a number or infinite;
    ``empty``: no data; what is none of the three is text."""

    value: npt.NDArray[np.float64]
    number: Bools
    nan: Bools
    empty: Bools


def parse(cells: pa.Array, marks: Marks) -> Parsed:
    """Read cells (strings, nullable) with the page's marks."""
    text = pc.utf8_trim_whitespace(cells)
    plain = _without_spaces(cells)
    group, decimal = (".", ",") if marks.comma else (",", ".")
    grouped = pc.match_substring_regex(
        plain, rf"^[+-]?[0-9]{{1,3}}(?:[{group}][0-9]{{2,3}})*[{group}][0-9]{{3}}(?:[{decimal}]|$)"
    )
    plain = pc.if_else(grouped, pc.replace_substring(plain, group, ""), plain)
    if marks.guessed:
        lone = pc.match_substring_regex(plain, r"^[+-]?[1-9][0-9]{0,2}[.][0-9]{3}$")
        plain = pc.if_else(lone, pc.replace_substring(plain, ".", ""), plain)
    elif decimal == ",":
        plain = pc.if_else(pc.match_substring_regex(plain, r"^[^.]*$"), pc.replace_substring(plain, ",", "."), plain)
    number = pc.fill_null(pc.match_substring_regex(plain, _NUMBER), False)
    value = pc.cast(pc.if_else(number, plain, None), pa.float64())
    found = _bools(number)
    out = np.full(len(cells), np.nan)
    have = _bools(value.is_valid())
    out[have] = np.asarray(to_numpy(value), np.float64)[have]
    return Parsed(
        out,
        found & np.isfinite(out),
        _bools(pc.match_substring_regex(text, _NOT_A_NUMBER)) | (found & ~np.isfinite(out)),
        _bools(pc.match_substring_regex(text, _NO_DATA)) | _bools(cells.is_null()),
    )


def _without_spaces(cells: pa.Array) -> pa.Array:
    text = pc.utf8_trim_whitespace(cells)
    grouped = pc.match_substring_regex(text, rf"^[+-]?[0-9]{{1,3}}(?:{_SPACES}[0-9]{{3}})+(?:[.,][0-9]*)?$")
    return pc.if_else(grouped, pc.replace_substring_regex(text, _SPACES, ""), text)


def _bools(mask: pa.Array) -> Bools:
    filled = flat(pc.fill_null(mask, False))
    return np.asarray(to_numpy(filled), np.bool_).copy()


def _count(cells: pa.Array, pattern: str) -> int:
    return int(np.count_nonzero(_bools(pc.match_substring_regex(cells, pattern))))
