"""What a person's own test may ask of a golden: shares, rungs, budgets, in one line each."""

from __future__ import annotations

from pathlib import Path

from nvprof_tools.golden.budget import BudgetLine, figure, limit_of
from nvprof_tools.golden.recompute import recompute
from nvprof_tools.model.attribution import Attribution


class Golden:
    """One golden directory, attributed by the code at hand when first asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: Attribution | None = None

    @property
    def attribution(self) -> Attribution:
        """The whole answer."""
        if self._found is None:
            self._found, _ = recompute(self.folder)
        return self._found

    def share(self, category: str, of: str = "sections") -> float:
        """The category's share of the ``sections``' time or of the ``devices``' window; 0 where it never occurs.

        :raises AssertionError: nothing was measured to take a share of.
        """
        found = self._value(category if of == "sections" else f"device.{category}", "< 100 %")
        if found is None:
            raise AssertionError(f"{self.folder.name}: no {of} to take the share of {category} of")
        return found

    def rung(self, name: str) -> float:
        """A rung of the utilisation ladder, as a fraction.

        :raises AssertionError: it was not measured.
        """
        found = self._value(name, "< 100 %")
        if found is None:
            raise AssertionError(f"{self.folder.name}: {name} was not measured")
        return found

    def assert_share(
        self, category: str, *, below: float | None = None, above: float | None = None, of: str = "sections"
    ) -> None:
        """The category's share (a fraction) lies below and above what is given."""
        self._between(f"share of {category} in the {of}", self.share(category, of), below, above)

    def assert_rung(self, name: str, *, below: float | None = None, above: float | None = None) -> None:
        """A rung of the ladder (a fraction) lies below and above what is given."""
        self._between(name, self.rung(name), below, above)

    def assert_budget(self, subject: str, limit: str) -> None:
        """One line of a budget, as ``budget.toml`` writes it: ``assert_budget("queue", "< 200 ms")``."""
        line = BudgetLine(limit_of(subject, limit), self._value(subject, limit))
        if not line.kept:
            raise AssertionError(f"{self.folder.name}: {line.message}")

    def _value(self, subject: str, limit: str) -> float | None:
        return figure(self.attribution, limit_of(subject, limit))

    def _between(self, what: str, value: float, below: float | None, above: float | None) -> None:
        if below is not None and not value < below:
            raise AssertionError(f"{self.folder.name}: {what} is {value:.2%}, not below {below:.2%}")
        if above is not None and not value > above:
            raise AssertionError(f"{self.folder.name}: {what} is {value:.2%}, not above {above:.2%}")
