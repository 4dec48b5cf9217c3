from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import ncu_files
import pyarrow as pa
import pytest
from ncu_files import HEAD, NUMBER, details_page, launch, line, printed, raw_page, write

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.model.counters import LAUNCHES, VALUES, CounterTable
from nvprof_tools.model.quality import QualityItem
from nvprof_tools.sources.ncu import read_counters, read_instances, sniff

TIME = "gpu__time_duration.sum"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def read(path: Path) -> CounterTable:
    return read_counters([path])


def values(table: CounterTable, metric: str) -> list[float | None]:
    return [None if v != v else float(v) for v in table.metric(metric)]  # noqa: PLR0124


def slugs(table: CounterTable) -> Mapping[str, QualityItem]:
    return {item.slug: item for item in table.quality}


def text_page(tmp_path: Path, body: str, **kwargs: str) -> CounterTable:
    return read(write(tmp_path, body, **kwargs))


def simple(*rows: tuple[int, str, str]) -> str:
    return raw_page([TIME, SM], ["ns", "%"], [(launch(i, "void k<int>(T1)"), (t, s)) for i, t, s in rows])


def test_the_real_raw_page(tmp_path: Path) -> None:
    table = read(ncu_files.unpack("p9_launches.raw.csv", tmp_path))
    assert len(table) == 49
    assert table.source.kind == "ncu-csv-raw"
    assert table.launches.schema.equals(LAUNCHES.schema)
    assert table.values.schema.equals(VALUES.schema)
    table.launches.validate(full=True)
    table.values.validate(full=True)
    # By hand from the page: launch 48 prints 106.304000 us, launch 0 18.080000 us.
    assert table.metric(TIME)[[0, 48]].tolist() == [18080.0, 106304.0]
    last = table.launches.slice(48, 1).to_pylist()[0]
    assert last["kernel"] == "batch_addition"
    assert (last["grid_x"], last["block_x"], last["launch_index"], last["process"]) == (132, 256, 48, 1393)
    assert last["nvtx"] == "ntt_msm_h"
    assert last["mangled"] is None
    # One metric prints nan for every launch, two "no data": counted, not kept.
    assert slugs(table)["ncu-not-a-number"].count == 49
    assert slugs(table)["ncu-no-data"].count == 98
    assert "derived_tempMetric4" not in table.metrics


def test_no_host_and_no_program_name_reach_the_table(tmp_path: Path) -> None:
    table = read(ncu_files.unpack("p9_launches.raw.csv", tmp_path)).one_table()
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            words = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
            assert not [w for w in words if "127.0.0.1" in w or "proof9" in w]


def test_cells_of_the_real_raw_page(tmp_path: Path) -> None:
    """Cells of all launches, read apart by the csv module and decimal arithmetic."""
    table = read(ncu_files.unpack("p9_launches.raw.csv", tmp_path))
    got = {(r["launch"], r["metric"]): r for r in table.values.to_pylist()}
    assert len(got) == table.values.num_rows == 108_388
    seen = 0
    for key, (unit, cell) in ncu_files.raw_cells("p9_launches.raw.csv").items():
        if cell in {"", "nan", "no data"}:
            assert key not in got
            continue
        seen += 1
        if re.fullmatch(NUMBER, cell):
            base, value, _ = printed(cell, unit)
            assert got[key]["unit"] == base
            assert got[key]["value"] == pytest.approx(float(value), rel=1e-14)
        else:
            assert got[key]["text"] == cell
    assert seen > 15_000


def test_the_details_page_says_the_same_as_the_raw_page(tmp_path: Path) -> None:
    raw = read(ncu_files.unpack("p9_launches.raw.csv", tmp_path))
    details = read(ncu_files.unpack("p9_launches.details.csv", tmp_path))
    assert details.source.kind == "ncu-csv-details"
    assert len(details) == 49
    for name in LAUNCHES.schema.names:
        assert details.launches.column(name).to_pylist() == raw.launches.column(name).to_pylist()
    known = {(r["launch"], r["metric"]): r for r in raw.values.to_pylist()}
    cells = ncu_files.raw_cells("p9_launches.raw.csv")
    halves = ncu_files.details_halves("p9_launches.details.csv")
    compared = 0
    for found in details.values.to_pylist():
        if "/" in found["metric"] and "__" not in found["metric"]:
            continue  # a label whose metric differs between releases keeps its own words
        key = found["launch"], found["metric"]
        assert found["text"] == known[key]["text"]
        if found["value"] is not None and key in cells:
            unit, cell = cells[key]
            slack = halves(found["launch"], found["unit"], found["value"]) + printed(cell, unit)[2]
            assert abs(found["value"] - known[key]["value"]) <= float(slack) * (1 + 1e-9), found
            compared += 1
    assert compared > 3 * 70


def test_labels_that_several_sections_share(tmp_path: Path) -> None:
    head = launch(0, "k")
    table = text_page(
        tmp_path,
        details_page(
            [
                (head, "GPU Speed Of Light Throughput", "Memory Throughput", "%", "34.22"),
                (head, "Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "1.08"),
                (head, "GPU Speed Of Light Throughput", "Duration", "usecond", "79.78"),
                (head, "Some New Section", "Some New Label", "", "7"),
            ]
        ),
    )
    assert values(table, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed") == [34.22]
    assert values(table, "dram__bytes.sum.per_second") == [pytest.approx(1.08e9)]
    assert values(table, TIME) == [pytest.approx(79780.0)]
    assert values(table, "Some New Section/Some New Label") == [7.0]


@pytest.mark.parametrize("label", [TIME, f"Duration {TIME}", f"Duration ({TIME})"])
def test_names_and_names_beside_labels(tmp_path: Path, label: str) -> None:
    page = details_page([(launch(0, "k"), "Command line profiler metrics", label, "ns", "117,344")])
    assert values(text_page(tmp_path, page), TIME) == [117344.0]


def test_a_european_details_page(tmp_path: Path) -> None:
    section = "Command line profiler metrics"
    head = launch(0, "ampere_sgemm_128x64_nn", "(512, 1, 1)", "(128, 1, 1)")
    page = details_page(
        [
            (head, section, TIME, "ns", "117.344"),
            (head, section, "dram__bytes.sum", "byte", "27.595.520"),
            (head, section, SM, "%", "65,77"),
        ]
    )
    table = text_page(tmp_path, page)
    assert values(table, TIME) == [117344.0]
    assert values(table, "dram__bytes.sum") == [27595520.0]
    assert values(table, SM) == [65.77]
    assert "ncu-locale-guessed" not in slugs(table)


def test_a_page_that_does_not_tell_its_locale_says_so(tmp_path: Path) -> None:
    table = text_page(tmp_path, details_page([(launch(0, "k"), "s", TIME, "ns", "117.344")]))
    assert values(table, TIME) == [117344.0]
    assert slugs(table)["ncu-locale-guessed"].count == 1


def test_two_locales_in_one_page_are_a_loss(tmp_path: Path) -> None:
    page = raw_page(["a", "b", "c"], ["", "", ""], [(launch(0, "k"), ("1,25", "2.50", "3.75"))])
    assert slugs(text_page(tmp_path, page))["ncu-locale-conflict"].count == 1


def test_semicolons_of_a_spreadsheet(tmp_path: Path) -> None:
    page = simple((0, "117.344", "65,77"), (1, "1.117.344", "65,10")).replace('","', '";"')
    assert values(text_page(tmp_path, page), TIME) == [117344.0, 1117344.0]


def test_profiler_lines_and_program_output_around_the_rows(tmp_path: Path) -> None:
    rows = simple((0, "1,000", "50.00"), (1, "2,000", "60.00")).splitlines(keepends=True)
    noise = [
        'he said "Kernel Name" and left\n',
        "==PROF== Connected to process 4711\n",
        "proving partition 3: 12,345 rows\n",
        '==WARNING== "odd" quote "\n',
        *rows[:3],
        "==PROF== Profiling k - 1: 0%....50%....100% - 38 passes\n",
        'progress "half\n',
        *rows[3:],
        "==ERROR== The application returned an error code (1).\n",
    ]
    table = text_page(tmp_path, "".join(noise))
    assert values(table, TIME) == [1000.0, 2000.0]
    assert slugs(table)["ncu-reported-errors"].count == 1
    assert "ncu-broken-rows" not in slugs(table)


def test_ragged_rows(tmp_path: Path) -> None:
    """A details row is shorter than the header; a raw row is not, unless it is torn."""
    page = simple((0, "1,000", "50.00"), (1, "2,000", "60.00")).rstrip("\n")
    torn = page[: page.rindex(',"60.00"')] + "\n"
    table = text_page(tmp_path, torn)
    assert values(table, TIME) == [1000.0, 2000.0]
    assert values(table, SM) == [50.0, None]
    assert slugs(table)["ncu-broken-rows"].count == 1


def test_a_torn_quote_costs_its_own_row(tmp_path: Path) -> None:
    lines = simple((0, "1,000", "50.00"), (1, "2,000", "60.00"), (2, "3,000", "70.00")).splitlines(keepends=True)
    lines[3] = lines[3].replace('"2,000"', '"2,0\n')
    table = text_page(tmp_path, "".join(lines))
    assert [r["launch_index"] for r in table.launches.to_pylist()] == [0, 2]
    assert slugs(table)["ncu-broken-rows"].count == 1


def test_a_name_may_hold_a_line_end(tmp_path: Path) -> None:
    page = raw_page([TIME], ["ns"], [(launch(0, "k<1>\n(int)"), ("5,000",))])
    table = text_page(tmp_path, page)
    assert values(table, TIME) == [5000.0]
    assert table.launches.column("kernel").to_pylist() == ["k"]


def test_missing_cells_are_no_values(tmp_path: Path) -> None:
    page = raw_page([TIME, SM], ["ns", "%"], [(launch(0, "a"), ("1,000", "")), (launch(1, "b"), ("", "50.00"))])
    table = text_page(tmp_path, page)
    assert values(table, TIME) == [1000.0, None]
    assert values(table, SM) == [None, 50.0]
    assert "ncu-no-data" not in slugs(table)


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    first = simple((0, "1,000", "50.00"))
    second = raw_page([TIME], ["us"], [(launch(0, "void other(T1)"), ("2.50",))])
    table = text_page(tmp_path, first + second)
    assert values(table, TIME) == [1000.0, 2500.0]
    assert table.launches.column("kernel").to_pylist() == ["k", "other"]


def test_units_are_read_per_page_and_per_row(tmp_path: Path) -> None:
    head = launch(0, "k"), launch(1, "k")
    page = details_page([(head[0], "s", TIME, "us", "1.50"), (head[1], "s", TIME, "ms", "1.50")])
    assert values(text_page(tmp_path, page), TIME) == [1500.0, 1_500_000.0]


def test_nvtx_columns(tmp_path: Path) -> None:
    header = [*HEAD[:4], ncu_files.PUSH_POP, ncu_files.START_END, *HEAD[4:], TIME]
    outer = '1421  "<default domain>:outer:none:none:none:none:none:none" '
    both = outer + '"prover:step: 3:none:none:none:none:none:none" '
    started = '7  "<default domain>:whole:none:none:none:none:none:none"'
    cells = launch(0, "k")
    rows = [
        [*cells[:4], both, started, *cells[4:], "1,000"],
        [*launch(1, "k")[:4], "", "", *launch(1, "k")[4:], "2,000"],
    ]
    page = "".join(line(row) for row in [header, [""] * len(header), *rows])
    table = text_page(tmp_path, page)
    assert table.launches.column("nvtx").to_pylist() == ["outer/prover:step: 3/whole", ""]


def test_no_nvtx_columns_is_not_no_range(tmp_path: Path) -> None:
    assert text_page(tmp_path, simple((0, "1,000", "1.00"))).launches.column("nvtx").to_pylist() == [None]


def test_instance_lists(tmp_path: Path) -> None:
    metrics = ["inst_executed", "sass__inst_executed_per_opcode", TIME, "odd"]
    cells = ("1,698 (16; 16; 1,666)", "30 (IADD3: 10; LDG.E: 20)", "1 (0)", "some (text; here)")
    path = write(tmp_path, raw_page(metrics, ["inst", "", "ns", ""], [(launch(3, "k"), cells)]))
    table = read(path)
    assert values(table, "inst_executed") == [1698.0]
    assert values(table, TIME) == [1.0]
    rows = {r["metric"]: r for r in table.values.to_pylist()}
    assert [rows[m]["instances"] for m in metrics] == [3, 2, 1, None]
    assert rows["odd"]["text"] == "some (text; here)"
    found = read_instances(path, ["inst_executed", "sass__inst_executed_per_opcode"]).to_pylist()
    assert [(r["metric"], r["instance"], r["label"], r["value"]) for r in found] == [
        ("inst_executed", 0, None, 16.0),
        ("inst_executed", 1, None, 16.0),
        ("inst_executed", 2, None, 1666.0),
        ("sass__inst_executed_per_opcode", 0, "IADD3", 10.0),
        ("sass__inst_executed_per_opcode", 1, "LDG.E", 20.0),
    ]
    assert {r["launch_index"] for r in found} == {3}


def test_a_long_instance_list(tmp_path: Path) -> None:
    """Longer than the csv module takes by default; its limit is as before afterwards."""
    before = csv.field_size_limit()
    many = "; ".join(["16"] * 60_000)
    path = write(tmp_path, raw_page(["m"], [""], [(launch(0, "k"), (f"960,000 ({many})",))]))
    assert values(read(path), "m") == [960000.0]
    assert read_instances(path, ["m"]).num_rows == 60_000
    assert csv.field_size_limit() == before


def test_old_columns(tmp_path: Path) -> None:
    """2020: a time column, no shape columns, the shape as metrics."""
    header = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"]
    shape = [f"launch__{side}_dim_{axis}" for side in ("grid", "block") for axis in "xyz"]
    cells = [
        "0",
        "9",
        "p",
        "h",
        "k(int*)",
        "2020-May-29 12:02:46",
        "1",
        "7",
        "1,024",
        "2",
        "1",
        "128",
        "1",
        "1",
        "3,000",
    ]
    page = line([*header, *shape, TIME]) + line([""] * 8 + ["block"] * 6 + ["nsecond"]) + line(cells)
    table = text_page(tmp_path, page)
    row = table.launches.to_pylist()[0]
    assert [row[c] for c in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")] == [1024, 2, 1, 128, 1, 1]
    assert values(table, TIME) == [3000.0]
    assert table.metrics == tuple(sorted([*shape, TIME]))


@pytest.mark.parametrize("text", ["(16384, 2, 1)", "(16384,2,1)", "(16,384, 2, 1)", "(16.384; 2; 1)", " 16384, 2, 1 "])
def test_shapes(tmp_path: Path, text: str) -> None:
    page = raw_page([TIME], ["ns"], [(launch(0, "k", grid=text), ("1",))])
    row = text_page(tmp_path, page).launches.to_pylist()[0]
    assert (row["grid_x"], row["grid_y"], row["grid_z"]) == (16384, 2, 1)


@pytest.mark.parametrize("text", ["", "?", "(1, 2)", "(1, 2, 3, 4)", "(-1, 1, 1)", "(99999999999, 1, 1)"])
def test_no_shape(tmp_path: Path, text: str) -> None:
    page = raw_page([TIME], ["ns"], [(launch(0, "k", grid=text), ("1",))])
    assert text_page(tmp_path, page).launches.column("grid_x").to_pylist() == [None]


def test_names_of_any_base(tmp_path: Path) -> None:
    rows = [(launch(i, name), ("1",)) for i, name in enumerate(["_Z4sortPji", "void ns::sort<1>(T2 *)", "sort"])]
    table = text_page(tmp_path, raw_page([TIME], ["ns"], rows))
    assert table.launches.column("mangled").to_pylist() == ["_Z4sortPji", None, None]
    assert table.launches.column("kernel").to_pylist() == [None, "sort", "sort"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = simple((0, "1,000", "50.00"))
    if encoding == "utf-16-le":
        text = "\ufeff" + text
    path = write(tmp_path, text, encoding=encoding)
    assert sniff(path) == "page"
    assert values(read(path), TIME) == [1000.0]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "page.csv"
    path.write_bytes(simple((0, "1,000", "50.00")).encode().replace(b"k<int>", b"k<\xff\xfe>"))
    table = read(path)
    assert values(table, TIME) == [1000.0]
    assert slugs(table)["ncu-undecodable"].count == 1


def test_windows_line_ends(tmp_path: Path) -> None:
    assert values(text_page(tmp_path, simple((0, "1,000", "5.00")).replace("\n", "\r\n")), SM) == [5.0]


def test_a_summary_page_is_refused(tmp_path: Path) -> None:
    header = ["Process ID", "Kernel Name", "Block Size", "Grid Size", "Invocations", "Metric Name", "Metric Unit"]
    path = write(
        tmp_path, line([*header, "Minimum", "Maximum", "Average"]) + line(["1", "k", "", "", "3", SM, "%", *"123"])
    )
    with pytest.raises(SourceError) as caught:
        read(path)
    assert caught.value.slug == "ncu-summary-page"
    assert "--page raw" in caught.value.hint


@pytest.mark.parametrize("body", ["", "hello\n", "ID,Value\n1,2\n", "a,b\n" * 50])
def test_other_files_are_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(SourceError) as caught:
        text_page(tmp_path, body)
    assert caught.value.slug == "not-a-counter-report"


def test_a_header_without_rows_is_empty(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        text_page(tmp_path, raw_page([TIME], ["ns"], []))
    assert caught.value.slug == "counters-empty"


@pytest.mark.parametrize(
    ("limit", "slug"),
    [
        ({"string_bytes": 300}, "limit-string"),
        ({"table_rows": 10}, "limit-rows"),
        ({"file_bytes": 100}, "limit-file"),
        ({"columns_per_table": 0}, "limit-columns"),
    ],
)
def test_limits(tmp_path: Path, limit: dict[str, int], slug: str) -> None:
    path = write(tmp_path, simple(*((i, "1,000", "5.00") for i in range(20))) + "x" * 400 + "\n")
    with pytest.raises(SourceError) as caught:
        read_counters([path], replace(DEFAULT_LIMITS, **limit))
    assert caught.value.slug == slug


def test_the_file_is_not_touched(tmp_path: Path) -> None:
    path = write(tmp_path, simple((0, "1,000", "5.00")))
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    read(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
