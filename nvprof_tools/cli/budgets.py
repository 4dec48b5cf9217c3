"""``attribute --budget FILE``: the lines of a budget on standard error, and a failing exit code for a broken one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nvprof_tools.errors import CheckFailed
from nvprof_tools.files.safe_text import terminal

if TYPE_CHECKING:
    from nvprof_tools.model.attribution import Attribution


def require_budget(found: Attribution, path: Path) -> None:
    """Say how each line fares.

    :raises CheckFailed: ``budget-broken``; :raises UsageError: ``budget-unreadable``, ``budget-invalid``.
    """
    from nvprof_tools.golden.budget import check_budget

    lines = check_budget(found, path)
    for line in lines:
        click.echo(terminal(line.message), err=True)
    broken = [line.limit.subject for line in lines if not line.kept]
    if broken:
        raise CheckFailed(
            "budget-broken",
            f"{len(broken)} of {len(lines)} budget lines broken: {', '.join(broken)}",
            "see the lines above; the report tells what moved",
        )
