"""Which text of a trace or log may stand in a repository: names of calls, kernels and ranges, never a place or person.

A word that could hold a path, a host, an address or a user is replaced by a short digest of itself, so that equal
words stay equal and different ones different.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from nvprof_tools.model.arrays import canonical, flat, ints, strings, validity

_PLAIN: Final = re.compile(r"[\w :.,<>()\[\]{}*&=+~#|!?%'-]{1,200}", re.ASCII)
"""Characters of C++ and NVTX names. No slash, backslash, ``@`` or control character: paths and addresses have those."""

_TELLING: Final = re.compile(
    r"(?i:\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|lan|local|internal|intra|corp)\b"
    r"|\b(?:home|root|users?|mnt|scratch)[:.]|secret|passw|api[_-]?key)|\b[A-Z_]{3,}="
)
"""Looks of an address, a host, a place, a credential or an environment variable."""

_IN_TEXT: Final = re.compile(
    r"(?:(?<![\w/])(?:[A-Za-z]:|~|\.{1,2})?[/\\](?=[\w.~-])|(?<![\w/])[\w.-]+(?:/[\w.-]+){2,}"
    r"|(?<![\w/])[\w.-]+/[\w-]+\.[a-z]\w*)[^\s,;:()'\"]*"
    r"|[\w.+-]+@[\w.-]+"
)
"""A path or an address in a sentence."""


def is_plain(word: str) -> bool:
    """Whether a word can hold nothing but a name."""
    return _PLAIN.fullmatch(word) is not None and _TELLING.search(word) is None


def plain(word: str) -> str:
    """The word itself, or its digest where it could tell more than a name."""
    return word if word == "" or is_plain(word) else digest_of(word, "hidden")


def plain_text(text: str) -> str:
    """A sentence without its paths and addresses; a digest in its place where more than those could tell something."""
    shown = _IN_TEXT.sub("<path>", text)
    rest = shown.replace("<path>", "")
    return shown if not _TELLING.search(rest) and rest.isprintable() else digest_of(text, "text")


def digest_of(word: str, kind: str) -> str:
    """``kind_0123456789ab``: the same for the same word, everywhere."""
    return f"{kind}_{hashlib.sha256(word.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def reworded(column: pa.Array | pa.ChunkedArray, rule: Callable[[str], str]) -> pa.Array:
    """A dictionary column with ``rule`` applied once to each of its words."""
    array = flat(column)
    words = [rule(word) for word in array.dictionary.to_pylist()]
    return canonical(np.where(validity(array), ints(array.indices), -1), strings(words))
