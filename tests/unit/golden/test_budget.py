"""Budgets against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nvprof_tools.errors import UsageError
from nvprof_tools.golden.budget import check_budget, limit_of
from nvprof_tools.model.attribution import Attribution, JobView, MemoryUse, PartitionView, Rung
from tests.attribution_samples import empty, rich

MS = 1_000_000


def partition(number: int, start: int, parts: dict[str, int], locks: dict[str, int] | None) -> PartitionView:
    end = start + sum(parts.values())
    return PartitionView(number, "j", number, 0, 0, start, end, start, end, parts, {}, locks, {}, False)


@pytest.fixture
def run() -> Attribution:
    """Two partitions of 100 ms each: 8 + 4 ms pinning, 60 ms kernels, 10 ms of driver locks in one; two proofs."""
    first = partition(0, 0, {"kernel": 60 * MS, "host_register": 8 * MS, "cpu": 32 * MS}, {"launch": 10 * MS})
    second = partition(1, 100 * MS, {"kernel": 60 * MS, "host_register": 4 * MS, "cpu": 36 * MS}, {})
    jobs = tuple(
        JobView(name, 1, 100 * MS, 300 * MS, queue * MS, 100 * MS, None, {}, False)
        for name, queue in (("a", 150), ("b", 50))
    )
    ladder = (Rung(0, "sm_active", None, 0.5, "GPU_METRICS"), Rung(0, "gr_active", None, None, "GPU_METRICS"))
    memory = (MemoryUse(0, 3 * 1024**3, 5, "x"), MemoryUse(1, None, None, "x"))
    return replace(rich(), partitions=(first, second), jobs=jobs, ladder=ladder, memory=memory)


def outcome(run: Attribution, tmp_path: Path, *lines: str) -> list[tuple[bool, str]]:
    path = tmp_path / "budget.toml"
    path.write_text("[budget]\n" + "\n".join(lines))
    return [(line.kept, line.message) for line in check_budget(run, path)]


@pytest.mark.parametrize(
    ("line", "kept", "shown"),
    [
        ('host_register = "< 6.01 %"', True, "6.00 % of the sections"),
        ('host_register = "< 6 %"', False, "6.00 % of the sections"),
        ('host_register = "<= 6 ms"', True, "6 ms a partition"),
        ('driver_lock = "< 5 %"', False, "5.00 % of the sections"),
        ('mutex_wait = "= 0 ms"', True, "0 ns a partition"),
        ('sm_active = "> 50 %"', False, "50.00 %"),
        ('sm_active = ">= 50 %"', True, "50.00 %"),
        ('gr_active = "> 1 %"', False, "not measured"),
        ('queue = "< 100.1 ms"', True, "100 ms a partition"),
        ('synthesis = "< 0.3 s"', False, "300 ms a partition"),
        ('slack = "< 1 s"', False, "not measured"),
        ('peak_memory = "< 3.5 GiB"', True, "3 GiB"),
    ],
)
def test_a_line(run: Attribution, tmp_path: Path, line: str, kept: bool, shown: str) -> None:
    ((found, message),) = outcome(run, tmp_path, line)
    assert found is kept
    subject, limit = line.split(" = ")
    word = "kept" if kept else "broken"
    assert message == f"budget of {subject} {word}: {shown}, asked for {limit.strip(chr(34))}"


def test_the_wall_a_proof_and_the_devices_share(run: Attribution, tmp_path: Path) -> None:
    wall = run.window.wall_ns
    kernel = sum(v.categories["kernel"] for v in run.devices) / sum(v.wall_ns for v in run.devices)
    lines = (f'wall = "<= {wall / 2} ns"', f'"device.kernel" = "> {kernel * 100 - 0.01:.4f} %"')
    assert [kept for kept, _ in outcome(run, tmp_path, *lines)] == [True, True]


def test_without_sections_nothing_is_kept(tmp_path: Path) -> None:
    found = outcome(empty(), tmp_path, 'host_register = "< 99 %"', 'peak_memory = "< 99 GiB"')
    assert [(kept, "not measured" in message) for kept, message in found] == [(False, True), (False, True)]


@pytest.mark.parametrize(
    "line",
    ['nonsense = "< 5 %"', 'host_register = "5 %"', "host_register = 5", 'host_register = "< 5"', 'queue = "< 5 %"',
     'sm_active = "< 5 ms"', 'peak_memory = "< 5 %"', 'cpu = "< -5 %"', 'cpu = "< 1e9 %"'],
)  # fmt: skip
def test_a_line_that_means_nothing_is_refused(run: Attribution, tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        outcome(run, tmp_path, line)
    assert caught.value.slug == "budget-invalid"


@pytest.mark.parametrize("text", ["", "[budget]\n", "x = 1\n", '[budget]\ncpu = "< 1 %"\n[more]\n'])
def test_a_file_without_a_budget_is_refused(run: Attribution, tmp_path: Path, text: str) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        check_budget(run, path)
    assert caught.value.slug == "budget-invalid"


def test_no_file_and_no_toml_are_one_error(run: Attribution, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff[")
    for path in (tmp_path / "none.toml", tmp_path / "bad.toml", tmp_path):
        with pytest.raises(UsageError) as caught:
            check_budget(run, path)
        assert caught.value.slug == "budget-unreadable"


def test_units() -> None:
    assert limit_of("queue", "< 1.5 s").bound == 1.5e9
    assert limit_of("cpu", ">2%").bound == pytest.approx(0.02)
