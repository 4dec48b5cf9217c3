"""Units as Nsight Compute prints them, mapped to base units: ``usecond`` → ns × 1000, ``Gbyte/s`` → byte/s × 10⁹.

Every release spells them its own way (``nsecond``/``ns``, ``cycle/nsecond``/``Ghz``, ``byte/second``/``byte/s``), and
the command line scales them per column. Base units: ``ns`` for a time, ``s`` under a slash, ``byte``, ``hz``, and the
counted thing itself (``inst``, ``sector``, ``warp``, …).
"""

from __future__ import annotations

from functools import lru_cache

_DECIMAL = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_TIMES = {
    **dict.fromkeys(("ns", "nsec", "nsecond", "nseconds"), 1.0),
    **dict.fromkeys(("us", "usec", "usecond", "useconds", "µs", "μs"), 1e3),
    **dict.fromkeys(("ms", "msec", "msecond", "mseconds"), 1e6),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1e9),
}
_SCALED_WORDS = {
    "byte": "byte",
    "bytes": "byte",
    "hz": "hz",
    **{word: word for word in ("inst", "sector", "cycle", "warp", "thread", "request", "block", "flop")},
}


@lru_cache(maxsize=4096)
def base_unit(unit: str) -> tuple[str, float]:
    """``(base unit, factor)``: a printed value times the factor is in the base unit.

    An unknown unit is kept as it is, with factor 1: its values are still comparable among themselves.
    """
    numerator, slash, denominator = unit.strip().partition("/")
    top, factor = _times_or_word(numerator)
    if not slash:
        return top, factor
    if denominator in _TIMES:
        # A rate is per second; a numerator that is itself a time stays in ns.
        factor *= 1e9 / _TIMES[denominator]
        return ("hz", factor) if top == "cycle" else (f"{top}/s", factor)
    # The profiler scales the number by the prefix wherever the prefix stands: 3125 %/byte is printed as 3.125 %/Kbyte.
    bottom, scale = _times_or_word(denominator)
    return f"{top}/{bottom}", factor * scale


def _times_or_word(word: str) -> tuple[str, float]:
    if word in _TIMES:
        return "ns", _TIMES[word]
    for prefixes in (_BINARY, _DECIMAL):
        for prefix, factor in prefixes.items():
            rest = word[len(prefix) :]
            if prefix and word.startswith(prefix) and rest.lower() in _SCALED_WORDS:
                return _SCALED_WORDS[rest.lower()], factor
    return _SCALED_WORDS.get(word.lower(), word), 1.0
