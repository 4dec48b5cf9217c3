"""Turns the parsed TOML of a pipeline file into a :class:`Pipeline`, refusing whatever it does not understand.

A misspelt key that is ignored would silently change figures, so unknown keys are errors.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, cast

from nvprof_tools.errors import ToolError
from nvprof_tools.model.pipeline import (
    ROLES,
    ClockRules,
    HoldTo,
    InLock,
    Launch,
    LogEvents,
    Pipeline,
    RangeNames,
    StageRule,
)

MAX_STRING: Final = 500
MAX_ITEMS: Final = 500
MAX_STAGES: Final = 500
MAX_WORKERS: Final = 1024


def pipeline_from_dict(data: Mapping[str, Any], api: Mapping[str, tuple[str, ...]], *, builtin: bool) -> Pipeline:
    """Checks every key and value.

    :param api: category → name patterns to start from; ``api_overrides`` replaces whole categories or names.
    :raises ToolError: ``pipeline-file-invalid``, naming the key.
    """
    top = _Table(data, "")
    events = _events(top.table("events"), top.table("extra_events", required=False))
    bracket = top.strings("bracket", ("GPU_START", "GPU_END"))
    if len(bracket) != 2 or any(name not in events.roles for name in bracket):
        _invalid("bracket", "is two names out of [events]: where the bracket starts and where it ends")
    start, end = (ROLES.index(events.roles[name]) for name in bracket)
    if start >= end:
        _invalid("bracket", "ends before it starts")
    pipeline = Pipeline(
        name=top.string("name"),
        description=top.string("description", ""),
        events=events,
        ranges=_ranges(top.table("ranges", required=False)),
        in_lock=_in_lock(top.table("in_lock", required=False)),
        clock=_clock(top.table("clock", required=False)),
        bracket=(bracket[0], bracket[1]),
        api=_api(api, top.table("api_overrides", required=False)),
        stages=_stages(top.tables("stages")),
        workers_per_device=top.integer("workers_per_device", 1, 1, MAX_WORKERS),
        builtin=builtin,
    )
    top.done()
    return pipeline


def _events(table: _Table, extra: _Table) -> LogEvents:
    events = LogEvents(
        **{role: table.strings(role, ()) for role in ROLES},
        partition=table.strings("partition", ("partition",)),
        worker=table.strings("worker", ("worker",)),
        gpu_ms=table.strings("gpu_ms", ("gpu_ms",)),
        synth_ms=table.strings("synth_ms", ("synth_ms",)),
        anchors=table.strings("anchors", ()),
        timing_tags=table.strings("timing_tags", ()),
        completions=table.strings("completions", ()),
        extra={key: extra.string(key) for key in extra.names()},
    )
    table.done()
    names = [name for role in ROLES for name in getattr(events, role)] + list(events.extra)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        _invalid("events", f"gives two meanings to {twice[0]!r}")
    if bad := [name for name in names if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]*", name)]:
        _invalid("events", f"names an event that cannot stand in a log line: {bad[0]!r}")
    return events


def _ranges(table: _Table) -> RangeNames:
    keys = ("section", "mutex_wait", "barrier_wait", "hold", "synthesis")
    ranges = RangeNames(**{key: table.strings(key, ()) for key in keys})
    table.done()
    return ranges


def _in_lock(table: _Table) -> InLock:
    lock = InLock(
        hold_to=cast(HoldTo, table.choice("hold_to", ("last_call", "section_end"), "section_end")),
        first=table.strings("first", ()),
        last=table.strings("last", ()),
        pinning_outside=table.boolean("pinning_outside", False),
    )
    table.done()
    if lock.hold_to == "last_call" and not (lock.first and lock.last):
        _invalid("in_lock", "needs `first` and `last` where hold_to is last_call")
    return lock


def _clock(table: _Table) -> ClockRules:
    rules = ClockRules(
        launches_in_bracket=table.boolean("launches_in_bracket", True),
        syncs_in_bracket=table.boolean("syncs_in_bracket", True),
        section_in_bracket=table.boolean("section_in_bracket", False),
        calls_in_bracket=table.boolean("calls_in_bracket", False),
    )
    table.done()
    return rules


def _api(default: Mapping[str, tuple[str, ...]], table: _Table) -> dict[str, tuple[str, ...]]:
    """Names given in an override leave the category that had them; all else stays."""
    overrides = {category: table.strings(category, ()) for category in table.names()}
    if unknown := sorted(set(overrides) - set(default)):
        _invalid("api_overrides", f"has no category {unknown[0]!r}; it may name {', '.join(default)}")
    moved = {name for names in overrides.values() for name in names}
    return {
        category: (*overrides.get(category, ()), *(name for name in names if name not in moved))
        for category, names in default.items()
    }


def _stages(tables: Iterable[_Table]) -> tuple[StageRule, ...]:
    rules = []
    for table in tables:
        rule = StageRule(
            stage=table.string("stage"),
            kernels=_names(table),
            signature=_regex(table, "signature"),
            launch=cast("Launch | None", table.choice("launch", ("cooperative", "regular"), None)),
            before=table.string("before", None),
            after=table.string("after", None),
            text=", ".join(table.strings("kernels", ())),
        )
        table.done()
        rules.append(rule)
    known = {rule.stage for rule in rules if rule.before is None and rule.after is None}
    for rule in rules:
        for other in (rule.before, rule.after):
            if other is not None and other not in known:
                _invalid("stages", f"{rule.stage!r} is ordered by {other!r}, which no rule without an order defines")
    return tuple(rules)


def _names(table: _Table) -> re.Pattern[str]:
    """`kernels` (wildcards, any of them) or `kernels_regex`."""
    globs, regex = table.strings("kernels", ()), _regex(table, "kernels_regex")
    if (regex is None) == (not globs):
        _invalid(table.path("kernels"), "or kernels_regex must be there, and not both")
    return regex if regex is not None else re.compile("|".join(fnmatch.translate(glob) for glob in globs))


def _regex(table: _Table, key: str) -> re.Pattern[str] | None:
    text = table.string(key, None)
    if text is None:
        return None
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        _invalid(table.path(key), f"is not a regular expression: {error}")


class _Table:
    """A TOML table whose keys are taken one by one; `done` refuses what nobody took."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data = data
        self._where = where
        self._taken: set[str] = set()

    def path(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def names(self) -> list[str]:
        if len(self._data) > MAX_ITEMS:
            _invalid(self._where, f"has more than {MAX_ITEMS} keys")
        return list(self._data)

    def done(self) -> None:
        if unknown := sorted(set(self._data) - self._taken):
            _invalid(self.path(unknown[0][:80]), "is not a key of a pipeline file")

    def _get(self, key: str) -> Any:
        self._taken.add(key)
        return self._data.get(key)

    def table(self, key: str, *, required: bool = True) -> _Table:
        value = self._get(key)
        if value is None and not required:
            value = {}
        if not isinstance(value, dict):
            _invalid(self.path(key), "must be a table")
        return _Table(value, self.path(key))

    def tables(self, key: str) -> list[_Table]:
        value = self._get(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MAX_STAGES or any(not isinstance(v, dict) for v in value):
            _invalid(self.path(key), f"must be an array of at most {MAX_STAGES} tables")
        return [_Table(v, f"{self.path(key)}[{i}]") for i, v in enumerate(value)]

    def string(self, key: str, default: Any = ...) -> Any:
        value = self._get(key)
        if value is None and default is not ...:
            return default
        if not isinstance(value, str) or len(value) > MAX_STRING or (default is ... and not value):
            _invalid(self.path(key), f"must be a text of at most {MAX_STRING} characters")
        return value

    def strings(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._get(key)
        if value is None:
            return default
        items = [value] if isinstance(value, str) else value
        if (
            not isinstance(items, list)
            or len(items) > MAX_ITEMS
            or any(not isinstance(item, str) or not 0 < len(item) <= MAX_STRING for item in items)
        ):
            _invalid(self.path(key), "must be a name or a list of names")
        return tuple(items)

    def boolean(self, key: str, default: bool) -> bool:
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            _invalid(self.path(key), "must be true or false")
        return value

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            _invalid(self.path(key), f"must be a whole number from {low} to {high}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None) -> str | None:
        value = self._get(key)
        if value is None:
            return default
        if value not in allowed:
            _invalid(self.path(key), f"must be one of {', '.join(allowed)}")
        return cast(str, value)


def _invalid(key: str, problem: str) -> NoReturn:
    raise ToolError(
        "pipeline-file-invalid",
        f"the pipeline file is not valid: `{key}` {problem}".replace("\n", " "),
        "docs/pipelines.md lists every key; the built-in files are complete examples",
    )
