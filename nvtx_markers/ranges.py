"""Sections, ranges and marks: context managers that are decorators too."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Self

from nvtx_markers._backend import SILENT, Token, backend, field
from nvtx_markers.conventions import RANGES, SECTION_FORMAT


class range(ContextDecorator):  # noqa: A001, N801 - reads as a function; the established name of the thing
    """A stage of the work on this thread: ``with range("upload"): ...`` or ``@range("upload")``.

    :param category: one of :data:`nvtx_markers.conventions.RANGES`.
    :raises ValueError: another name: the importer would not know what it means.
    """

    def __init__(self, category: str) -> None:
        if category not in RANGES:
            raise ValueError(f"unknown range {category!r}; one of {', '.join(RANGES)}")
        self._category = category

    def __enter__(self) -> Self:
        backend().push(self._category)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        backend().pop()


class section(ContextDecorator):  # noqa: N801 - reads as a function
    """One partition's stay on a GPU worker: ``with section(job="job-7", partition=3, worker=0): ...``.

    Sections may overlap, nest and, in asynchronous code, end on another thread.

    :param job: the job's name, as in the log.
    :param partition: its number, or None where there is none.
    :param worker: the GPU worker's number, or None.
    """

    def __init__(self, job: str, partition: int | None = None, worker: int | None = None) -> None:
        one_line = job.replace("\n", " ").replace("\r", " ")
        self._text = SECTION_FORMAT.format(job=one_line, partition=field(partition), worker=field(worker))
        self._open: list[Token] = []

    def __enter__(self) -> Self:
        emitter = backend()
        self._open.append(emitter.start("section", self._text))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        backend().end(self._open.pop())


def mark(text: str) -> None:
    """One instant with a text of your own."""
    emitter = backend()
    if emitter is not SILENT:
        emitter.mark("shim", text)
