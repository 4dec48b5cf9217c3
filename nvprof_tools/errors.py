"""Errors a person can act on: a slug, one line of what and why, and a hint.

Every error the package raises on purpose is a :class:`ToolError`; the command line turns it into two lines on
stderr and the exit code carried by the class. Slugs are documented in ``docs/messages.md``.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_BAD_INPUT = 3
EXIT_INTERNAL = 4
EXIT_INCONCLUSIVE = 5


class ToolError(Exception):
    """An expected failure.

    :param slug: stable kebab-case name, documented in ``docs/messages.md``.
    :param message: one line: what happened and why.
    :param hint: one line: what to do next.
    """

    exit_code = EXIT_BAD_INPUT

    def __init__(self, slug: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.hint = hint


class SourceError(ToolError):
    """An input file cannot be used: damaged, hostile, of another kind, or too large."""


class AlignmentError(ToolError):
    """A trace and a log do not belong together, or the asked-for window cannot be had."""


class UsageError(ToolError):
    """The request itself is wrong: an unknown pipeline, an option that contradicts another."""

    exit_code = EXIT_USAGE


class CheckFailed(ToolError):
    """A check the user asked for did not hold."""

    exit_code = EXIT_CHECK_FAILED


class InvariantError(ToolError):
    """A promise of the tool itself broke: report it as a bug."""

    exit_code = EXIT_INTERNAL
