"""Reads a part of a ``.ncu-rep`` in a process of its own: run as a script, it needs nothing else of this package.

The reader of the format is a native library that keeps every launch it has parsed until its process ends, some ten
times the size they have in the file, and that was not written for damaged files. A process for each part bounds the
memory, uses the processors there are, and turns a crash into an exit status.

The argument is JSON: ``path``; ``slim``, a smaller copy to read instead where it says the same, or null; ``part`` of
``parts``; ``memory`` (bytes of address space) and ``seconds`` (of processor time) it may take; ``instances`` (metric
names, or null for scalars); ``longest`` (of a text). The answer is one JSON document on standard output.
"""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

NO_PACKAGE = 3
UNREADABLE = 4
SKIPPED_PREFIXES = ("breakdown:", "group:")


def main() -> int:
    """Answer one request."""
    request = json.loads(sys.argv[1])
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # The native library may print; nothing of it may reach the answer.
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    _limit(int(request["memory"]), int(request["seconds"]))
    try:
        import ncu_report
    except ImportError:
        return NO_PACKAGE
    try:
        context = ncu_report.load_report(request["path"])
        if request["slim"] is not None:
            context = _trusted(context, ncu_report.load_report(request["slim"]))
        actions = [(r, a) for r in range(context.num_ranges()) for a in range(context.range_by_idx(r).num_actions())]
        part, parts = request["part"], request["parts"]
        begin, end = len(actions) * part // parts, len(actions) * (part + 1) // parts
        reader = _Instances(request) if request["instances"] is not None else _Scalars(request)
        for index in range(begin, end):
            r, a = actions[index]
            reader.take(index, context.range_by_idx(r).action_by_idx(a))
        document = {**reader.document(), "actions": len(actions)}
    except (Exception, MemoryError):
        return UNREADABLE
    json.dump(document, answer)
    answer.close()
    return 0


def _limit(memory: int, seconds: int) -> None:
    """Cap what a damaged or hostile report may cost. Processor time, not the clock: a busy machine is no fault."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # a platform without it, or a lower limit already in force
        return


def _trusted(whole: Any, slim: Any) -> Any:
    """The smaller copy, if it has the same launches and says the same of the first one; else the whole report."""
    shapes = [[c.range_by_idx(r).num_actions() for r in range(c.num_ranges())] for c in (whole, slim)]
    if shapes[0] != shapes[1] or not shapes[0] or not shapes[0][0]:
        return whole
    one, other = (c.range_by_idx(0).action_by_idx(0) for c in (whole, slim))
    names = one.metric_names()
    if sorted(names) != sorted(other.metric_names()):
        return whole
    for name in names:
        a, b = one.metric_by_name(name), other.metric_by_name(name)
        if (a.kind(), a.unit(), a.as_string(), a.num_instances()) != (
            b.kind(),
            b.unit(),
            b.as_string(),
            b.num_instances(),
        ):
            return whole
        x, y = a.as_double(), b.as_double()
        if x != y and not (math.isnan(x) and math.isnan(y)):
            return whole
    return slim


class _Scalars:
    """Every launch and the aggregate of each of its metrics."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.longest = int(request["longest"])
        self.metrics: dict[str, int] = {}
        self.units: list[str] = []
        self.launches: list[dict[str, Any]] = []
        self.not_numbers = self.no_data = 0

    def take(self, index: int, action: Any) -> None:
        metrics: list[int] = []
        values: list[float] = []
        instances: dict[int, int] = {}
        texts: dict[int, str] = {}
        for name in action.metric_names():
            if name.startswith(SKIPPED_PREFIXES):
                continue
            metric = action.metric_by_name(name)
            kind = metric.kind()
            value = 0.0
            if kind in {metric.ValueKind_DOUBLE, metric.ValueKind_FLOAT}:
                value = metric.as_double()
                if not math.isfinite(value):
                    self.not_numbers += 1
                    continue
            elif kind in {metric.ValueKind_UINT32, metric.ValueKind_UINT64}:
                value = float(metric.as_uint64())
            elif kind == metric.ValueKind_STRING:
                text = metric.as_string()
                if not text:
                    continue
                texts[len(metrics)] = text[: self.longest]
            else:
                self.no_data += 1
                continue
            count = metric.num_instances()
            if count and value == 0.0 and not texts.get(len(metrics)) and not metric.has_value():
                continue  # values by instance only: the zero is the library's word for no aggregate
            code = self.metrics.get(name)
            if code is None:
                code = self.metrics[name] = len(self.metrics)
                self.units.append(metric.unit())
            if count:
                instances[len(metrics)] = count
            metrics.append(code)
            values.append(value)
        self.launches.append(
            {
                "index": index,
                "kind": action.workload_type(),
                "function": action.name(action.NameBase_FUNCTION),
                "signature": action.name(action.NameBase_DEMANGLED),
                "mangled": action.name(action.NameBase_MANGLED),
                "nvtx": _nvtx(action),
                "metrics": metrics,
                "values": values,
                "instances": instances,
                "texts": texts,
            }
        )

    def document(self) -> dict[str, Any]:
        return {
            "metrics": list(self.metrics),
            "units": self.units,
            "launches": self.launches,
            "not_numbers": self.not_numbers,
            "no_data": self.no_data,
        }


class _Instances:
    """Values by instance of some metrics."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.wanted: list[str] = request["instances"]
        self.found: list[dict[str, Any]] = []

    def take(self, index: int, action: Any) -> None:
        names = set(action.metric_names())
        for name in self.wanted:
            if name not in names:
                continue
            metric = action.metric_by_name(name)
            count = metric.num_instances()
            if not count:
                continue
            ids = metric.correlation_ids() if metric.has_correlation_ids() else None
            texts = ids is not None and ids.kind(0) == ids.ValueKind_STRING
            self.found.append(
                {
                    "index": index,
                    "metric": name,
                    "unit": metric.unit(),
                    "values": [metric.as_double(i) for i in range(count)],
                    "ids": None if ids is None or texts else [ids.as_uint64(i) for i in range(count)],
                    "labels": [ids.as_string(i) for i in range(count)] if ids is not None and texts else None,
                }
            )

    def document(self) -> dict[str, Any]:
        return {"instances": self.found}


def _nvtx(action: Any) -> list[list[Any]] | None:
    """``[domain, push/pop ranges outermost first, start/end ranges]`` of each domain; None: not recorded."""
    state = action.nvtx_state()
    if state is None:
        return None
    found = []
    for number in state.domains():
        domain = state.domain_by_id(number)
        found.append([domain.name(), list(domain.push_pop_ranges()), list(domain.start_end_ranges())])
    return found


if __name__ == "__main__":
    sys.exit(main())
