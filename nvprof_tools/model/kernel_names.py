"""Kernel names in one spelling, whichever tool printed them.

Nsight Systems prints ``void _CT_NTT<(int)1, bls12_381::fr_t>(T2 *, unsigned int)``, Nsight Compute ``_CT_NTT<1, fr_t>``
for the same kernel, other demanglers ``_CT_NTT<1u, bls12_381::fr_t>``. Names are compared from strict to lenient, see
:func:`spellings`. Everything here is linear in the name's length: names come from untrusted files.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<lambda>\[lambda\b[^\[\]]*\]|\{lambda\b[^{}]*\})"
    r"|(?P<anonymous>\(anonymous namespace\)|<unnamed>|\(anonymous\)|\{unnamed[^{}]*\})"
    r"|(?P<word>[A-Za-z_$~][\w$.]*)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?:ULL|ull|LL|ll|UL|ul|[uUlL])?(?![\w])"
    r"|(?P<mark>::|->|[^\sA-Za-z_$0-9])"
    r"|(?P<odd>[0-9]\w*)"
)
_QUALIFIERS = frozenset(("const", "volatile", "__restrict__", "__restrict", "struct", "class", "enum", "typename"))
_TRUTH = {"true": "1", "false": "0", "nullptr": "0"}
_CALLING = frozenset(("static", "__global__", "inline", "extern"))
_ANONYMOUS = "(anon)"
_LONGEST = 100_000
_OPENING = {"(": ")", "<": ">", "[": "]", "{": "}"}


def _tokens(name: str) -> list[str]:
    if len(name) > _LONGEST:
        return [name]
    out: list[str] = []
    for match in _TOKEN.finditer(name):
        kind, text = match.lastgroup, match.group(match.lastgroup or 0)
        if kind == "lambda":
            number = re.search(r"(?:instance |#)([0-9]+)", text)
            out.append(f"lambda#{number.group(1) if number else 1}")
        elif kind == "anonymous":
            out.append(_ANONYMOUS)
        elif kind == "word":
            if text not in _QUALIFIERS and text not in _CALLING:
                out.append(_TRUTH.get(text, text))
        else:
            out.append(text)
    return out


def _pairs(tokens: list[str]) -> dict[int, int]:
    """Opening position → closing position of brackets that match; angle brackets close only inside their own."""
    found: dict[int, int] = {}
    stack: list[int] = []
    for i, token in enumerate(tokens):
        if token in _OPENING:
            stack.append(i)
        elif token in {")", ">", "]", "}"}:
            while stack and _OPENING[tokens[stack[-1]]] != token:
                if token == ">":
                    break  # a greater-than sign, or torn: leave the parentheses alone
                stack.pop()
            if stack and _OPENING[tokens[stack[-1]]] == token:
                found[stack.pop()] = i
    return found


def _without_casts(tokens: list[str]) -> list[str]:
    """Drop ``(type)`` before a value: ``(int)1`` → ``1``, ``(const T *)0`` → ``0``, ``(T)-1`` → ``-1``."""
    pairs = _pairs(tokens)
    out: list[str] = []
    i = 0
    while i < len(tokens):
        close = pairs.get(i) if tokens[i] == "(" else None
        if close is not None and close > i + 1 and (i == 0 or tokens[i - 1] in {"<", ",", "(", "-"}):
            after = tokens[close + 1] if close + 1 < len(tokens) else ""
            beyond = tokens[close + 2] if close + 2 < len(tokens) else ""
            if after[:1].isdigit() or after == "&" or (after == "-" and beyond[:1].isdigit()):
                i = close + 1
                continue
        out.append(tokens[i])
        i += 1
    return out


def _without_scopes(tokens: list[str]) -> list[str]:
    """Drop ``namespace::`` before a name; ``Type<…>::member`` keeps its type, for the brackets before ``::`` say so."""
    out: list[str] = []
    for token in tokens:
        if token == "::" and out and (out[-1] == _ANONYMOUS or out[-1][:1].isalpha() or out[-1][:1] in {"_", "$"}):
            out.pop()
            continue
        if token == "::" and (not out or out[-1] in {"<", ",", "("}):
            continue
        out.append(token)
    return out


def _function(tokens: list[str]) -> tuple[list[str], list[str]]:
    """``(name with its templates, parameters)`` without the return type and what follows the parameters."""
    pairs = _pairs(tokens)
    i = begin = 0
    end: int | None = None
    previous_word = False
    while i < len(tokens):
        token = tokens[i]
        if token == "(" and i > begin and tokens[i - 1] != "::":
            end = i
            break
        word = token[:1].isalpha() or token[:1] in {"_", "$", "~"} or token == _ANONYMOUS
        if word and previous_word:
            begin = i  # what came before was the return type
        previous_word = word or token in {">", "*", "&"}
        i = pairs[i] + 1 if token in {"<", "[", "{"} and i in pairs else i + 1
        if token == "<" and i > 0 and i <= len(tokens):
            previous_word = True
        if token == "::":
            previous_word = False
    name = tokens[begin:end]
    if end is None:
        return name, []
    close = pairs.get(end, len(tokens) - 1)
    return name, tokens[end : close + 1]


def _join(tokens: list[str]) -> str:
    out: list[str] = []
    for token in tokens:
        needs_space = out and out[-1][-1:].isalnum() and token[:1].isalnum()
        out.append(f" {token}" if needs_space or (out and out[-1][-1:] == "_" and token[:1].isalnum()) else token)
    return "".join(out)


@lru_cache(maxsize=65536)
def spellings(signature: str) -> tuple[str, str, str]:
    """A demangled name from strict to lenient.

    1. without casts, qualifiers, the return type and white space: ``_CT_NTT<1,bls12_381::fr_t>(T2*,unsigned int)``;
    2. also without namespaces: ``_CT_NTT<1,fr_t>(T2*,unsigned int)``;
    3. also without the parameters: ``_CT_NTT<1,fr_t>``.
    """
    name, parameters = _function(_without_casts(_tokens(signature)))
    short, short_parameters = _without_scopes(name), _without_scopes(parameters)
    return _join(name + parameters), _join(short + short_parameters), _join(short)


@lru_cache(maxsize=65536)
def base_name(signature: str) -> str:
    """The function's own name, without scopes, templates and parameters."""
    name, _ = _function(_tokens(signature))
    pairs = _pairs(name)
    out: list[str] = []
    i = 0
    while i < len(name):
        if name[i] == "<" and i in pairs:
            i = pairs[i] + 1
            continue
        if name[i] == "::":
            out.clear()
        else:
            out.append(name[i])
        i += 1
    return _join(out) or signature.strip()


def is_mangled(name: str) -> bool:
    """Whether a name is a raw symbol of the Itanium C++ ABI."""
    return name.startswith("_Z") and " " not in name and "<" not in name and "(" not in name


def labels(names: list[str]) -> list[str]:
    """Short names that still tell kernels apart: the base name, and of several instances what sets each apart.

    ``accumulate<xyzz_t<fp_t, …>>`` and ``accumulate<xyzz_t<fp2_t, …>>`` become ``accumulate<fp_t>`` and
    ``accumulate<fp2_t>``. Names must be distinct; so are the labels, since a clash falls back to the whole name.
    """
    families: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        families.setdefault(base_name(name), []).append(i)
    out = list(names)
    for base, members in families.items():
        if len(members) == 1:
            out[members[0]] = base
            continue
        words = {i: list(dict.fromkeys(_argument_words(names[i]))) for i in members}
        common = set.intersection(*(set(w) for w in words.values()))
        short = {i: f"{base}<{', '.join(x for x in w if x not in common)}>" for i, w in words.items()}
        taken = Counter(short.values())
        for i in members:
            unique = taken[short[i]] == 1 and not short[i].endswith("<>")
            out[i] = short[i] if unique else spellings(names[i])[2]
    taken = Counter(out)
    return [name if taken[label] > 1 else label for name, label in zip(names, out, strict=True)]


def _argument_words(signature: str) -> list[str]:
    name, _ = _function(_without_casts(_tokens(signature)))
    short = _without_scopes(name)
    inside = short[short.index("<") :] if "<" in short else []
    return [token for token in inside if token[:1].isalnum() or token[:1] == "_"]
