"""Puts torn lines back together, or counts them.

Several writers share one log. One of them writes a TIMELINE line in pieces; another may write a whole line of its own
between two pieces, so the reader sees the head of the first line, the whole second line, a newline, and then the rest::

    TIMELINE,498,GPU_START,CUZK_TIMING: gpu_tid=0 batch_add_ms=650
    7d3c1f7e,worker=0,partition=3

A head that another known line cuts stays *open* until the rest turns up within a few lines. Only a result that is a
whole line beyond doubt is taken; everything else is counted. Nothing is ever guessed from a number that may be cut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nvprof_tools.sources.timeline_grammar import STAMP, TAG, Grammar

WAIT_LINES = 8
"""How many lines the rest of a torn line may be away."""
MAX_OPEN = 16
MAX_CUTS = 512
MAX_RECUTS = 1_000
"""A log with more lines damaged by text of unknown kinds is not worth the search."""

_TAG = TAG.encode()
_STAMP = re.compile(STAMP.encode())
_STAMP_HEAD = re.compile(rb"\d{1,4}|\d{4}-[\d-]{0,5}(?:T[\d:]{0,7})?")
_SHIPPER = re.compile(STAMP.encode() + rb"[0-9.Z:+-]*\s*(?:(?:stdout|stderr) [FP] )?")
"""What a log collector puts before every line: a stamp that says nothing by itself."""
_SOME = re.compile(rb"=Some\((\d{1,9})\)")
_FRACTION = re.compile(rb"=(\d{1,9})(?:\.\d+)?(?:ms)?(?=,|$)")
_PAIR = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*=[^,=\s]*")

Text = tuple[int, bytes]
"""A line number from 1, and a text."""


class Reader(Protocol):
    """One line's text by index from 0, without its newline."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> bytes: ...


@dataclass
class Found:
    """What the repair gives back. ``damaged``: TIMELINE lines that end in a newline and are not whole: see
    :func:`settle`. ``repaired``, ``rejected``, ``rejected_timings`` and ``fragments`` count lines."""

    timeline: list[Text] = field(default_factory=list)
    timings: list[Text] = field(default_factory=list)
    stamped: list[Text] = field(default_factory=list)
    damaged: list[Text] = field(default_factory=list)
    repaired: int = 0
    rejected: int = 0
    rejected_timings: int = 0
    loose: set[int] = field(default_factory=set)
    first_rejected: int | None = None

    def reject(self, line: int) -> None:
        """Counts a TIMELINE line as lost."""
        self.rejected += 1
        self.first_rejected = line if self.first_rejected is None else min(self.first_rejected, line)


@dataclass
class _Open:
    line: int
    text: bytes


class _Repair:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.found = Found()
        self.open: list[_Open] = []
        self.claimed: set[int] = set()

    def unusual(self, line: int, text: bytes) -> None:
        """A line that has a known start somewhere and is not of a plain shape."""
        starts = [match.start() for match in self.grammar.start_re.finditer(text)]
        head = text[: starts[0]] if starts else b""
        if head:
            self._continue(line, head)
        for start, end in pairwise(starts):
            self._push(line, text[start:end])
        if starts:
            self._whole(line, text[starts[-1] :].rstrip())

    def rest(self, line: int, text: bytes) -> None:
        """A line without a known start, while some line is open: is it the rest of one?"""
        for kind in (self._is_event, self._is_timing, self._is_stamped):
            for item in reversed(self.open):
                glued = item.text + text
                if kind(glued) and (text or kind(item.text)):
                    self.open.remove(item)
                    self.claimed.add(line)
                    self._take(item.line, glued)
                    self.found.repaired += kind != self._is_stamped
                    return

    def expire(self, line: int) -> None:
        """Gives up on lines that have been open for too long."""
        for item in [item for item in self.open if line - item.line > WAIT_LINES]:
            self.open.remove(item)
            self._close(item)

    def finish(self) -> None:
        self.expire(2**62)

    def _is_event(self, text: bytes) -> bool:
        return text.startswith(_TAG) and self.grammar.strict(text.rstrip())

    def _is_timing(self, text: bytes) -> bool:
        return self.grammar.timing_line.fullmatch(text.rstrip()) is not None

    @staticmethod
    def _is_stamped(text: bytes) -> bool:
        return _STAMP.match(text) is not None

    def _continue(self, line: int, head: bytes) -> None:
        """Text before a line's first known start: more of an open line, cut again, or the start of a torn tag."""
        for item in reversed(self.open):
            if item.text.startswith(_TAG) and b" " not in head and not self._is_event(item.text):
                item.text += head
                self.claimed.add(line)
                return
        if any(tag.startswith(head) for tag in self.grammar.tags) or _STAMP_HEAD.fullmatch(head):
            self._push(line, head)

    def _push(self, line: int, text: bytes) -> None:
        self.open.append(_Open(line, text))
        if len(self.open) > MAX_OPEN:
            self._close(self.open.pop(0))

    def _whole(self, line: int, text: bytes) -> None:
        if text.startswith(_TAG) and not self._is_event(text):
            self.found.damaged.append((line, text))
        else:
            self._take(line, text)

    def _close(self, item: _Open) -> None:
        """An open line whose rest never came: perhaps only its newline was late."""
        if item.text.startswith(_TAG):
            if self._is_event(item.text):
                self.found.repaired += 1
                self._take(item.line, item.text)
            else:
                self.found.reject(item.line)
        elif self.grammar.timing_start.match(item.text):
            if self._is_timing(item.text):
                self._take(item.line, item.text)
            else:
                self.found.rejected_timings += 1
        elif _SHIPPER.fullmatch(item.text) is None:
            self._take(item.line, item.text)

    def _take(self, line: int, text: bytes) -> None:
        if text.startswith(_TAG):
            self.found.timeline.append((line, text.rstrip()))
        elif self.grammar.timing_start.match(text):
            self.found.timings.append((line, text.rstrip()))
        elif self._is_stamped(text):
            self.found.stamped.append((line, text.rstrip()))


def repair(lines: Reader, unusual: npt.NDArray[np.int64], fragments: npt.NDArray[np.bool_], grammar: Grammar) -> Found:
    """Goes over the unusual lines and, while one of them is open, over the lines after it.

    :param unusual: indices, ascending, of lines with a known start that are not of a plain shape.
    :param fragments: per line: it has no known start and looks like the rest of a torn line.
    """
    state = _Repair(grammar)
    queue = unusual.tolist()
    todo, index = 0, -1
    while True:
        index = index + 1 if state.open else (queue[todo] if todo < len(queue) else len(lines))
        if index >= len(lines):
            break
        state.expire(index + 1)
        if todo < len(queue) and queue[todo] == index:
            todo += 1
            state.unusual(index + 1, lines[index])
        elif state.open:
            text = lines[index]
            if grammar.start_re.match(text) is None:
                state.rest(index + 1, text)
    state.finish()
    state.found.loose = set((np.flatnonzero(fragments) + 1).tolist()) - state.claimed
    return state.found


def settle(found: Found, lines: Reader, grammar: Grammar, known_jobs: Iterable[bytes]) -> None:
    """Decides on the damaged lines of ``found``, now that the log's job ids are known.

    A line cut by text of an unknown kind is put back together with the next line only if exactly one cut gives a known
    event of a known job. A line whose form is merely unusual (no comma after the id, a comma inside it, ``Some(3)``,
    fractions) is taken if its job is known or comes up twice.
    """
    jobs = set(known_jobs)
    plain = {line: _plainer(text, grammar) for line, text in found.damaged}
    seen = Counter(_job(text) for text in plain.values() if text is not None)
    jobs_twice = jobs | {job for job, count in seen.items() if count > 1}
    for number, (line, text) in enumerate(found.damaged):
        glued = _recut(text, lines[line], grammar, jobs) if line < len(lines) and number < MAX_RECUTS else None
        candidate = plain[line]
        if glued is not None:
            found.timeline.append((line, glued))
            found.loose.discard(line + 1)
            found.repaired += 1
        elif candidate is not None and _job(candidate) in jobs_twice:
            found.timeline.append((line, candidate))
        else:
            found.reject(line)
    found.damaged = []


def _recut(text: bytes, rest: bytes, grammar: Grammar, jobs: set[bytes]) -> bytes | None:
    """The one line that a head of ``text`` and the whole of ``rest`` make, if there is exactly one."""
    if not rest or len(text) > MAX_CUTS or grammar.start_re.search(rest):
        return None
    results = set()
    for cut in range(len(_TAG), len(text) + 1):
        glued = text[:cut] + rest.rstrip()
        match = grammar.line_re.fullmatch(glued)
        if match and match["job"] in jobs and grammar.known_re.fullmatch(match["event"]) and grammar.strict(glued):
            results.add(glued)
    return results.pop() if len(results) == 1 else None


def _plainer(text: bytes, grammar: Grammar) -> bytes | None:
    """The line in plain form, if it is whole but written unusually; commas inside an id become ``\\x1f``."""
    fields = text.split(b",", 3)
    if len(fields) < 4 or not fields[1].isdigit() or len(fields[1]) > 12 or len(grammar.start_re.findall(text)) != 1:
        return None
    if grammar.known_re.fullmatch(fields[2]) is None:
        # An event nobody knows may have any form at all.
        plain = text if text.count(b",") > 3 else text + b","
        return plain if grammar.strict(plain) else None
    rest = _FRACTION.sub(rb"=\1", _SOME.sub(rb"=\1", fields[3]))
    words: Sequence[bytes] = rest.split(b",")
    if len(words) == 1:
        job, detail = words[0], b""
    else:
        first = len(words) - 1
        while first > 1 and _PAIR.fullmatch(words[first]) and _PAIR.fullmatch(words[first - 1]):
            first -= 1
        job, detail = b"\x1f".join(words[:first]), b",".join(words[first:])
    plain = b",".join((*fields[:3], job, detail))
    return plain if grammar.strict(plain) else None


def _job(text: bytes) -> bytes:
    return text.split(b",", 4)[3]
