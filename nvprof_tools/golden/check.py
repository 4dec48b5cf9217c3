"""Goldens held against what the code at hand makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvprof_tools.errors import InvariantError, SourceError, ToolError
from nvprof_tools.golden import budget, diff, manifest, segments
from nvprof_tools.golden.budget import BudgetLine
from nvprof_tools.golden.diff import Diff
from nvprof_tools.golden.manifest import Manifest
from nvprof_tools.golden.recompute import attributed
from nvprof_tools.golden.record import Forms
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.attribution import DEVICE_SEGMENTS, SECTION_SEGMENTS, Attribution
from nvprof_tools.model.trace import Trace


@dataclass(frozen=True)
class Checked:
    """One golden, checked: the diff and the budget's lines, or the error that kept it from being checked."""

    folder: Path
    diff: Diff | None
    budget: tuple[BudgetLine, ...] = ()
    error: ToolError | None = None

    @property
    def passed(self) -> bool:
        """Nothing deviates and no budget is broken."""
        return self.error is None and self.diff is not None and self.diff.same and all(b.kept for b in self.budget)

    def lines(self) -> list[str]:
        """Why it failed, for a person; empty when it passed."""
        if self.error is not None:
            return [f"{self.error.slug}: {self.error.message}"]
        out = [] if self.diff is None else self.diff.lines()
        return [*out, *(line.message for line in self.budget if not line.kept)]


def check(folder: Path, forms: Forms, limits: Limits = DEFAULT_LIMITS) -> Checked:
    """Check one golden; whatever keeps it from being checked is its failure, and no other golden's."""
    try:
        known = manifest.read(folder)
        manifest.verify(folder, known)
        found, trace = attributed(folder, known, limits)
        return Checked(folder, against(folder, known, found, trace, forms), _budget(folder, found))
    except InvariantError:
        raise
    except ToolError as error:
        return Checked(folder, None, error=error)


def against(folder: Path, known: Manifest, found: Attribution, trace: Trace, forms: Forms) -> Diff:
    """What an attribution has that a golden does not expect.

    :param trace: the golden's own, by whose events its segments are stored.

    With tolerances a segment that parts counts only together with a figure that does.
    """
    expected = _document(folder)
    actual = json.loads(forms.dumps(forms.document(found)))
    deviations = diff.compare(expected, actual, known.tolerances)
    if known.tolerances and not deviations:
        return Diff((), None)
    times = segments.event_times(trace)
    tables = [
        segments.read(folder / name, schema, times)
        for name, schema in zip(manifest.SEGMENTS, (DEVICE_SEGMENTS, SECTION_SEGMENTS), strict=True)
    ]
    return Diff(deviations, diff.first_segment((tables[0], tables[1]), found))


def _document(folder: Path) -> Mapping[str, Any]:
    try:
        with (folder / manifest.EXPECTED).open("rb") as file:
            found = json.loads(file.read())
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError("golden-damaged", "the golden's expected.json cannot be read", manifest.AGAIN) from error
    if not isinstance(found, dict):
        raise SourceError("golden-damaged", "the golden's expected.json is no document", manifest.AGAIN)
    return found


def _budget(folder: Path, found: Attribution) -> tuple[BudgetLine, ...]:
    path = folder / budget.FILE
    return tuple(budget.check_budget(found, path)) if path.is_file() else ()
