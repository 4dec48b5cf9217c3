"""What a log line looks like: one grammar, as patterns that both Arrow's matcher and Python's understand.

A TIMELINE line is ``TIMELINE,<ms>,<EVENT>,<job>,<detail>``; the detail is empty, one bare word, or ``key=value`` pairs
with commas between. Only lines of exactly this shape are taken at once; all others go through the repair, because a
line that another writer tore can look almost right and say something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nvprof_tools.model.pipeline import LogEvents, Pipeline

TAG = "TIMELINE,"
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_STAMPED = STAMP + r"(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)[ \t]+(?:(?:stdout|stderr) [FP] )?"
EVENT = r"[A-Za-z_][A-Za-z0-9_.:-]{0,99}"
_KEY = r"[A-Za-z_][A-Za-z0-9_]*"
_PAIR = rf"{_KEY}=[^,=\s]*"
_WORD = r"[A-Za-z][A-Za-z0-9_-]*"
DETAIL = rf"(?:{_PAIR}(?:,{_PAIR})*|{_WORD}|)"
LINE = rf"{TAG}(?P<time>\d{{1,12}}),(?P<event>{EVENT}),(?P<job>[^,\n]*),(?P<detail>[^\n]*)"


def any_of(words: tuple[str, ...]) -> str:
    """A group that matches any of the words literally; nothing at all when there are none."""
    return f"(?:{'|'.join(re.escape(word) for word in words)})" if words else r"(?:[^\s\S])"


@dataclass(frozen=True)
class Grammar:
    """Patterns of one pipeline's log, as text for Arrow (RE2) and compiled for bytes.

    ``tags``: the words that start a line. ``start``: where a line of a known kind begins. ``known_head``,
    ``known_line``: the beginning, the whole of a line whose event has a role. ``bad_number``: a key that must have a
    whole number has something else. ``fragment``: a line that only makes sense as the rest of a torn one. ``keys``: per
    field, the pattern of ``key=number`` with a group named as the field. ``prefix``: what a log collector puts before
    a line.
    """

    tags: tuple[bytes, ...]
    start: str
    known_head: str
    known_line: str
    bad_number: str
    fragment: str
    keys: dict[str, str]
    prefix: re.Pattern[bytes]
    start_re: re.Pattern[bytes]
    timing_start: re.Pattern[bytes]
    timing_line: re.Pattern[bytes]
    line_re: re.Pattern[bytes]
    known_re: re.Pattern[bytes]
    detail_re: re.Pattern[bytes]
    bad_number_re: re.Pattern[bytes]

    def strict(self, text: bytes) -> bool:
        """Whether a text is a whole TIMELINE line beyond doubt."""
        match = self.line_re.fullmatch(text)
        if match is None or len(self.start_re.findall(text)) != 1:
            return False
        if self.known_re.fullmatch(match["event"]) is None:
            return True
        detail = match["detail"]
        return self.detail_re.fullmatch(detail) is not None and self.bad_number_re.search(detail) is None


def grammar_of(pipeline: Pipeline) -> Grammar:
    """The grammar that a pipeline file's names make."""
    events = pipeline.events
    tags = tuple(f"{tag}: " for tag in events.timing_tags)
    start = rf"(?:{any_of((TAG, *tags))}|{STAMP})"
    numbers = any_of((*events.partition, *events.worker, *events.gpu_ms, *events.synth_ms))
    known = any_of(tuple(events.roles))
    head = rf"^{TAG}\d{{1,12}},{known},"
    bad_number = rf"(?:^|,){numbers}=(?:$|[^0-9]|\d{{1,9}}[^0-9,\n]|\d{{10}})"
    timing = any_of(tags)
    return Grammar(
        tags=tuple(tag.encode() for tag in (TAG, *tags)),
        start=start,
        known_head=head,
        known_line=rf"{head}[^,\n]*,{DETAIL}\n?$",
        bad_number=bad_number,
        fragment=rf"(?:^|,)(?:{known},|{numbers}=\d+(?:[,\n]|$))",
        keys=_keys(events),
        prefix=re.compile(rf"^(?:{_STAMPED}|(?!{start})[^\n]{{0,200}}?[ \t])(?={start})".encode(), re.MULTILINE),
        start_re=_compile(start),
        timing_start=_compile(timing),
        timing_line=_compile(rf"{timing}{_KEY}=[^\s=]+(?: {_KEY}=[^\s=]+)*"),
        line_re=_compile(LINE),
        known_re=_compile(known),
        detail_re=_compile(DETAIL),
        bad_number_re=_compile(bad_number),
    )


def _keys(events: LogEvents) -> dict[str, str]:
    fields = {
        "partition": events.partition,
        "worker": events.worker,
        "gpu_ms": events.gpu_ms,
        "synth_ms": events.synth_ms,
    }
    return {name: rf"(?:^|,){any_of(words)}=(?P<{name}>\d{{1,9}})(?:,|$)" for name, words in fields.items()}


def _compile(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())
