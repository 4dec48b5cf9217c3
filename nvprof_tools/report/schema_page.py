"""``docs/tables.md``: the schemas of the normalised tables, written from ``model.tables``."""

from __future__ import annotations

from nvprof_tools.model.tables import SPECS, TABLES, TableSpec

_HEAD = """# Normalised tables

Made by `nvprof-tools tables`; do not edit. `nvprof-tools import TRACE -o DIR` writes one file a table.

All times are int64 nanoseconds since the capture's session start; negative times are valid. Intervals are half-open:
`start_ns` is inside, `end_ns` is not. `thread`, `process` and `device` are row numbers of the tables of that name. A
table of no rows may mean that nothing happened or that nothing was measured: the manifest's `measured` tells which.
"""


def page(name: str | None = None) -> str | None:
    """All tables as Markdown, or one of them; null for a name that is no table."""
    if name is not None:
        return "\n".join(_table(TABLES[name])) + "\n" if name in TABLES else None
    lines = [_HEAD]
    for spec in SPECS:
        lines += [*_table(spec), ""]
    return "\n".join(lines)


def _table(spec: TableSpec) -> list[str]:
    out = [f"## `{spec.name}`", "", f"{spec.meaning}. Sorted by {', '.join(f'`{c}`' for c in spec.sort_by)}.", ""]
    out += ["| column | type | unit | null | meaning |", "|---|---|---|---|---|"]
    for c in spec.columns:
        kind = str(c.type).replace(
            "dictionary<values=string, indices=int32, ordered=0>", "name (dictionary of strings)"
        )
        out.append(f"| `{c.name}` | {kind} | {c.unit} | {'yes' if c.nullable else ''} | {c.meaning} |")
    return out
