"""``docs/tables.md``: the schemas of the normalised tables, written from ``model.tables`` and ``model.counters``."""

from __future__ import annotations

from nvprof_tools.model.counters import COUNTER_SPECS
from nvprof_tools.model.tables import SPECS, TABLES, TableSpec

_HEAD = """# Normalised tables

Made by `nvprof-tools tables`; do not edit. `nvprof-tools import TRACE -o DIR` writes one file a table.

All times are int64 nanoseconds since the capture's session start; negative times are valid. Intervals are half-open:
`start_ns` is inside, `end_ns` is not. `thread`, `process` and `device` are row numbers of the tables of that name. A
table of no rows may mean that nothing happened or that nothing was measured: the manifest's `measured` tells which.
"""


_COUNTERS = """# Counter tables

What `nvprof_tools.sources.ncu.read_counters` gives of kernel counter reports. A counter's time is that of a
replayed launch: never add it to a trace's. `import` does not write these.
"""


def page(name: str | None = None) -> str | None:
    """All tables as Markdown, or one of them; null for a name that is no table."""
    if name is not None:
        known = {**TABLES, **{spec.name: spec for spec in COUNTER_SPECS}}
        return "\n".join(_table(known[name])) + "\n" if name in known else None
    lines = [_HEAD]
    for spec in SPECS:
        lines += [*_table(spec), ""]
    lines.append(_COUNTERS)
    for spec in COUNTER_SPECS:
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
