"""``attribute --budget``: each line said, and the exit code a script can rely on."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.cli.main import run
from tests.fixture_files import fixture_trace


@pytest.mark.parametrize(("line", "code"), [('host_register = "< 50 %"', 0), ('host_register = "< 1 %"', 1)])
def test_a_budget_is_kept_or_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, code: int) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text(f"[budget]\n{line}\n")
    assert run(["attribute", str(fixture_trace("p9_gw2")), "--budget", str(budget), "-f", "json"]) == code
    said = capsys.readouterr().err
    assert "host_register" in said
    assert ("budget-broken" in said) == (code == 1)
