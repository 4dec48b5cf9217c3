"""What has become of each run: one small JSON file a run, written last, so that a batch can go on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nvprof_tools.files.atomic import write_text
from nvprof_tools.fleet.runs import Run

FORMAT = 1
FOLDER = "runs"


@dataclass(frozen=True)
class RunResult:
    """A run that was attributed (``summary``), or why it was not (``slug``, ``message``, ``hint``)."""

    name: str
    node: str
    identity: str
    summary: Mapping[str, Any] | None
    slug: str | None = None
    message: str | None = None
    hint: str | None = None

    @property
    def done(self) -> bool:
        """Whether there are rows of it in the dataset."""
        return self.summary is not None


def identity(run: Run, options: Mapping[str, Any]) -> str:
    """What the rows of a run depend on: its files as they are now, and how they are asked for."""
    facts: list[Any] = [FORMAT, sorted((key, value) for key, value in options.items() if key != "cache")]
    for path in (run.trace, run.log):
        status = path.stat() if path is not None and path.exists() else None
        facts.append(None if status is None else [str(path), status.st_size, status.st_mtime_ns])
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def place(out: Path, name: str) -> Path:
    """Where a run's record lies."""
    return out / FOLDER / f"{flat_name(name)}.json"


def flat_name(name: str) -> str:
    """A run's name as one name of a file or folder: parts are joined by ``~``, which no part holds."""
    return name.replace("/", "~")


def write(out: Path, outcome: RunResult) -> None:
    """Keep what became of a run."""
    path = place(out, outcome.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"format": FORMAT, **asdict(outcome)}, indent=1, sort_keys=True) + "\n")


def read(out: Path, name: str) -> RunResult | None:
    """What became of a run; null when nothing did, or its record cannot be read."""
    try:
        kept = json.loads(place(out, name).read_text("utf-8"))
        if not isinstance(kept, dict) or kept.pop("format", None) != FORMAT or kept.get("name") != name:
            return None
        return RunResult(**kept)
    except (OSError, ValueError, TypeError):
        return None
