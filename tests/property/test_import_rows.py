"""Rows on the session clock, over the whole range of 64 bits, against plain Python integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nvprof_tools.model.arrays import canonical, from_numpy, ints, strings, validity
from nvprof_tools.model.tables import TABLES
from nvprof_tools.timeline.ids import combine, distinct
from nvprof_tools.timeline.rows import FAR, Account, SessionClock, conform, keep_instants, keep_intervals, optional

SMALL = st.integers(-5, 5)
WHOLE = st.integers(-(2**63), 2**63 - 1)
TIME = st.none() | SMALL | st.sampled_from([FAR, -FAR, FAR - 1, 1 - FAR, 2**63 - 1, -(2**63)]) | WHOLE
SHIFT = SMALL | st.integers(1 - FAR, FAR - 1)
END = st.none() | st.integers(1, 8) | st.integers(1, FAR - 1)


def column(values: list[int | None]) -> pa.Array:
    given = np.array([v is not None for v in values], np.bool_)
    return from_numpy(np.array([v or 0 for v in values], np.int64), given)


def reason(start: int | None, end: int | None, shift: int, stop: int | None) -> str:
    """Why a row is not kept, in the order the reasons are tried; empty where it is."""
    if start is None or end is None or (start, end) in {(0, 0), (shift, shift)}:
        return "rows-without-time"
    if not all(-FAR < t < FAR and -FAR < t - shift < FAR for t in (start, end)):
        return "rows-time-out-of-range"
    if start > end:
        return "rows-reversed"
    if stop is not None and start - shift >= stop:
        return "rows-past-capture"
    return ""


@settings(max_examples=200)
@given(st.lists(st.tuples(TIME, TIME), max_size=25), SHIFT, END)
@example([(0, 0), (5, 5), (5, 4), (None, 3), (2**63 - 1, 2**63 - 1), (-(2**63), 0)], 0, 5)
def test_intervals(rows: list[tuple[int | None, int | None]], shift: int, stop: int | None) -> None:
    table = pa.Table.from_arrays(
        [column([r[0] for r in rows]), column([r[1] for r in rows]), column(list(range(len(rows))))],
        names=["start", "end", "row"],
    )
    account = Account("x", read=len(rows))
    kept, start, end = keep_intervals(table, SessionClock(shift, stop), account)
    reasons = [reason(*row, shift, stop) for row in rows]
    expected = [
        (i, s - shift, e - shift if stop is None else min(e - shift, stop))
        for i, ((s, e), why) in enumerate(zip(rows, reasons, strict=True))
        if not why and s is not None and e is not None
    ]
    assert list(zip(ints(kept["row"]).tolist(), start.tolist(), end.tolist(), strict=True)) == expected
    assert account.aside == {why: reasons.count(why) for why in set(reasons) if why}
    assert account.kept == len(expected)
    assert account.clipped == sum(
        stop is not None and e is not None and e - shift > stop and not why
        for (_, e), why in zip(rows, reasons, strict=True)
    )


@settings(max_examples=60)
@given(st.lists(TIME, max_size=25), SHIFT, END)
def test_instants(times: list[int | None], shift: int, stop: int | None) -> None:
    account = Account("x", read=len(times))
    table = pa.Table.from_arrays([column(times)], names=["t"])
    _, kept = keep_instants(table, "t", SessionClock(shift, stop), account)
    expected = [
        t - shift
        for t in times
        if t is not None and -FAR < t < FAR and -FAR < t - shift < FAR and (stop is None or t - shift < stop)
    ]
    assert kept.tolist() == expected
    assert account.kept == len(expected)


@settings(max_examples=60)
@given(st.lists(st.none() | SMALL | WHOLE, max_size=20))
def test_narrowing_never_wraps(values: list[int | None]) -> None:
    table = pa.Table.from_arrays([column(values)], names=["v"])
    narrowed = optional(table, "v", pa.int32())
    assert narrowed.to_pylist() == [v if v is not None and -(2**31) <= v < 2**31 else None for v in values]


@settings(max_examples=60)
@given(st.lists(st.tuples(SMALL | WHOLE, st.integers(-2, 2) | WHOLE), max_size=30))
def test_distinct_combinations(rows: list[tuple[int, int]]) -> None:
    codes, combos = distinct(column([r[0] for r in rows]), column([r[1] for r in rows]))
    assert [combos[c] for c in codes.tolist()] == rows
    assert len(set(combos)) == len(combos)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=30))
def test_pairs(rows: list[tuple[int, int]]) -> None:
    first, second = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64)
    codes, pairs = combine(first, second, 10)
    assert [divmod(p, 10) for p in pairs[codes].tolist()] == rows


@settings(max_examples=60)
@given(st.lists(st.none() | st.sampled_from(["b", "a", "", "ä", "aa"]), max_size=20), st.randoms())
def test_names_do_not_show_the_order_they_came_in(names: list[str | None], source: object) -> None:
    words = ["", "a", "aa", "b", "ä", "unused"]
    source.shuffle(words)  # type: ignore[attr-defined]
    codes = np.array([-1 if n is None else words.index(n) for n in names], np.int32)
    made = canonical(codes, strings(words))
    assert made.to_pylist() == names
    used = sorted({n for n in names if n is not None})
    assert made.dictionary.to_pylist() == used
    assert validity(made).tolist() == [n is not None for n in names]


CALL = st.tuples(SMALL, SMALL, st.integers(0, 1), st.sampled_from(["a", "b"]), st.none() | SMALL)


@settings(max_examples=60)
@given(st.lists(CALL, max_size=20), st.randoms())
def test_order_is_total(rows: list[tuple[int, int, int, str, int | None]], source: object) -> None:
    def table(items: list[tuple[int, int, int, str, int | None]]) -> pa.Table:
        threads = from_numpy(np.array([r[2] for r in items], np.int32))
        made, _ = conform(
            TABLES["os_calls"],
            {
                "start_ns": column([r[0] for r in items]),
                "end_ns": column([r[1] for r in items]),
                "process": threads,
                "thread": threads,
                "name": canonical(np.array(["ab".index(r[3]) for r in items], np.int32), strings(["a", "b"])),
                "nesting": optional(
                    pa.Table.from_arrays([column([r[4] for r in items])], names=["n"]), "n", pa.int32()
                ),
            },
        )
        return made

    mixed = list(rows)
    source.shuffle(mixed)  # type: ignore[attr-defined]
    first, second = table(rows), table(mixed)
    assert first.equals(second)
    keys = list(zip(*(first[c].to_pylist() for c in TABLES["os_calls"].sort_by), strict=True))
    assert keys == sorted(keys)
