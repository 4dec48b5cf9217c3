"""How far a figure may move before a check fails: exact unless a tolerance names it.

A tolerance is ``{ns = 1000}``, ``{share = "2 %"}`` (of the expected figure), ``{points = 0.2}`` (percentage points of
a fraction), or several of them: the widest decides. It is filed under a path such as ``partitions.*.categories.cpu``
(``*`` stands for any part of a path), and the last one that fits a figure counts. ``"ignore"`` leaves figures out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from nvprof_tools.errors import UsageError

IGNORE: Final = "ignore"
_KEYS: Final = frozenset({"ns", "share", "points"})


@dataclass(frozen=True)
class Tolerance:
    """``ns``: absolute, in the figure's unit; ``share``: of the expected figure; ``points``: percentage points.

    ``written`` is the form it has in the file.
    """

    written: Any
    ns: float = 0.0
    share: float = 0.0
    points: float = 0.0
    ignore: bool = False

    def holds(self, expected: Any, actual: Any) -> bool:
        """Whether ``actual`` may stand where ``expected`` stood. A figure that is there never stands for a null."""
        if self.ignore:
            return True
        if _is_number(expected) and _is_number(actual):
            return bool(abs(actual - expected) <= max(self.ns, self.share * abs(expected), self.points / 100))
        return bool(expected == actual)


EXACT: Final = Tolerance(None)


def tolerance_of(path: str, value: Any) -> Tolerance:
    """Read one tolerance.

    :raises UsageError: ``golden-tolerance``.
    """
    if value == IGNORE:
        return Tolerance(value, ignore=True)
    if isinstance(value, Mapping) and value and set(value) <= _KEYS:
        try:
            given = {name: _number(name, number) for name, number in value.items()}
            return Tolerance(value, given.get("ns", 0.0), given.get("share", 0.0), given.get("points", 0.0))
        except ValueError:
            pass
    raise UsageError(
        "golden-tolerance",
        f"the tolerance of {path!r} cannot be read",
        'write { ns = 1000 }, { share = "2 %" }, { points = 0.2 } or "ignore"',
    )


def for_path(tolerances: Mapping[str, Tolerance], path: str) -> Tolerance:
    """The last tolerance whose pattern fits; exact where none does."""
    found = EXACT
    for pattern, tolerance in tolerances.items():
        if fnmatchcase(path, pattern):
            found = tolerance
    return found


def _number(name: str, value: Any) -> float:
    if isinstance(value, str) and name == "share":
        if not value.strip().endswith("%"):
            raise ValueError
        number = float(value.strip().removesuffix("%")) / 100
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    else:
        raise ValueError
    if not 0 <= number < float("inf"):
        raise ValueError
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
