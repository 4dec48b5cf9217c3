"""Runs as numbers: what is cold, what a proof is, what the wall is made of; and which runs may be compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from nvprof_tools.errors import SourceError, UsageError
from nvprof_tools.golden.comparable import differences
from nvprof_tools.golden.compare import compare
from nvprof_tools.golden.measure import Measured, brackets_of, from_attribution, from_log
from nvprof_tools.model.attribution import Attribution
from nvprof_tools.model.comparison import RunFacts
from nvprof_tools.model.trace import EVENT_SCHEMA, PARTITION_SCHEMA, LogRun
from tests.attribution_samples import empty, rich

MS = 1_000_000


def log_of(rows: list[tuple[str, int, int, int, int]]) -> LogRun:
    """(job, partition, worker, GPU_START, GPU_END) in ms."""
    keys = ("job", "partition", "worker", "gpu_start_ms", "gpu_end_ms")
    table = pa.Table.from_pylist([dict(zip(keys, row, strict=True)) for row in rows], schema=PARTITION_SCHEMA)
    return LogRun(1, None, EVENT_SCHEMA.empty_table(), table)


def two_workers(proofs: int, partitions: int) -> LogRun:
    """Worker 0 and 1 take turns, 10 ms apart, 20 ms each."""
    rows = [
        (f"job{j}", p, (j * partitions + p) % 2, 10 * (j * partitions + p))
        for j in range(proofs)
        for p in range(partitions)
    ]
    return log_of([(job, p, w, at, at + 20) for job, p, w, at in rows])


def test_the_first_partition_of_each_worker_is_cold() -> None:
    found = from_log(two_workers(2, 5), "x", None)
    assert found.cold.tolist() == [True, True] + [False] * 8
    assert (found.facts.partitions, found.facts.cold, found.facts.workers) == (8, 2, 2)
    assert (found.facts.proofs, found.facts.partitions_per_proof) == (2, 5)


def test_a_run_of_three_proofs_spares_its_first() -> None:
    found = from_log(two_workers(3, 5), "x", None)
    assert found.cold.tolist() == [True] * 5 + [False] * 10


def test_the_walls_parts_add_up() -> None:
    found = from_log(two_workers(2, 5), "x", None)
    assert found.wall_ns == (9 * 10 + 20) * MS
    first_completions = (20 + 10) * MS  # of the two cold ones
    assert found.increments.sum() + first_completions == found.wall_ns
    assert len(found.increments) == 8


def test_workers_nobody_names_are_counted_by_their_overlap() -> None:
    rows = two_workers(2, 5)
    table = rows.partitions.set_column(2, PARTITION_SCHEMA.field("worker"), pa.nulls(10, pa.int32()))
    found = from_log(replace(rows, partitions=table), "x", None)
    assert found.facts.workers is None
    assert int(found.cold.sum()) == 2


def test_open_brackets_are_left_out_and_none_at_all_is_refused() -> None:
    run = two_workers(2, 5)
    rows = run.partitions.to_pylist()
    rows[-1]["gpu_end_ms"] = None
    found = from_log(replace(run, partitions=pa.Table.from_pylist(rows, PARTITION_SCHEMA)), "x", None)
    assert len(found.cold) == 9
    with pytest.raises(SourceError) as caught:
        from_log(replace(run, partitions=run.partitions.slice(0, 0)), "x", None)
    assert caught.value.slug == "run-without-partitions"


def test_an_attributions_categories_are_those_of_its_whole_partitions() -> None:
    a: Attribution = rich()
    found = from_attribution(a, None, "x")
    whole = [p for p in a.partitions if p.wall_ns is not None and not p.open]
    assert found.columns["section"].sum() == sum(p.wall_ns or 0 for p in whole)
    for name in ("kernel", "mutex_wait", "host_register"):
        assert found.columns[name].sum() == sum(p.categories.get(name, 0) for p in whole)
    assert found.wall_ns == a.window.wall_ns
    brackets = brackets_of(a, "x")
    assert brackets.columns["gpu_bracket"].sum() == sum(
        (p.bracket_end_ns or 0) - (p.bracket_start_ns or 0) for p in a.partitions if p.bracket_end_ns is not None
    )


def test_an_attribution_without_sections_is_refused() -> None:
    for measure in (lambda: from_attribution(empty(), None, "x"), lambda: brackets_of(empty(), "x")):
        with pytest.raises(SourceError) as caught:
            measure()
        assert caught.value.slug == "run-without-partitions"


# --- may they be compared --------------------------------------------------------------------------------------------

FACTS = RunFacts(
    "A", "trace", "cuzk", 2, 8, 2, 5, 2, ("NVIDIA H200",), 100.0, 1e6, frozenset({"kernels"}), {"driver_version": "1"}
)


@pytest.mark.parametrize(
    ("change", "aspect", "weight"),
    [
        ({"pipeline": "generic"}, "pipeline", "refuses"),
        ({"partitions_per_proof": 10}, "partitions a proof", "refuses"),
        ({"devices": ("NVIDIA A100",)}, "GPU", "refuses"),
        ({"workers": 1}, "workers", "notes"),
        ({"proofs": 4}, "proofs", "notes"),
        ({"kind": "log"}, "kind", "notes"),
        ({"kernels_per_partition": 103.0}, "kernels a partition", "notes"),
        ({"upload_bytes_per_partition": 2e6}, "bytes uploaded a partition", "notes"),
        ({"measured": frozenset({"kernels", "os_calls"})}, "recorded events", "notes"),
        ({"setup": {"driver_version": "2"}}, "driver_version", "notes"),
    ],
)
def test_each_respect_in_which_runs_differ_is_told(change: dict, aspect: str, weight: str) -> None:
    (found,) = differences([FACTS, replace(FACTS, **change)])
    assert (found.aspect, found.weight) == (aspect, weight)


def test_what_is_not_known_differs_from_nothing() -> None:
    unknown = RunFacts("B", "golden", None, None, 8, 2, None, None)
    assert differences([FACTS, unknown]) == ()
    assert differences([FACTS, FACTS]) == ()
    assert differences([FACTS, replace(FACTS, kernels_per_partition=101.0)]) == ()


def steady(level: float, count: int = 12, **facts: object) -> Measured:
    rng = np.random.default_rng(int(level))
    section = level * MS * (1 + 0.02 * rng.normal(size=count))
    cold = np.zeros(count, bool)
    cold[: min(2, count - 1)] = True
    known = replace(FACTS, partitions=int((~cold).sum()), **facts)
    return Measured(
        known,
        int(section.sum()),
        {"section": section, "kernel": section * 0.6, "cpu": section * 0.4},
        cold,
        section[~cold],
    )


def test_runs_of_other_set_ups_are_refused_unless_forced() -> None:
    with pytest.raises(UsageError) as caught:
        compare([steady(100)], [steady(100, devices=("NVIDIA A100",))])
    assert caught.value.slug == "not-comparable"
    assert "NVIDIA H200 against NVIDIA A100" in caught.value.message
    forced = compare([steady(100)], [steady(100, devices=("NVIDIA A100",))], force=True)
    assert forced.differences[0].weight == "refuses"


def test_a_slow_start_alone_is_no_slow_prover() -> None:
    """The wall is 40 % longer and all of it lies before the steady part."""
    base = steady(100)
    slow_start = replace(base, wall_ns=int(base.wall_ns * 1.4))
    found = compare([base], [slow_start])
    assert found.headline.fraction == pytest.approx(0.4, abs=0.01)
    assert found.verdict not in {"slower", "faster"}


def test_shares_add_up_and_changes_of_parts_are_of_the_sections() -> None:
    found = compare([steady(100)], [steady(130)])
    parts = [c for c in found.changes if c.level == "categories"]
    assert sum(c.share_a or 0 for c in parts) == pytest.approx(1)
    section = next(c for c in found.changes if c.measure == "section")
    assert sum(c.change_ns for c in parts) == pytest.approx(section.change_ns)
    assert {c.reference_ns for c in parts} == {section.a_ns}
    assert found.verdict == "slower"


def test_what_grows_in_one_place_and_shrinks_in_another_is_no_slower_whole() -> None:
    base = steady(100)
    moved = replace(
        base, columns={**base.columns, "kernel": base.columns["kernel"] * 1.5, "cpu": base.columns["cpu"] * 0.25}
    )
    found = compare([base], [moved])
    assert {c.measure: c.verdict for c in found.moved} == {"kernel": "slower", "cpu": "faster"}
    assert found.verdict == "no-evidence"


def test_one_partition_a_side_is_inconclusive() -> None:
    found = compare([steady(100, count=1)], [steady(300, count=1)])
    assert found.verdict == "inconclusive"
