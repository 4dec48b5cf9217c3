"""What every renderer is: a name, the suffixes it answers to, and one method that writes bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Protocol

from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.trace import Trace


@dataclass(frozen=True)
class Report:
    """What is rendered: the answer, and the trace it was made of where the renderer draws single events.

    ``trace`` is null when only the attribution is at hand (a golden); renderers then leave the events out.
    """

    attribution: Attribution
    trace: Trace | None = None


class Renderer(Protocol):
    """Writes one report. The same report gives the same bytes, whatever the time, place or hash seed."""

    def render(self, report: Report, out: BinaryIO) -> None:
        """Write the whole document to ``out``; never close it."""
        ...
