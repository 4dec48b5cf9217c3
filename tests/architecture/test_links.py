"""Links between the pages of the repository lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = sorted(p for p in ROOT.glob("**/*.md") if not {".venv", "build", "node_modules"} & set(p.parts))


def tracked() -> set[Path]:
    """Files under version control; outside a checkout, whatever is there."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {ROOT / name for name in done.stdout.splitlines()} if done.returncode == 0 else set(PAGES)


@pytest.mark.parametrize("page", [p for p in PAGES if p in tracked()], ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [
        t.partition("#")[0] for t in LINK.findall(page.read_text("utf-8")) if not t.startswith(("http", "mailto"))
    ]
    assert [t for t in targets if t and not (page.parent / t).exists()] == []
