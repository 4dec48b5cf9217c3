"""Kernel counters from Nsight Compute, in whichever form they come: reports, printed pages, or a directory of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS, Limits
from nvprof_tools.model.arrays import from_numpy, names
from nvprof_tools.model.counters import INSTANCES, LAUNCHES, VALUES, CounterTable
from nvprof_tools.model.quality import QualityItem, Severity, ordered
from nvprof_tools.model.trace import SourceInfo
from nvprof_tools.sources import digest, ncu_csv, ncu_report, ncu_text
from nvprof_tools.sources.ncu_duplicates import repeats
from nvprof_tools.sources.ncu_rows import Rows, launch_table, value_table, words
from nvprof_tools.sources.ncu_units import base_unit

Form = Literal["report", "page"]


@dataclass(frozen=True)
class Report:
    """One input, read. ``kind``: ``ncu-report``, ``ncu-csv-raw`` or ``ncu-csv-details``; ``ncu-csv`` for both pages."""

    kind: str
    sha256: str
    rows: Rows
    quality: tuple[QualityItem, ...]


def sniff(path: Path, limits: Limits = DEFAULT_LIMITS) -> Form | None:
    """Whether a file is a counter report or page, by its content. Nothing of the name matters."""
    if ncu_report.sniff(path):
        return "report"
    return "page" if ncu_text.sniff(path, limits) else None


def read_counters(paths: Sequence[Path], limits: Limits = DEFAULT_LIMITS) -> CounterTable:
    """Read counters from files and directories; several inputs become one table.

    Of a directory every report and page directly in it is read. An input that holds the same launches as another, as a
    printed page beside its report does, is left out and named by a quality item.

    :raises SourceError: an input is missing, of another kind or damaged; ``ncu-report-missing``: a ``.ncu-rep`` is
        given and the package that reads it is not installed; ``counters-empty``: no launch in any input.
    """
    quality: list[QualityItem] = []
    reports = _read_all(_expand(paths, limits, quality), limits)
    for report in reports:
        quality += report.quality
    dropped = repeats([report.rows for report in reports], [_rank(report.kind) for report in reports])
    if dropped:
        quality.append(
            QualityItem(
                "ncu-duplicate-report",
                Severity.INFO,
                len(dropped),
                f"{len(dropped)} of {len(reports)} counter inputs hold the same launches as another and were left out",
            )
        )
    kept = [report for i, report in enumerate(reports) if i not in dropped]
    if not any(report.rows.launches for report in kept):
        raise SourceError(
            "counters-empty", "the counter reports hold no launch", "check the kernel filter of the ncu command"
        )
    quality += _value_items([report.rows for report in kept])
    launches, values = _tables([report.rows for report in kept])
    kinds = {report.kind for report in kept}
    source = SourceInfo(
        kind=kinds.pop() if len(kinds) == 1 else "ncu", version=None, sha256=_digest([r.sha256 for r in reports])
    )
    return CounterTable(launches, values, source, ordered(quality))


def read_instances(path: Path, metrics: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> pa.Table:
    """Values by instance of some metrics of one report or raw page, as :data:`~nvprof_tools.model.counters.INSTANCES`.

    A page has them only where it was printed with ``--print-metric-instances``.

    :raises SourceError: as :func:`read_counters`.
    """
    form = _form_of(path, limits)
    found: list[Mapping[str, Any]]
    if form == "report":
        found = list(ncu_report.instances(path, metrics, limits))
    else:
        found = [
            {"index": index, "metric": metric, "unit": unit, "values": values, "ids": None, "labels": labels}
            for index, metric, unit, labels, values in ncu_csv.instances(path, metrics, limits)
        ]
    return _instance_table(found)


def _expand(paths: Sequence[Path], limits: Limits, quality: list[QualityItem]) -> list[tuple[Path, Form]]:
    """Files to read, in order. Inside a directory what is of another kind is skipped; given by name it is an error."""
    out: list[tuple[Path, Form]] = []
    for path in paths:
        if not path.is_dir():
            out.append((path, _form_of(path, limits)))
            continue
        entries = sorted((entry for entry in path.iterdir() if entry.is_file()), key=lambda entry: entry.name)
        if len(entries) > limits.tables:
            raise SourceError(
                "limit-files", f"the counter directory holds more than {limits.tables} files", "give fewer reports"
            )
        forms = [(entry, form) for entry in entries if (form := sniff(entry, limits)) is not None]
        if not forms:
            raise SourceError(
                "not-a-counter-report",
                "the directory holds no counter report and no counter page",
                "give .ncu-rep files, or pages printed with: ncu --import REPORT.ncu-rep --csv --page raw",
            )
        pages: list[tuple[Path, Form]] = [(entry, form) for entry, form in forms if form == "page"]
        if pages and len(pages) < len(forms) and not ncu_report.available():
            quality.append(
                QualityItem(
                    "ncu-report-skipped",
                    Severity.NOTICE,
                    len(forms) - len(pages),
                    f"{len(forms) - len(pages)} .ncu-rep were not read, only the pages beside them: "
                    "the package ncu-report is not installed",
                    ncu_report.INSTALL,
                )
            )
            forms = pages
        out += forms
    return out


def _form_of(path: Path, limits: Limits) -> Form:
    ncu_text.check_file(path, limits)
    form = sniff(path, limits)
    if form is None:
        raise SourceError(
            "not-a-counter-report",
            "the input is neither a .ncu-rep nor a page that ncu printed as CSV",
            "print one with: ncu --import REPORT.ncu-rep --csv --page raw",
        )
    return form


def _read_all(inputs: Sequence[tuple[Path, Form]], limits: Limits) -> list[Report]:
    """Read inputs, in order: reports side by side (each is read in a process of its own), pages one by one."""
    with ThreadPoolExecutor(max_workers=ncu_report.WORKERS) as pool:
        running = {
            i: pool.submit(_read, path, form, limits) for i, (path, form) in enumerate(inputs) if form == "report"
        }
        try:
            return [
                running[i].result() if i in running else _read(path, form, limits)
                for i, (path, form) in enumerate(inputs)
            ]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _read(path: Path, form: Form, limits: Limits) -> Report:
    ncu_text.check_file(path, limits)
    if form == "report":
        rows, quality = ncu_report.read(path, limits)
        kind = "ncu-report"
    else:
        kind, rows, quality = ncu_csv.read(path, limits)
    return Report(kind, digest.of_file(path), rows, tuple(quality))


def _rank(kind: str) -> int:
    """Lower: says more."""
    return {"ncu-report": 0, "ncu-csv-raw": 1}.get(kind, 2)


def _tables(reports: Sequence[Rows]) -> tuple[pa.Table, pa.Table]:
    launches: list[pa.Table] = []
    values: list[pa.Table] = []
    base = 0
    for number, rows in enumerate(reports):
        launches.append(_shifted(launch_table(rows.launches, number), base, LAUNCHES.schema))
        values.append(_shifted(value_table(rows), base, VALUES.schema))
        base += len(rows.launches)
    return _joined(launches), _joined(values)


def _shifted(table: pa.Table, base: int, schema: pa.Schema) -> pa.Table:
    numbers = np.asarray(table.column("launch").to_numpy(), np.int32) + np.int32(base)
    return table.set_column(table.column_names.index("launch"), schema.field("launch"), from_numpy(numbers))


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _digest(digests: Sequence[str]) -> str:
    """One digest for the inputs: the file's own, or of the sorted digests, so that the order does not matter."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def _value_items(reports: Sequence[Rows]) -> list[QualityItem]:
    out: list[QualityItem] = []
    not_numbers = sum(rows.not_numbers for rows in reports)
    no_data = sum(rows.no_data for rows in reports)
    if not_numbers:
        out.append(
            QualityItem(
                "ncu-not-a-number",
                Severity.NOTICE,
                not_numbers,
                f"{not_numbers} counter values are not a number and were left out of every mean",
            )
        )
    if no_data:
        out.append(
            QualityItem(
                "ncu-no-data",
                Severity.INFO,
                no_data,
                f"{no_data} counter values were asked for and have no data",
            )
        )
    return out


def _instance_table(found: Sequence[Mapping[str, Any]]) -> pa.Table:
    if not found:
        return INSTANCES.empty()
    sizes = [len(item["values"]) for item in found]
    bases = [base_unit(item["unit"]) for item in found]
    value = np.concatenate(
        [np.array(item["values"], np.float64) * factor for item, (_, factor) in zip(found, bases, strict=True)]
    )
    ids = np.concatenate([np.array(item["ids"] or [0] * len(item["values"]), np.uint64) for item in found])
    has_id = np.repeat(np.array([item["ids"] is not None for item in found]), sizes)
    labels = [label or None for item in found for label in (item["labels"] or [None] * len(item["values"]))]
    return pa.Table.from_arrays(
        [
            from_numpy(np.repeat(np.array([item["index"] for item in found], np.int64), sizes)),
            _repeated([item["metric"] for item in found], sizes),
            from_numpy(np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])),
            from_numpy(ids, has_id),
            words(labels),
            _repeated([unit for unit, _ in bases], sizes),
            from_numpy(value, np.isfinite(value)),
        ],
        schema=INSTANCES.schema,
    )


def _repeated(items: Sequence[str], sizes: Sequence[int]) -> pa.DictionaryArray:
    distinct = sorted(set(items))
    codes = np.array([distinct.index(item) for item in items], np.int32)
    return names(np.repeat(codes, sizes), distinct)


__all__ = ["Report", "read_counters", "read_instances", "sniff"]
