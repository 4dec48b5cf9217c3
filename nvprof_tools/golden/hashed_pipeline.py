"""A pipeline file whose stages know kernels by the digests of their names, for goldens that hide the names."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import tomli_w

from nvprof_tools.golden.scrub import kernel_digest
from nvprof_tools.model.arrays import flat, ints
from nvprof_tools.model.pipeline import Pipeline
from nvprof_tools.model.trace import Trace
from nvprof_tools.pipelines.load import builtin_text


def hashed(pipeline: Pipeline, trace: Trace, text: str | None) -> bytes:
    """The pipeline's file with each stage rule's kernels listed by digest; ``text``: the file, null: a built-in one.

    A rule's name pattern and signature are settled here, kernel by kernel; how it was launched and what it follows is
    left to be seen in the trace.
    """
    data: dict[str, Any] = tomllib.loads(builtin_text(pipeline.name) if text is None else text)
    kernels = _kernels(trace)
    stages = []
    for rule in pipeline.stages:
        fitting = sorted(
            {
                kernel_digest(name, signature)
                for name, signature in kernels
                if rule.kernels.fullmatch(name)
                and (rule.signature is None or (signature is not None and rule.signature.search(signature)))
            }
        )
        if fitting:
            extra = {key: getattr(rule, key) for key in ("launch", "before", "after")}
            stages.append(
                {"stage": rule.stage, "kernels": fitting, **{k: v for k, v in extra.items() if v is not None}}
            )
    # A rule that asks for an order with a stage of which there is no kernel never holds, and would name nothing.
    known = {stage["stage"] for stage in stages if "before" not in stage and "after" not in stage}
    data["stages"] = [s for s in stages if {s.get("before"), s.get("after")} <= {None, *known}]
    return tomli_w.dumps(data).encode()


def _kernels(trace: Trace) -> list[tuple[str, str | None]]:
    """Distinct (name, signature) of the trace's kernels, sorted."""
    names, signatures = flat(trace["kernels"]["name"]), flat(trace["kernels"]["signature"])
    pairs = np.unique(np.stack([ints(names.indices, -1), ints(signatures.indices, -1)]), axis=1)
    words, longer = names.dictionary.to_pylist(), [*signatures.dictionary.to_pylist(), None]
    return [(words[a], longer[b]) for a, b in pairs.T.tolist()]
