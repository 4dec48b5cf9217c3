"""What a reader must know of a counter join: how much it covers, what is missing, and what to run to get it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nvprof_tools.model.attribution import KernelCounters
from nvprof_tools.model.quality import QualityItem, Severity

NAMED = 5
_LONGEST = 80
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Coverage:
    """Figures of a join. ``other_shape``: labels of kernels that were profiled at another grid or block size only."""

    launches: int
    total_ns: int
    matched_launches: int
    matched_ns: int
    exact_launches: int
    kernels: tuple[KernelCounters, ...]
    stages: tuple[KernelCounters, ...]
    other_shape: frozenset[str]
    unused_launches: int
    ambiguous_launches: int


def items(coverage: Coverage) -> list[QualityItem]:
    """The join's quality items."""
    if not coverage.launches:
        return [
            QualityItem(
                "counters-no-kernels",
                Severity.NOTICE,
                1,
                "there is no kernel in the window for the counters to be joined to",
                "capture with -t cuda, or choose another window",
            )
        ]
    out = [_coverage_item(coverage)]
    missing = _missing(coverage.kernels)
    never = [(label, ns) for label, ns in missing if label not in coverage.other_shape]
    other = [(label, ns) for label, ns in missing if label in coverage.other_shape]
    if never:
        out.append(
            QualityItem(
                "counters-missing",
                Severity.NOTICE,
                len(never),
                f"no counters for {_listed(never, coverage.total_ns)}",
                command([label for label, _ in never]),
            )
        )
    if other:
        out.append(
            QualityItem(
                "counters-other-size",
                Severity.NOTICE,
                len(other),
                f"counters at another grid or block size only for {_listed(other, coverage.total_ns)}",
                f"profile the same problem size as the trace: {command([label for label, _ in other])}",
            )
        )
    below = [s for s in coverage.stages if 2 * s.matched_ns < s.total_ns]
    if below:
        shares = ", ".join(f"{_shown(s.stage)} ({_percent(s.matched_ns, s.total_ns)})" for s in below[:NAMED])
        out.append(
            QualityItem(
                "counters-stage-below-half",
                Severity.NOTICE,
                len(below),
                f"counters cover less than half of the kernel time of {shares}{_more(below)}: no bound is named there",
                command([label for label, _ in missing]),
            )
        )
    out += _counter_side(coverage)
    return out


def _coverage_item(coverage: Coverage) -> QualityItem:
    one_to_one = coverage.exact_launches
    by_class = coverage.matched_launches - one_to_one
    how = " and ".join(
        part
        for part in (
            f"{one_to_one:,} launch by launch" if one_to_one else "",
            f"{by_class:,} by kernel and shape" if by_class else "",
        )
        if part
    )
    whole = coverage.matched_ns == coverage.total_ns
    return QualityItem(
        "counters-coverage",
        Severity.INFO if whole else Severity.NOTICE,
        coverage.launches - coverage.matched_launches,
        f"counters cover {_percent(coverage.matched_ns, coverage.total_ns)} of kernel time "
        f"({coverage.matched_launches:,} of {coverage.launches:,} launches, "
        f"{_percent(coverage.matched_launches, coverage.launches)}" + (f"; {how})" if how else ")"),
        "" if whole else "figures of a kernel or stage are means over the part that has counters",
    )


def _counter_side(coverage: Coverage) -> list[QualityItem]:
    out = []
    if coverage.ambiguous_launches:
        out.append(
            QualityItem(
                "counters-ambiguous",
                Severity.NOTICE,
                coverage.ambiguous_launches,
                f"{coverage.ambiguous_launches:,} profiled launches have a name that fits several kernels of one shape",
                "give the .ncu-rep, or print the page with --kernel-name-base demangled",
            )
        )
    if coverage.unused_launches:
        out.append(
            QualityItem(
                "counters-unused",
                Severity.INFO,
                coverage.unused_launches,
                f"{coverage.unused_launches:,} profiled launches match no launch of the trace",
            )
        )
    return out


def _missing(kernels: Iterable[KernelCounters]) -> list[tuple[str, int]]:
    """Kernels by the time without counters, most first."""
    lacking: dict[str, int] = {}
    for row in kernels:
        if row.matched_ns < row.total_ns and row.kernel is not None:
            lacking[row.kernel] = lacking.get(row.kernel, 0) + row.total_ns - row.matched_ns
    return sorted(lacking.items(), key=lambda item: (-item[1], item[0]))


def command(labels: Sequence[str]) -> str:
    """The profiler command that gets counters of these kernels, four launches of each shape.

    Names come from a trace, and people paste commands into a shell: only plain words of them are used.
    """
    patterns = list(dict.fromkeys(p for label in labels[:NAMED] if (p := _pattern(label))))
    chosen = f" --kernel-name-base demangled --kernel-name 'regex:{'|'.join(patterns)}'" if patterns else ""
    return f"ncu --set full --nvtx --filter-mode per-launch-config --launch-count 4{chosen} -o counters PROGRAM"


def _pattern(label: str) -> str:
    base, _, rest = label.partition("<")
    if not _WORD.fullmatch(base):
        return ""
    inner = next((word for word in _WORD.findall(rest) if len(word) > 1), "")
    return f"{base}<.*{inner}" if inner else base


def _listed(kernels: Sequence[tuple[str, int]], total: int) -> str:
    shown = ", ".join(f"{_shown(label)} ({_percent(ns, total)})" for label, ns in kernels[:NAMED])
    return shown + _more(kernels)


def _more(found: Sequence[object]) -> str:
    return f" and {len(found) - NAMED} more" if len(found) > NAMED else ""


def _shown(name: str) -> str:
    clean = "".join(c if c.isprintable() else "\ufffd" for c in name)
    return clean if len(clean) <= _LONGEST else f"{clean[: _LONGEST - 1]}…"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
