"""Damage to an input of any kind, as a short list of edits: each mutant follows from (kind, seed, number) alone.

An input is a mapping of names inside its directory to bytes; a plain file is a mapping of one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Files = dict[str, bytes]

TOKENS = (
    b"\0", b"\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\r", b"\n", b"\n\n", b'"', b'""', b",", b";", b"=",
    b"[", b"{", b"]", b"}", b"[[a]]\n", b'"""', b"'", b"#", b"%", b"\\u0000", b"\\ud800", b"null", b"true", b"nan",
    b"inf", b"-1", b"0", b"1e308", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551616",
    b"9" * 5000, b"(" * 300, b"[" * 3000, b"{\"a\":" * 500, b"TIMELINE,",
    b"TIMELINE,1,GPU_START,j,worker=0,partition=",
    b"\x1b[2J", b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"(a+)+$",
    b"x" * 70000,
)  # fmt: skip
"""What a reader may trip over, whatever its format."""


@dataclass(frozen=True)
class Edit:
    """``cut`` bytes of ``file`` at ``at`` give way to ``put``; ``gone``: the whole file does."""

    file: str
    at: int = 0
    cut: int = 0
    put: bytes = b""
    gone: bool = False


def applied(files: Mapping[str, bytes], edits: Sequence[Edit]) -> Files:
    """The files after the edits, in order."""
    out = dict(files)
    for edit in edits:
        if edit.gone:
            out.pop(edit.file, None)
        elif edit.file in out:
            data = out[edit.file]
            out[edit.file] = data[: edit.at] + edit.put + data[edit.at + edit.cut :]
    return out


def draw(files: Mapping[str, bytes], source: random.Random) -> list[Edit]:
    """A few edits at random places."""
    edits: list[Edit] = []
    for _ in range(source.choice((1, 1, 1, 2, 3, 12))):
        now = applied(files, edits)
        if not now:
            break
        edits += _one(now, source)
    return edits


def _one(files: Files, source: random.Random) -> list[Edit]:
    name = source.choice(sorted(files))
    data = files[name]
    if not data:
        return [Edit(name, 0, 0, source.choice(TOKENS))]
    at = source.randrange(len(data))
    kind = source.choice(
        ("bit", "bit", "byte", "token", "token", "run", "cut", "end", "again", "line", "number", "file")
    )
    match kind:
        case "bit":
            return [Edit(name, at, 1, bytes([data[at] ^ 1 << source.randrange(8)]))]
        case "byte":
            return [Edit(name, at, 1, bytes([source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))]))]
        case "token":
            return [Edit(name, at, source.choice((0, 0, 1, 8)), source.choice(TOKENS))]
        case "run":
            length = min(source.choice((4, 64, 512, 4096)), len(data) - at)
            return [Edit(name, at, length, bytes([source.choice((0, 0xFF))]) * length)]
        case "cut":
            return [Edit(name, at, source.choice((1, 8, 100, len(data))))]
        case "end":
            return [Edit(name, len(data), 0, data[at : at + 4096])]
        case "again":
            return [Edit(name, source.randrange(len(data)), 0, data[at : at + source.choice((8, 64, 512))])]
        case "line":
            return _lines(name, data, source)
        case "number":
            return _number(name, data, at, source)
        case _:
            return _whole_file(files, name, source)


def _lines(name: str, data: bytes, source: random.Random) -> list[Edit]:
    """A line gone, or another line's text in its place."""
    lines = data.split(b"\n")
    first, second = source.randrange(len(lines)), source.randrange(len(lines))
    at = sum(len(line) + 1 for line in lines[:first])
    return [Edit(name, at, len(lines[first]) + 1, source.choice((b"", lines[second] + b"\n")))]


def _number(name: str, data: bytes, at: int, source: random.Random) -> list[Edit]:
    """The next run of digits becomes another number."""
    while at < len(data) and not 48 <= data[at] <= 57:
        at += 1
    end = at
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    numbers = (
        b"0",
        b"-1",
        b"1",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"99999999999999999999",
        b"4294967296",
    )
    return [Edit(name, at, end - at, source.choice(numbers))]


def _whole_file(files: Files, name: str, source: random.Random) -> list[Edit]:
    """A file is gone, empty, or another one's bytes."""
    other = source.choice(sorted(files))
    return source.choice(
        ([Edit(name, gone=True)], [Edit(name, 0, len(files[name]))], [Edit(name, 0, len(files[name]), files[other])])
    )
