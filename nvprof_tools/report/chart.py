"""PNG and SVG of the ladder and the overheads, for documents that cannot hold a page. Needs the extra ``plot``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from nvprof_tools.errors import UsageError
from nvprof_tools.files.safe_text import shorten, terminal
from nvprof_tools.model.attribution import Attribution, Rung
from nvprof_tools.report import figures
from nvprof_tools.report.base import Report
from nvprof_tools.report.palette import colour_of
from nvprof_tools.report.paragraph import finding
from nvprof_tools.report.words import BUSY, ms, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OVERHEADS_SHOWN = 18
LADDERS_SHOWN = 4
_INCHES_A_ROW = 0.27
_FIXED = {"svg.hashsalt": "nvprof-tools", "svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 9}


class _Chart:
    """One picture; the two formats differ in how it is written."""

    suffix: Literal["png", "svg"]

    def render(self, report: Report, out: BinaryIO) -> None:
        """Draw and write. The same library versions give the same bytes.

        :raises UsageError: ``plot-extra-missing``.
        """
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise UsageError(
                "plot-extra-missing",
                f"a .{self.suffix} report needs matplotlib, which is not installed",
                "pip install 'nvprof-tools[plot]', or write .html or .md",
            ) from error
        with mpl.rc_context(_FIXED):
            figure = _figure(Figure, report.attribution)
            nothing: dict[str, Any] = {"Date": None, "Creator": None} if self.suffix == "svg" else {"Software": None}
            figure.savefig(out, format=self.suffix, dpi=144, metadata=nothing, facecolor="white")


class PngChart(_Chart):
    """``-o X.png``."""

    suffix = "png"


class SvgChart(_Chart):
    """``-o X.svg``."""

    suffix = "svg"


def _plain(text: str, width: int = 40) -> str:
    """What any font holds, one line."""
    return shorten(terminal(text).encode("ascii", "backslashreplace").decode("ascii"), width)


def _figure(kind: Any, a: Attribution) -> Any:
    ladders = list(figures.by_device(a.ladder).items())[:LADDERS_SHOWN]
    shown = [(device, [r for r in rungs if r.fraction is not None]) for device, rungs in ladders]
    shown = [(device, rungs) for device, rungs in shown if rungs]
    overheads = [o for o in figures.overhead_rows(a) if o.category not in BUSY and o.total_ns][:OVERHEADS_SHOWN]
    rows = [len(rungs) + 1 for _, rungs in shown] + ([len(overheads) + 1] if overheads else [])
    title = textwrap.fill(_plain(finding(a), 400), 96)
    head = 0.35 + 0.22 * (title.count("\n") + 1)
    height = head + 0.65 + 0.7 * max(len(rows) - 1, 0) + _INCHES_A_ROW * max(sum(rows), 1)
    figure = kind(figsize=(10, height))
    figure.text(0.02, 1 - 0.18 / height, title, fontsize=11, fontweight="bold", va="top", parse_math=False)
    if not rows:
        return figure
    axes = figure.subplots(len(rows), 1, height_ratios=rows, squeeze=False)[:, 0]
    for ax, (device, rungs) in zip(axes, shown, strict=False):
        _ladder(ax, a, device, rungs)
    if overheads:
        _overheads(axes[-1], a, overheads)
    top, bottom, between = 1 - (head + 0.2) / height, 0.45 / height, 0.7
    mean = ((top - bottom) * height - between * (len(rows) - 1)) / len(rows)
    figure.subplots_adjust(left=0.17, right=0.97, top=top, bottom=bottom, hspace=between / mean)
    return figure


def _frame(ax: Axes, labels: list[str], title: str) -> None:
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.set_title(title, fontsize=10, loc="left", fontweight="bold", parse_math=False)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#e3e6e9", linewidth=0.8)
    ax.set_axisbelow(True)


def _ladder(ax: Axes, a: Attribution, device: int | None, rungs: list[Rung]) -> None:
    wall = max(a.window.wall_ns, 1)
    for y, rung in enumerate(rungs):
        share = 100 * (rung.fraction or 0)
        ax.barh(y, min(share, 100), color="#7aa6c8" if figures.sampled(rung) else "#0072b2", height=0.72)
        at = min(share, 100)
        for category, length in figures.largest_first(rung.drop):
            width = 100 * length / wall
            ax.barh(y, width, left=at, color=colour_of(category), height=0.36)
            at += width
        listed = ", ".join(f"{_plain(c, 20)} {ms(v)}" for c, v in figures.largest_first(rung.drop)[:2])
        note = percent(rung.fraction) + (f"   lost: {listed} ms" if listed else "")
        ax.text(101.5, y, _plain(note, 72), va="center", fontsize=8, parse_math=False)
    where = "" if device is None or len(a.devices) < 2 else f", GPU {device}"
    _frame(ax, [_plain(r.rung, 20) for r in rungs], f"Utilisation ladder{where}: % of the window")
    ax.set_xlim(0, 160)
    ax.set_xticks(range(0, 101, 20))


def _overheads(ax: Axes, a: Attribution, rows: list[Any]) -> None:
    for y, o in enumerate(rows):
        ax.barh(y, o.total_ns / 1e6, color=colour_of(o.category), height=0.72)
        if o.driver_lock_ns:
            ax.barh(
                y, o.driver_lock_ns / 1e6, color="none", edgecolor="black", hatch="////", height=0.72, linewidth=0.6
            )
        ax.plot([o.device_idle_ns / 1e6] * 2, [y - 0.42, y + 0.42], color="black", linewidth=2)
    title = (
        f"Overheads in {plural(len(figures.inside(a)), 'section')}, ms (hatched: in a driver lock; black: device idle)"
    )
    _frame(ax, [_plain(o.category, 20) for o in rows], title)
    longest = max(max(o.total_ns, o.device_idle_ns) for o in rows) / 1e6
    for y, o in enumerate(rows):
        end = max(o.total_ns, o.device_idle_ns) / 1e6
        ax.text(end + longest * 0.01, y, ms(o.total_ns), va="center", fontsize=8)
    ax.set_xlim(0, longest * 1.1)
