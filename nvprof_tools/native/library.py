"""The native library as Python sees it: finds it, describes its C interfaces (``pages/pages.h``, ``intervals/*.h``).

ctypes releases the GIL during every call. Without the library, or with one of other interfaces, every function here
gives None and the caller goes a slower way to the same result.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

ABI = 4
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


class Layer(ctypes.Structure):
    """``nvp_layer``."""

    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("kind", ctypes.c_void_p),
        ("label", ctypes.c_void_p),
        ("every_kind", ctypes.c_int32),
    )


class Cutting(ctypes.Structure):
    """``nvp_cutting``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("first", "begin", "end", "number", "other")),
        *((name, ctypes.c_void_p) for name in ("lane", "stretch_begin", "stretch_end")),
        ("stretches", ctypes.c_uint64),
    )


class Walls(ctypes.Structure):
    """``nvp_walls``."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("length", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
    )


class Pieces(ctypes.Structure):
    """``nvp_pieces``."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("begin", "end", "wall", "kind", "label"))


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
        library.nvp_pages_free.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        library.nvp_pages_free.restype = None
        pointer, count = ctypes.c_void_p, ctypes.c_uint64
        library.nvp_covering.argtypes = (pointer, pointer, count, pointer, count, pointer)
        library.nvp_innermost.argtypes = (*[pointer] * 3, count, *[pointer] * 4)
        library.nvp_oldest.argtypes = library.nvp_innermost.argtypes
        library.nvp_sweep_count.argtypes = (pointer, ctypes.c_uint32, pointer, ctypes.c_uint32, pointer)
        library.nvp_sweep_fill.argtypes = (
            *(pointer, ctypes.c_uint32, pointer, ctypes.c_int32, ctypes.c_uint32, pointer, pointer),
        )
        library.nvp_filled.argtypes = (pointer, count, pointer, pointer, count)
        library.nvp_locate.argtypes = (pointer, count, *[pointer] * 4, count, pointer)
        library.nvp_cut_count.argtypes = (pointer,)
        library.nvp_cut_count.restype = count
        library.nvp_cut_fill.argtypes = (pointer, ctypes.c_int64, *[pointer] * 4)
        library.nvp_cut_fill.restype = None
        library.nvp_sums.argtypes = (*[pointer] * 5, count, ctypes.c_int64, count, *[pointer] * 4)
        library.nvp_shared.argtypes = (*[pointer] * 3, count, pointer, pointer, count, pointer)
        library.nvp_shared.restype = None
        library.nvp_subtract.argtypes = (pointer, pointer, count, pointer, pointer, count, pointer, pointer)
        library.nvp_subtract.restype = count
    except (OSError, AttributeError):
        return None
    return library


def native_library() -> ctypes.CDLL | None:
    """The library, where it was built and is to be used."""
    asked = os.environ.get(SWITCH, "")
    if asked == "0":
        return None
    return _loaded(asked or str(Path(__file__).with_name(NAME)))
