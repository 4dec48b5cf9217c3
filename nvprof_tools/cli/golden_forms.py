"""The report's own forms, handed to goldens: which document and page a golden keeps is the report's business."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nvprof_tools.golden.record import Forms
    from nvprof_tools.model.attribution import Attribution


def forms() -> Forms:
    """``attribute -f json`` and ``-f markdown``."""
    from nvprof_tools.golden.record import Forms
    from nvprof_tools.report.json_doc import document

    return Forms(document, _dumps, _page)


def _dumps(data: Mapping[str, Any]) -> bytes:
    from nvprof_tools.report.json_doc import dumps

    return dumps(data).encode("ascii")


def _page(found: Attribution) -> bytes:
    from nvprof_tools.report.base import Report
    from nvprof_tools.report.markdown import Markdown

    out = io.BytesIO()
    Markdown().render(Report(found), out)
    return out.getvalue()
