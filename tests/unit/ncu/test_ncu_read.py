"""Several inputs at once: directories, repeats, what is skipped."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import ncu_files
import pytest
from ncu_files import details_page, launch, raw_page, write

from nvprof_tools.errors import SourceError
from nvprof_tools.model.counters import INSTANCES, LAUNCHES, VALUES
from nvprof_tools.sources.ncu import read_counters, sniff

TIME = "gpu__time_duration.sum"
CYCLES = "gpc__cycles_elapsed.max"


def ten(folder: Path) -> list[Path]:
    return [write(folder, page, f"{i}.raw.csv") for i, page in enumerate(ncu_files.ten_pages())]


def test_a_directory_of_ten(tmp_path: Path) -> None:
    paths = ten(tmp_path)
    table = read_counters([tmp_path])
    assert len(table) == 34
    assert table.launches.column("launch").to_pylist() == list(range(34))
    assert (
        table.launches.column("report").to_pylist()
        == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5] + [6] * 4 + [7] + [8] * 4 + [9] * 4
    )
    assert table.values.column("launch").to_pylist() == sorted(table.values.column("launch").to_pylist())
    # By hand: the longest and shortest launch of the set.
    times = table.metric(TIME)
    assert (times.max(), times.min()) == (6234400.0, 41920.0)
    digests = sorted(hashlib.sha256(p.read_bytes()).hexdigest() for p in paths)
    assert table.source.sha256 == hashlib.sha256("\n".join(digests).encode()).hexdigest()
    assert table.launches.schema.equals(LAUNCHES.schema)
    assert table.values.schema.equals(VALUES.schema)


def test_files_are_a_directory_spelt_out(tmp_path: Path) -> None:
    paths = ten(tmp_path)
    assert read_counters(paths).values.equals(read_counters([tmp_path]).values)


def test_one_table_has_launch_and_value_side_by_side(tmp_path: Path) -> None:
    table = read_counters(ten(tmp_path)).one_table()
    assert table.column_names == [*LAUNCHES.schema.names, *VALUES.schema.names[1:]]
    row = next(r for r in table.to_pylist() if r["metric"] == TIME and r["value"] == 6234400.0)
    assert (row["kernel"], row["launch_index"], row["unit"], row["nvtx"]) == ("accumulate", 1, "ns", "ntt_msm_h")


def test_one_file_one_digest(tmp_path: Path) -> None:
    path = write(tmp_path, ncu_files.ten_pages()[0])
    assert read_counters([path]).source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_page_beside_the_page_it_repeats(tmp_path: Path) -> None:
    """Raw and details of one run hold the same launches: the raw page says more and stays, whatever the order."""
    ncu_files.unpack("p9_launches.details.csv", tmp_path)
    ncu_files.unpack("p9_launches.raw.csv", tmp_path)
    table = read_counters([tmp_path])
    assert len(table) == 49
    assert table.source.kind == "ncu-csv-raw"
    assert table.launches.column("report").to_pylist() == [0] * 49
    assert {i.slug: i.count for i in table.quality}["ncu-duplicate-report"] == 1


def same_launches(cycles: str, time: str) -> str:
    return raw_page(
        [CYCLES, TIME], ["cycle", "us"], [(launch(0, "k"), (cycles, time)), (launch(1, "k"), (cycles, time))]
    )


def test_two_runs_of_one_program_are_both_kept(tmp_path: Path) -> None:
    """Same kernels, same shapes, durations within printed precision, but other cycles: two runs."""
    write(tmp_path, same_launches("35,703", "18.08"), "a.csv")
    write(tmp_path, same_launches("35,711", "18.08"), "b.csv")
    table = read_counters([tmp_path])
    assert len(table) == 4
    assert "ncu-duplicate-report" not in {i.slug for i in table.quality}


def test_without_cycles_durations_decide(tmp_path: Path) -> None:
    rows = [(launch(i, "k"), ("18.08",)) for i in range(2)]
    write(tmp_path, raw_page([TIME], ["us"], rows), "a.csv")
    write(tmp_path, details_page([(h, "s", TIME, "ns", "18,080") for h, _ in rows]), "b.csv")
    other = [(launch(i, "k"), ("18.50",)) for i in range(2)]
    write(tmp_path, raw_page([TIME], ["us"], other), "c.csv")
    assert len(read_counters([tmp_path])) == 4


def test_reports_of_other_metrics_are_both_kept(tmp_path: Path) -> None:
    """Nothing in common to tell them by: kept, and a mean takes each metric from where it is."""
    write(tmp_path, raw_page(["a"], [""], [(launch(0, "k"), ("1",))]), "a.csv")
    write(tmp_path, raw_page(["b"], [""], [(launch(0, "k"), ("2",))]), "b.csv")
    table = read_counters([tmp_path])
    assert (table.metrics, len(table)) == (("a", "b"), 2)


def test_other_files_of_a_directory_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, ncu_files.ten_pages()[0], "page.csv")
    (tmp_path / "notes.txt").write_text("nothing\n" * 100)
    (tmp_path / "trace.sqlite").write_bytes(b"SQLite format 3\0" + bytes(5000))
    (tmp_path / "sub").mkdir()
    assert len(read_counters([tmp_path])) == 4


def test_a_directory_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_counters([tmp_path])
    assert caught.value.slug == "not-a-counter-report"


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_counters([tmp_path / "none.csv"])
    assert caught.value.slug == "file-missing"
    assert str(tmp_path) not in caught.value.message


def test_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError) as caught:
        read_counters([tmp_path / "pipe"])
    assert caught.value.slug == "not-a-file"


def test_a_fifo_in_a_directory_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, ncu_files.ten_pages()[0])
    assert len(read_counters([tmp_path])) == 4


def test_a_database_is_no_page(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"SQLite format 3\0" + b'"ID","Kernel Name"\n' * 10)
    assert sniff(path) is None


def test_first_metric_takes_what_a_launch_has(tmp_path: Path) -> None:
    rows = [(launch(0, "k"), ("1", "2")), (launch(1, "k"), ("", "3")), (launch(2, "k"), ("", ""))]
    table = read_counters([write(tmp_path, raw_page(["new", "old"], ["", ""], rows))])
    assert [str(v) for v in table.first_metric(("new", "old", "none"))] == ["1.0", "3.0", "nan"]


def test_specs_are_arrow_schemas() -> None:
    for spec in (LAUNCHES, VALUES, INSTANCES):
        assert spec.empty().num_rows == 0
        assert [c.name for c in spec.columns] == spec.schema.names
