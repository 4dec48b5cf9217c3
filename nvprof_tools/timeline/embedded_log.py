"""The pipeline's log where the profiler kept the program's own output.

The output may hold anything, secrets too. Only lines that a pipeline log reader needs leave this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nvprof_tools.model.arrays import ints
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.words import Words

_EVENT = re.compile(r"TIMELINE,|CUZK_TIMING: |CUZK_NTT_H: ")
_WHOLE = re.compile(r"^(?:\x1b\[[0-9;]*m)*(?:TIMELINE,\d+,[A-Z_0-9]+,|CUZK_TIMING: |CUZK_NTT_H: )")
_ANCHOR = re.compile(r"^(?:\x1b\[[0-9;]*m|\s)*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*.{0,200}?starting (?:cuzk )?engine")

_ANCHOR_TEXT = re.compile(r"starting (?:cuzk )?engine")


def embedded_log(raw: RawTables, words: Words) -> str | None:
    """TIMELINE, timing and anchor lines of every stored stream, anchors first; None where there is none."""
    table = raw.read("ProcessStreams")
    if table is None:
        return None
    found = log_lines([words.text(content) or "" for content in ints(table["contentId"]).tolist()])
    return found if found is not None and "TIMELINE," in found else None


def log_lines(streams: Iterable[str]) -> str | None:
    """What may leave of these outputs: event, timing and anchor lines, and the line after a torn one."""
    anchors: list[str] = []
    events: list[str] = []
    for text in streams:
        if not ("TIMELINE," in text or "CUZK_" in text or _ANCHOR_TEXT.search(text)):
            continue
        torn = False
        for line in text.splitlines():
            anchor = _ANCHOR.match(line)
            if anchor is not None:
                # What follows the anchor's own words is the program's business.
                anchors.append(anchor[0])
            elif _EVENT.search(line):
                events.append(line)
                torn = _WHOLE.match(line) is None or "TIMELINE," in line[9:]
            elif torn:
                events.append(line)
                torn = False
    return "\n".join([*anchors, *events, ""]) if events or anchors else None
