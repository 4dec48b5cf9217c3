"""One table of caps on what an untrusted input may cost."""

from __future__ import annotations

from dataclasses import dataclass

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


DEFAULT_LIMITS = Limits()
