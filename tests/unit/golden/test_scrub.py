"""Secrets planted wherever a trace has text: none of them reaches a golden."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from nvprof_tools.attribution.attribute import attribute
from nvprof_tools.cli.golden_forms import forms
from nvprof_tools.golden.check import check
from nvprof_tools.golden.hashed_pipeline import hashed
from nvprof_tools.golden.record import Request, record
from nvprof_tools.golden.scrub import kernel_digest, scrub
from nvprof_tools.model.arrays import strings
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.model.tables import TABLES
from nvprof_tools.model.trace import Trace
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.sources.arrow_dir import write_tables
from tests.golden.generated import generated, table

SECRET = "s3cr3t"
PLACE = f"/home/{SECRET}/src/prover.cu"


def put(found: pa.Table, column: str, word: str) -> pa.Table:
    """The table with every value of a text column replaced."""
    at = found.schema.get_field_index(column)
    values = strings([word] * len(found))
    if pa.types.is_dictionary(found.schema.field(at).type):
        values = values.dictionary_encode()
    return found.set_column(at, found.schema.field(at), values)


@pytest.fixture
def tainted() -> Trace:
    trace = generated(1, steps=6)
    tables = dict(trace.tables)
    tables["kernels"] = put(put(put(tables["kernels"], "name", PLACE), "signature", PLACE), "mangled", f"_Z{SECRET}")
    tables["api_calls"] = put(tables["api_calls"], "name", PLACE)
    tables["os_calls"] = put(tables["os_calls"], "name", f"pthread_{PLACE}")
    tables["nvtx_ranges"] = put(put(put(tables["nvtx_ranges"], "name", PLACE), "domain", SECRET), "category", SECRET)
    tables["threads"] = put(tables["threads"], "name", SECRET)
    tables["processes"] = put(tables["processes"], "name", SECRET)
    tables["devices"] = put(tables["devices"], "name", f"board of {SECRET}@host")
    tables["nvtx_marks"] = table(
        "nvtx_marks", [{"time_ns": 5, "process": 0, "thread": 0, "domain": SECRET, "name": f"login {SECRET}"}]
    )
    tables["diagnostics"] = table(
        "diagnostics", [{"time_ns": 5, "severity": "info", "source": "daemon", "text": f"{PLACE} loaded"}]
    )
    tables["profiler_overhead"] = table(
        "profiler_overhead",
        [{"start_ns": 5, "end_ns": 9, "process": 0, "thread": 0, "name": PLACE, "is_profiler": True}],
    )
    tables["gpu_metrics"] = table("gpu_metrics", [{"time_ns": 5, "device": 0, "metric": f"{SECRET} [x]", "value": 1.0}])
    items = (
        QualityItem("profiler-warning", Severity.NOTICE, 1, f"the profiler says: user {SECRET} may not"),
        QualityItem("rows-read", Severity.INFO, 1, f"read {PLACE}", f"look at {PLACE}"),
    )
    session = replace(trace.session, facts={"where": PLACE, "host": f"{SECRET}.corp"})
    return replace(trace, tables=tables, quality=items, session=session, embedded_log=f"user={SECRET}\n")


def test_no_secret_reaches_a_file(tainted: Trace, tmp_path: Path) -> None:
    write_tables(tainted, tmp_path / "trace")
    assert SECRET.encode() in b"".join(p.read_bytes() for p in (tmp_path / "trace").iterdir())
    record(Request(tmp_path / "trace"), tmp_path / "golden", forms())
    for path in sorted((tmp_path / "golden").rglob("*")):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path.name
        if path.suffix == ".parquet":
            assert SECRET not in str(parquet.read_table(path).to_pylist()), path.name
    assert check(tmp_path / "golden", forms()).passed


def test_ids_of_the_system_and_addresses_are_numbered_anew() -> None:
    trace = generated(1, steps=6)
    tables = dict(trace.tables)
    rows = [
        {
            "time_ns": t,
            "process": 0,
            "device": 0,
            "free": free,
            "bytes": 64,
            "address": 0x7F00_0000_1000 + a,
            "memory": "device",
        }
        for t, a, free in ((1, 0, False), (2, 4096, False), (3, 0, True))
    ]
    tables["memory_events"] = table("memory_events", rows)
    trace = replace(trace, tables=tables)
    pipeline = load_pipeline("generic")
    clean = scrub(trace, attribute(trace, None, (pipeline,)), pipeline)
    assert clean["memory_events"]["address"].to_pylist() == [0, 1, 0]
    assert clean["threads"]["tid"].to_pylist() == [1, 2]
    assert clean["processes"]["pid"].to_pylist() == [1]


def test_every_table_keeps_its_schema_and_is_clean_already_when_scrubbed_again() -> None:
    trace = generated(2, steps=6)
    pipeline = load_pipeline("generic")
    found = attribute(trace, None, (pipeline,))
    once = scrub(trace, found, pipeline)
    for name, spec in TABLES.items():
        assert once[name].schema.equals(spec.schema), name
    twice = scrub(once, attribute(once, None, (pipeline,)), pipeline)
    for name in TABLES:
        assert twice[name].equals(once[name]), name


def test_a_pipeline_of_hidden_names_is_a_valid_one_whatever_kernels_there_are(tmp_path: Path) -> None:
    trace = generated(1, steps=6)
    for name in ("cuzk", "generic"):
        (tmp_path / "pipeline.toml").write_bytes(hashed(load_pipeline(name), trace, None))
        assert load_pipeline(str(tmp_path / "pipeline.toml")).stages == ()
    named = replace(trace, tables={**trace.tables, "kernels": put(trace["kernels"], "name", "accumulate")})
    (tmp_path / "pipeline.toml").write_bytes(hashed(load_pipeline("cuzk"), named, None))
    (rule,) = load_pipeline(str(tmp_path / "pipeline.toml")).stages
    assert rule.stage == "msm"
    assert rule.matches(kernel_digest("accumulate", None), None, None)
    assert not rule.matches("accumulate", None, None)
