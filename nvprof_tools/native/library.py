"""The native library as Python sees it: finds it, describes its C interfaces (``pages/pages.h``, ``intervals/*.h``).

ctypes releases the GIL during every call. Without the library, or with one of other interfaces, every function here
gives None and the caller goes a slower way to the same result.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

ABI = 3
NAME = "libnvprof_native.so"
SWITCH = "NVPROF_TOOLS_NATIVE"
"""Environment variable: ``0`` leaves the library aside, a path names another one."""

NULL, INTEGER, REAL, TEXT, BLOB = 1, 2, 4, 8, 16
SKIP, INT64, STRING, DICTIONARY = 0, 1, 2, 3

NO_MEMORY = 2
REASONS = {
    1: "the request is out of range",
    NO_MEMORY: "there is no memory",
    3: "the file cannot be read to its end",
    4: "a page is not what its tree says",
    5: "rowids are out of order",
    6: "a chain of overflow pages is broken",
    7: "a record contradicts its header",
    8: "a value is of another storage class than its column",
    9: "a row is older than a column with a default",
    10: "there are more rows, bytes or words than allowed",
}
"""Why a table was refused, by the number the library returns."""


class Column(ctypes.Structure):
    """``nvp_column``."""

    _fields_ = (
        ("allowed", ctypes.c_uint8),
        ("want", ctypes.c_uint8),
        ("may_lack", ctypes.c_uint8),
        ("is_rowid", ctypes.c_uint8),
    )


class Request(ctypes.Structure):
    """``nvp_request``."""

    _fields_ = (
        ("file", ctypes.c_int32),
        ("page_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("pages", ctypes.c_uint32),
        ("root", ctypes.c_uint32),
        ("columns", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("max_distinct", ctypes.c_uint32),
        ("max_rows", ctypes.c_uint64),
        ("max_bytes", ctypes.c_uint64),
        ("max_record", ctypes.c_uint64),
        ("column", ctypes.POINTER(Column)),
    )


class Block(ctypes.Structure):
    """``nvp_block``."""

    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64))


class Vector(ctypes.Structure):
    """``nvp_vector``."""

    _fields_ = (
        ("validity", Block),
        ("values", Block),
        ("offsets", Block),
        ("words", Block),
        ("nulls", ctypes.c_uint64),
        ("distinct", ctypes.c_uint64),
    )


@functools.cache
def _loaded(path: str) -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(path)
        library.nvp_abi.restype = ctypes.c_int
        if library.nvp_abi() != ABI:
            return None
        library.nvp_pages_read.argtypes = (
            ctypes.POINTER(Request),
            ctypes.POINTER(Vector),
            ctypes.POINTER(ctypes.c_uint64),
        )
        library.nvp_pages_read.restype = ctypes.c_int
        pointer, count = ctypes.c_void_p, ctypes.c_uint64
        library.nvp_covering.argtypes = (pointer, pointer, count, pointer, count, pointer)
        library.nvp_covering.restype = ctypes.c_int
        library.nvp_innermost.argtypes = (pointer, pointer, pointer, count, pointer, pointer, pointer, pointer)
        library.nvp_innermost.restype = ctypes.c_int
        library.nvp_pages_free.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        library.nvp_pages_free.restype = None
    except (OSError, AttributeError):
        return None
    return library


def native_library() -> ctypes.CDLL | None:
    """The library, where it was built and is to be used."""
    asked = os.environ.get(SWITCH, "")
    if asked == "0":
        return None
    return _loaded(asked or str(Path(__file__).with_name(NAME)))


def covering(
    begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64], at: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    """For each instant of ``at`` the last interval ``[begin, end)`` in the order given that covers it, −1 for none.

    ``begin`` must rise. Null where the library is not there.
    """
    library = native_library()
    if library is None:
        return None
    begin, end, at = (np.ascontiguousarray(values, np.int64) for values in (begin, end, at))
    found = np.empty(len(at), np.int64)
    pointers = [values.ctypes.data for values in (begin, end, at, found)]
    if len(end) != len(begin) or library.nvp_covering(*pointers[:2], len(begin), pointers[2], len(at), pointers[3]):
        return None
    return found


Ints = npt.NDArray[np.int64]


def innermost(begin: Ints, end: Ints, label: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Labelled intervals flattened: ``(begin, end, label)`` of disjoint pieces, in each the label of the last interval
    in the order given that covers it; pieces that touch have different labels.

    ``begin`` must rise and every interval be longer than nothing; one with a negative label covers the others and gives
    none. Null where the library is not there.
    """
    library = native_library()
    if library is None or not len(begin) == len(end) == len(label):
        return None
    given = [np.ascontiguousarray(values, np.int64) for values in (begin, end, label)]
    made = [np.empty(2 * len(begin), np.int64) for _ in given]
    pieces = ctypes.c_uint64()
    pointers = [values.ctypes.data for values in (*given, *made)]
    if library.nvp_innermost(*pointers[:3], len(begin), *pointers[3:], ctypes.addressof(pieces)):
        return None
    start, stop, shown = (values[: pieces.value] for values in made)
    some = shown >= 0
    return start[some], stop[some], shown[some]
