"""What ``batch`` prints: groups, outliers, failures."""

from __future__ import annotations

from collections.abc import Iterator

from nvprof_tools.fleet.rollup import Group, Outlier, Rollup

MOST_LINES = 20
_UNITS = {"kernel_busy": (100, "%"), "ns_a_partition": (1e-6, " ms"), "wall_ns": (1e-9, " s")}
_WORDS = {"kernel_busy": "kernels busy", "ns_a_partition": "a partition", "wall_ns": "window"}


def lines(rolled: Rollup) -> Iterator[str]:
    """The roll-up in words and small tables."""
    failed = len(rolled.failures)
    yield f"{rolled.runs:,} runs: {rolled.runs - failed:,} attributed, {failed:,} failed"
    for kind in ("node", "day"):
        groups = [group for group in rolled.groups if group.kind == kind]
        if groups:
            yield ""
            yield f"{kind:<24}{'runs':>6}{'failed':>8}{'kernels busy':>14}{'a partition':>14}{'data loss':>11}"
            yield from (_row(group) for group in groups[:MOST_LINES])
            yield from _more(len(groups), "rollup.json has them all")
    if rolled.outliers:
        yield ""
        yield "far from their like:"
        yield from (_outlier(one) for one in rolled.outliers[:MOST_LINES])
        yield from _more(len(rolled.outliers), "rollup.json has them all")
    if rolled.failures:
        yield ""
        yield "failed:"
        for one in rolled.failures[:MOST_LINES]:
            yield f"  {one.name}: {one.slug}: {one.message}"
            if one.hint:
                yield f"    hint: {one.hint}"
        yield from _more(failed, "rollup.json has them all")


def _more(count: int, where: str) -> Iterator[str]:
    if count > MOST_LINES:
        yield f"  … {count - MOST_LINES:,} more; {where}"


def _value(figure: str, value: float | None) -> str:
    if value is None:
        return "not measured"
    scale, unit = _UNITS[figure]
    return f"{value * scale:.2f}{unit}"


def _row(group: Group) -> str:
    return (
        f"{group.name or '(unknown)':<24}{group.runs:>6,}{group.failed:>8,}"
        f"{_value('kernel_busy', group.kernel_busy):>14}{_value('ns_a_partition', group.ns_a_partition):>14}"
        f"{group.data_loss:>11,}"
    )


def _outlier(one: Outlier) -> str:
    value, usual = _value(one.figure, one.value), _value(one.figure, one.median)
    return f"  {one.run}: {_WORDS[one.figure]} {value}, usually {usual}"
