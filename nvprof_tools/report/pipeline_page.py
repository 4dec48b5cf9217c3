"""A pipeline file as a reader sees it: what it calls its events, ranges, calls and kernel stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nvprof_tools.model.pipeline import ROLES, Pipeline, StageRule


def listing(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """One line a pipeline."""
    for pipeline in pipelines:
        yield f"{pipeline.name:<10} {pipeline.description}"
    yield ""
    yield "Show one with `nvprof-tools pipelines NAME`; start your own from `nvprof-tools pipelines NAME --source`."


def page(p: Pipeline) -> Iterator[str]:
    """Everything one pipeline file says, defaults filled in."""
    yield f"{p.name}: {p.description}"
    yield f"workers a GPU: {p.workers_per_device}; bracket: {p.bracket[0]} to {p.bracket[1]}"
    yield ""
    yield "events"
    for role in ROLES:
        yield f"  {role:<12} {_names(getattr(p.events, role))}"
    for key in ("partition", "worker", "gpu_ms", "synth_ms"):
        yield f"  key {key:<8} {_names(getattr(p.events, key))}"
    yield f"  anchors      {_names(p.events.anchors)}"
    yield f"  figures      {_names(p.events.timing_tags)}"
    for name, meaning in p.events.extra.items():
        yield f"  {name:<12} {meaning}"
    yield ""
    yield "ranges"
    for key in ("section", "mutex_wait", "barrier_wait", "hold", "synthesis"):
        yield f"  {key:<12} {_names(getattr(p.ranges, key))}"
    yield ""
    yield "GPU mutex"
    if p.in_lock.hold_to == "last_call":
        yield f"  held from the first {_names(p.in_lock.first, ' or ')}"
        yield f"  to the last {_names(p.in_lock.last, ' or ')}"
    else:
        yield "  held from the end of the lock wait to the end of the section"
    yield f"  pages are pinned and unpinned {'outside' if p.in_lock.pinning_outside else 'inside'} it"
    yield ""
    yield "inside the bracket"
    for key in ("launches", "syncs", "section", "calls"):
        yield f"  {key:<12} {'yes' if getattr(p.clock, f'{key}_in_bracket') else 'no'}"
    yield ""
    yield "CUDA calls by category"
    for category, names in p.api.items():
        yield f"  {category:<16} {_names(names)}"
    yield ""
    yield "kernel stages, first match decides"
    for rule in p.stages:
        yield f"  {rule.stage:<12} {_rule(rule)}"


def _names(names: Sequence[str], separator: str = ", ") -> str:
    return separator.join(names) or "-"


def _rule(rule: StageRule) -> str:
    parts = [rule.text or rule.kernels.pattern]
    if rule.signature is not None:
        parts.append(f"signature {rule.signature.pattern}")
    if rule.launch is not None:
        parts.append(f"{rule.launch} launch")
    if rule.before is not None:
        parts.append(f"before {rule.before}")
    if rule.after is not None:
        parts.append(f"after {rule.after}")
    return "; ".join(parts)
