"""Reads pipeline files: those that ship with the package, by name, and a user's own, by path."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Final

from nvprof_tools.errors import ToolError
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.pipelines.schema import pipeline_from_dict

BUILTIN_NAMES: Final = ("cuzk", "generic")
MAX_FILE_BYTES: Final = 256 * 1024


def builtin_pipelines() -> tuple[Pipeline, ...]:
    """Every pipeline that ships with the package, in the order they are tried."""
    return tuple(_builtin(name) for name in BUILTIN_NAMES)


def load_pipeline(name_or_path: str) -> Pipeline:
    """One pipeline by its name, or by the path of its file.

    :raises ToolError: ``unknown-pipeline``; ``pipeline-file-unreadable``, ``pipeline-file-too-large``,
        ``pipeline-file-not-toml``, ``pipeline-file-invalid`` for a file.
    """
    if name_or_path in BUILTIN_NAMES:
        return _builtin(name_or_path)
    path = Path(name_or_path)
    if path.suffix != ".toml" and "/" not in name_or_path and not path.is_file():
        raise ToolError(
            "unknown-pipeline",
            f"there is no pipeline named {name_or_path[:80]!r}",
            f"use one of {', '.join(BUILTIN_NAMES)}, or the path of a pipeline file (.toml)",
        )
    return pipeline_from_dict(_parse(_read(path)), default_api(), builtin=False)


def builtin_source(name: str) -> str | None:
    """The text of a built-in pipeline file; null for another name."""
    return _resource(f"{name}.toml") if name in BUILTIN_NAMES else None


def default_api() -> dict[str, tuple[str, ...]]:
    """Category → name patterns that every pipeline starts from."""
    table = tomllib.loads(_resource("api_calls.toml"))
    return {category: tuple(patterns) for category, patterns in table.items()}


def builtin_text(name: str) -> str:
    """The file of a pipeline that ships with the package; ``name`` is one of ``BUILTIN_NAMES``."""
    return _resource(f"{name}.toml")


def _builtin(name: str) -> Pipeline:
    return pipeline_from_dict(tomllib.loads(builtin_text(name)), default_api(), builtin=True)


def _resource(name: str) -> str:
    return resources.files("nvprof_tools.pipelines").joinpath(name).read_text(encoding="utf-8")


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise ToolError(
                "pipeline-file-unreadable",
                "the pipeline file does not exist or is not a regular file",
                "give the path of a TOML file; `nvprof-tools pipelines` lists the built-in ones",
            )
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        raise ToolError(
            "pipeline-file-unreadable", f"the pipeline file cannot be read: {reason}", "check its path and permissions"
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            "pipeline-file-too-large",
            f"the pipeline file is larger than {MAX_FILE_BYTES // 1024} KiB",
            "a pipeline file is a short TOML file; check that the path is right",
        )
    return data


def _parse(data: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError of its own
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0][:200]
        raise ToolError(
            "pipeline-file-not-toml",
            f"the pipeline file is not valid TOML: {reason}",
            "docs/pipelines.md shows a complete file",
        ) from error
