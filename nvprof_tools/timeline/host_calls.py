"""Calls on host threads: the CUDA API, the operating system, and the profiler's own overhead."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nvprof_tools.model.arrays import Bools, Ints, bools, canonical, from_numpy, ints, validity
from nvprof_tools.sources import nsys_schema
from nvprof_tools.timeline.correlate import CallIndex
from nvprof_tools.timeline.ids import PROCESS_BITS, Codes, Identities
from nvprof_tools.timeline.rows import Account, SessionClock, keep_intervals, optional
from nvprof_tools.timeline.words import Words, with_default

Draft = dict[str, pa.Array]
"""Columns of one table, not yet sorted; process, thread and device still as provisional codes."""

_VERSION_SUFFIX, _STREAM_SUFFIX = r"_v\d{4,5}$", r"_pt(?:sz|ds)$"


def correlation(table: pa.Table) -> pa.Array:
    """``correlationId`` as given; 0 means there is none."""
    values = ints(table["correlationId"])
    return from_numpy(values, validity(table["correlationId"]) & (values != 0))


def strip_suffixes(words: pa.Array) -> pa.Array:
    """API names without the suffixes that mark an ABI version or a per-thread default stream."""
    plain = pc.replace_substring_regex(words, _VERSION_SUFFIX, "")
    return pc.replace_substring_regex(plain, _STREAM_SUFFIX, "")


def api_calls(table: pa.Table, clock: SessionClock, words: Words, ids: Identities, account: Account) -> Draft:
    """CUPTI_ACTIVITY_KIND_RUNTIME."""
    account.read += table.num_rows
    kind, given = ints(table["eventClass"]), validity(table["globalTid"])
    account.set_aside("rows-without-thread", int(np.count_nonzero(~given)))
    repeat = given & _repeats(table, kind)
    account.set_aside("rows-duplicate", int(np.count_nonzero(repeat)))
    table, start, end = keep_intervals(table, clock, account, given & ~repeat)
    process, thread = ids.thread_codes(table["globalTid"])
    codes, distinct = with_default(*words.places(table["nameId"]), "unknown")
    return {
        "start_ns": from_numpy(start),
        "end_ns": from_numpy(end),
        "process": from_numpy(process),
        "thread": from_numpy(thread),
        "correlation_id": correlation(table),
        "name": canonical(codes, strip_suffixes(distinct)),
        "driver_api": from_numpy(_among(ints(table["eventClass"]), nsys_schema.CLASS_DRIVER)),
        "return_value": optional(table, "returnValue", pa.int32()),
    }


def _among(values: Ints, few: Iterable[int]) -> Bools:
    """Whether each value is one of a few."""
    found = np.zeros(len(values), np.bool_)
    for one in few:
        found |= values == one
    return found


def _repeats(table: pa.Table, kind: Ints) -> Bools:
    """Backtrace rows whose call also has a row of its own class; a backtrace alone stays the call's only row."""
    backtrace: Bools = kind == nsys_schema.CLASS_BACKTRACE
    if not backtrace.any():
        return backtrace
    process = Identities().process_codes(from_numpy((ints(table["globalTid"]) >> PROCESS_BITS) << PROCESS_BITS))
    number, given = ints(table["correlationId"]), validity(table["correlationId"])
    _, found = CallIndex(process, number, given & ~backtrace).find(process, number, given)
    repeated: Bools = backtrace & found
    return repeated


def os_calls(table: pa.Table, clock: SessionClock, words: Words, ids: Identities, account: Account) -> Draft:
    """OSRT_API."""
    account.read += table.num_rows
    given = validity(table["globalTid"])
    account.set_aside("rows-without-thread", int(np.count_nonzero(~given)))
    table, start, end = keep_intervals(table, clock, account, given)
    process, thread = ids.thread_codes(table["globalTid"])
    return {
        "start_ns": from_numpy(start),
        "end_ns": from_numpy(end),
        "process": from_numpy(process),
        "thread": from_numpy(thread),
        "name": words.names(table["nameId"], "unknown"),
        "nesting": optional(table, "nestingLevel", pa.int32()),
    }


def profiler_overhead(table: pa.Table, clock: SessionClock, words: Words, ids: Identities, account: Account) -> Draft:
    """PROFILER_OVERHEAD and CUPTI_ACTIVITY_KIND_OVERHEAD."""
    account.read += table.num_rows
    given = validity(table["globalTid"])
    account.set_aside("rows-without-thread", int(np.count_nonzero(~given)))
    table, start, end = keep_intervals(table, clock, account, given)
    process, thread = ids.thread_codes(table["globalTid"])
    codes, distinct = with_default(*words.places(table["nameId"]), "unknown")
    distinct = without_paths(distinct)
    return {
        "start_ns": from_numpy(start),
        "end_ns": from_numpy(end),
        "process": from_numpy(process),
        "thread": from_numpy(thread),
        "name": canonical(codes, distinct),
        "is_profiler": from_numpy(_is_profiler(table, codes, distinct)),
    }


def _is_profiler(table: pa.Table, codes: Codes, words: pa.Array) -> Bools:
    """By the row's type where it has one that says, else by its name: all but CUDA's own costs are the profiler's."""
    cost = pc.match_substring_regex(words, nsys_schema.CUDA_COST_NAME.pattern, ignore_case=True)
    named = ~bools(cost)[np.maximum(codes, 0)] if len(words) else np.ones(len(codes), np.bool_)
    kind = np.where(validity(table["overheadType"]), ints(table["overheadType"]), -1)
    return np.where(
        np.isin(kind, nsys_schema.PROFILER_TYPES), True, np.where(np.isin(kind, nsys_schema.CUDA_TYPES), False, named)
    )


def without_paths(words: pa.Array) -> pa.Array:
    """Words with every absolute path replaced: a path tells who ran the program and where."""
    return pc.replace_substring_regex(words, r"(^|[\s\"'(=:,>\[])(?:/[^\s/'\"():,;]+){2,}/?", r"\1<path>")
