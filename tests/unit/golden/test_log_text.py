"""A log written from what was read of it reads back as the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.errors import ToolError
from nvprof_tools.golden.log_text import render
from nvprof_tools.model.trace import SourceInfo
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.sources.timeline_log import parse_log, read_log

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
LOGS = sorted(
    [*(FIXTURES / "runs").glob("*.log"), *(FIXTURES / "traces").glob("*/app.log"), *(FIXTURES / "logs").rglob("*.log")]
)


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_run_of_every_log_reads_back_the_same(path: Path) -> None:
    pipeline = load_pipeline("cuzk")
    try:
        log = read_log(path, pipeline)
    except ToolError:
        pytest.skip("not a readable log")
    for run in log.runs:
        text = render(run, pipeline)
        (again,) = parse_log(text, pipeline, source=SourceInfo("test", None, "")).runs
        assert again.partitions.equals(run.partitions)
        assert again.anchor_utc_ns == run.anchor_utc_ns
        assert again.completions.drop_columns("line").equals(run.completions.drop_columns("line"))
        for column in ("time_ms", "event", "job", "partition", "worker"):
            assert again.events[column].to_pylist() == run.events[column].to_pylist(), column
        assert render(again, pipeline) == text


def test_nothing_but_its_own_lines_is_written() -> None:
    pipeline = load_pipeline("cuzk")
    text = (
        "2026-01-02T03:04:05.000001Z  INFO x: starting cuzk engine host=box7 user=alice\n"
        "TIMELINE,1,GPU_START,j,worker=0,partition=0,token=abc\n"
        "PATH=/usr/bin\n"
        "TIMELINE,5,GPU_END,j,worker=0,partition=0,gpu_ms=4\n"
    )
    (run,) = parse_log(text, pipeline, source=SourceInfo("test", None, "")).runs
    assert render(run, pipeline) == (
        "2026-01-02T03:04:05.000001000Z  INFO engine: starting cuzk engine\n"
        "TIMELINE,1,GPU_START,j,worker=0,partition=0\n"
        "TIMELINE,5,GPU_END,j,worker=0,partition=0,gpu_ms=4\n"
    )
