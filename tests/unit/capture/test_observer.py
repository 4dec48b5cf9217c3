"""What profiling costs: medians, spread, and which categories are smaller."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.attribution.run import attribute_files
from nvprof_tools.capture.observer import Effect, Measured, below, effects, measure, quality
from nvprof_tools.pipelines.load import builtin_pipelines
from tests.fixture_files import fixture_log, fixture_trace


def runs(plain: list[float], profiled: list[float]) -> list[Measured]:
    return [Measured(p, ms, None, ms / 10) for p, group in ((False, plain), (True, profiled)) for ms in group]


def test_median_and_spread() -> None:
    process, partition = effects(runs([100, 104, 101], [110, 111, 130]))
    assert (process.figure, process.plain_ms, process.profiled_ms) == ("process_ms", 101, 111)
    assert (process.effect_ms, process.spread_ms, process.resolution_ms) == (10, 20, 20)
    assert partition.effect_ms == pytest.approx(1)


@pytest.mark.parametrize("kind", [True, False])
def test_one_kind_alone_tells_nothing(kind: bool) -> None:
    assert effects([Measured(kind, 1.0, 1.0, 1.0)] * 3) == []
    assert effects([]) == []


def test_a_figure_that_one_run_lacks_is_not_given() -> None:
    found = effects([Measured(False, 1.0, None, 2.0), Measured(True, 1.0, 3.0, 2.0)])
    assert [effect.figure for effect in found] == ["process_ms", "partition_ms"]


def test_figures_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(fixture_log("prover_two_workers").read_bytes())
    found = measure(tmp_path, builtin_pipelines()[0], 1_500_000, True)
    # By hand from the log: GPU_START of the first partition to GPU_END of the last; the ten gpu_ms summed.
    lines = [line.split(",") for line in fixture_log("prover_two_workers").read_text().splitlines() if "GPU_" in line]
    starts = [int(line[1]) for line in lines if line[2] == "GPU_START"]
    ends = [int(line[1]) for line in lines if line[2] == "GPU_END"]
    spent = [int(line[-1].partition("=")[2]) for line in lines if line[2] == "GPU_END"]
    assert found == Measured(True, 1.5, max(ends) - min(starts), sum(spent) / 10)


def test_without_a_log_only_the_process_counts(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("nothing\n")
    assert measure(tmp_path, builtin_pipelines()[0], 2_000_000, False) == Measured(False, 2.0, None, None)


def test_what_is_smaller_is_named() -> None:
    answer = attribute_files(fixture_trace("prover_two_workers"), log=fixture_log("prover_two_workers"))[0]
    mean = {o.category: o.total_ns / 10 / 1e6 for o in answer.overheads}
    own = Effect("partition_ms", 50.0, 51.0, 1.0, 0.2)
    assert set(below(own, answer)) == {c for c, ms in mean.items() if 0 < ms < 1.0}
    assert "mutex_wait" not in below(own, answer)
    items = quality([own], 3, answer)
    assert {item.slug for item in items} == {"observer-effect", "below-observer-effect"}
    noise = Effect("partition_ms", 50.0, 50.1, 0.1, 0.5)
    assert [str(i.severity) for i in quality([noise], 3, answer) if i.slug == "observer-effect"] == ["info"]
