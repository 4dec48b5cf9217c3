"""``nvprof-tools doctor``."""

from __future__ import annotations

import click

from nvprof_tools.cli.options import debug_option
from nvprof_tools.errors import EXIT_CHECK_FAILED, EXIT_OK

_MARKS = {"ok": "ok  ", "note": "note", "fail": "FAIL"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@debug_option
def doctor_command(as_json: bool) -> int:
    """Tell what `profile` can do on this machine, and what to do about each lack. Exit code 1: it cannot work here."""
    import json
    from dataclasses import asdict
    from pathlib import Path

    from nvprof_tools.capture.doctor import able, examine
    from nvprof_tools.files.safe_text import terminal

    checks = examine(Path.cwd())
    ready = able(checks)
    if as_json:
        document = {"schema": "nvprof-tools/doctor/1", "ready": ready, "checks": [asdict(check) for check in checks]}
        click.echo(json.dumps(document, indent=1, ensure_ascii=True))
        return EXIT_OK if ready else EXIT_CHECK_FAILED
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(terminal(f"{_MARKS[check.status]}  {check.name:<{width}}  {check.found}"))
        if check.advice and check.status != "ok":
            click.echo(terminal(f"      {'':<{width}}  → {check.advice}"))
    click.echo("profile works here" if ready else "profile cannot work here yet")
    return EXIT_OK if ready else EXIT_CHECK_FAILED
