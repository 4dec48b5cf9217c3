"""One table of caps on what an untrusted input may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nvprof_tools.errors import UsageError

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Limits:
    """Caps; a breach raises ``SourceError`` with the slug ``limit-…`` and names the cap.

    Units stand in the names. The defaults hold a damaged or hostile file under 5 s and 1 GiB while leaving
    room for honest traces of tens of millions of events.
    """

    file_bytes: int = 64 * GIB
    table_rows: int = 200_000_000
    tables: int = 1_000
    columns_per_table: int = 256
    string_bytes: int = 64 * MIB
    distinct_strings: int = 20_000_000
    check_seconds: float = 5.0
    read_seconds: float = 600.0
    log_bytes: int = 2 * GIB
    log_line_bytes: int = 64 * 1024
    json_depth: int = 64
    memory_bytes: int | None = None
    """Of the whole process while it reads and attributes; null: what there is."""


DEFAULT_LIMITS = Limits()

KEYS: Final = {
    "seconds": "read_seconds",
    "check-seconds": "check_seconds",
    "file": "file_bytes",
    "rows": "table_rows",
    "tables": "tables",
    "columns": "columns_per_table",
    "string": "string_bytes",
    "strings": "distinct_strings",
    "memory": "memory_bytes",
    "log": "log_bytes",
    "log-line": "log_line_bytes",
}
"""What ``--limits`` calls each cap. Every error that a cap raises has its slug begin with ``limit-``."""

_UNITS: Final = {"KiB": 1024, "MiB": MIB, "GiB": GIB}


def parse_limits(text: str) -> Limits:
    """The defaults with what ``KEY=N,…`` changes; N may end in KiB, MiB or GiB where it counts bytes.

    :raises UsageError: ``limits-malformed``.
    """
    changed: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, _, value = part.partition("=")
        if key not in KEYS:
            raise _malformed(f"there is no limit {key[:40]!r}")
        name = KEYS[key]
        unit = next((u for u in _UNITS if value.endswith(u) and name.endswith("_bytes")), "")
        digits = value.removesuffix(unit)
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 15 and int(digits) > 0):
            raise _malformed(f"limit {key} is no whole number over zero: {value[:40]!r}")
        number = int(digits) * _UNITS.get(unit, 1)
        changed[name] = float(number) if name.endswith("_seconds") else number
    return replace(DEFAULT_LIMITS, **changed)  # type: ignore[arg-type]


def _malformed(what: str) -> UsageError:
    return UsageError("limits-malformed", what, "write KEY=N,… (sizes as 8GiB) with the keys " + ", ".join(KEYS))
