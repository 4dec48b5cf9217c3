"""What a capture says of itself in JSON: the layout of its rows, facts, notices. Untrusted until checked here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import MIB, Limits
from nvprof_tools.sources.capture_blocks import AGAIN, FIRST_EVENT

TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")
MOST_JSON = MIB
MOST_ROW_BYTES = 4096
MOST_TABLES = 256
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)


@dataclass(frozen=True)
class Layout:
    """Rows of one kind: ``dtype`` is a structured type of fixed size, little-endian."""

    name: str
    dtype: np.dtype[np.void]


def parsed(data: bytes, depth: int) -> Any:
    """JSON of limited size and depth; null where it is none."""
    if len(data) > MOST_JSON or data.count(b"{") + data.count(b"[") > 100_000 or _depth(data) > depth:
        return None
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _depth(data: bytes) -> int:
    """How deep brackets nest, at most: those inside texts count too."""
    opened = np.frombuffer(data, np.uint8)
    step = np.isin(opened, (0x5B, 0x7B)).astype(np.int32) - np.isin(opened, (0x5D, 0x7D)).astype(np.int32)
    return int(np.cumsum(step).max(initial=0))


def layouts(data: bytes, limits: Limits) -> dict[int, Layout]:
    """Kind → layout, by the schema block.

    :raises SourceError: ``capture-damaged``: the schema cannot be used.
    """
    said = parsed(data, limits.json_depth)
    tables = said.get("tables") if isinstance(said, dict) else None
    if not isinstance(tables, list) or not 0 < len(tables) <= MOST_TABLES:
        raise _damaged("it lists no tables")
    found: dict[int, Layout] = {}
    for table in tables:
        kind, layout = _layout(table, limits)
        if kind in found:
            raise _damaged("it lists a table twice")
        found[kind] = layout
    return found


def _layout(table: object, limits: Limits) -> tuple[int, Layout]:
    if not isinstance(table, dict):
        raise _damaged("a table is no object")
    kind, name, size, fields = (table.get(key) for key in ("kind", "name", "row_bytes", "fields"))
    if not _whole(kind, FIRST_EVENT, 0xFFFF) or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _damaged("a table has no number or name")
    if not _whole(size, 1, MOST_ROW_BYTES) or not isinstance(fields, list):
        raise _damaged(f"table {name} has no size or fields")
    if not 0 < len(fields) <= limits.columns_per_table:
        raise _damaged(f"table {name} has no or too many fields")
    names, formats, offsets = [], [], []
    for field in fields:
        label, form, offset = (
            (field.get(key) for key in ("name", "type", "offset")) if isinstance(field, dict) else ("",) * 3
        )
        if not isinstance(label, str) or not _NAME.fullmatch(label) or label in names or form not in TYPES:
            raise _damaged(f"a field of table {name} is not understood")
        if not _whole(offset, 0, size - int(form[1])):
            raise _damaged(f"field {label} lies outside the rows of table {name}")
        names.append(label)
        formats.append(f"<{form}")
        offsets.append(offset)
    described = {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
    return kind, Layout(name, np.dtype(described))  # type: ignore[call-overload]


def _whole(value: object, low: int, high: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _damaged(why: str) -> SourceError:
    return SourceError("capture-damaged", f"the capture's schema cannot be used: {why}", AGAIN)


def whole(said: Mapping[str, Any], name: str) -> int | None:
    """A count of ``said``; null where it is not one."""
    value = said.get(name)
    return value if _whole(value, 0, (1 << 63) - 1) else None


def text(said: Mapping[str, Any], name: str, most: int = 300) -> str | None:
    """One line of ``said``; null where there is none."""
    value = said.get(name)
    if not isinstance(value, str):
        return None
    line = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return line[:most] or None
