"""Counters of the real prover joined to its real trace. Expected figures come from SQL on the export."""

from __future__ import annotations

import functools
import lzma
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from nvprof_tools.attribution.counters import CounterJoin, counter_rungs, join_counters
from nvprof_tools.model.trace import Trace
from nvprof_tools.sources.ncu import read_counters
from nvprof_tools.timeline.normalise import load_trace
from tests.fixture_files import fixture_trace

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "ncu"
# Kernels that the ten pages hold: (function, a word of its symbol), and those of them whose launches have another size
# in the 2^19 run. `fp_t` alone would also be found in `fp2_t`.
TEN = [("accumulate", "4fp_tE"), ("integrate", "4fp_tE"), ("batch_addition", "4fp_tE"), ("sort", ""), ("breakdown", "")]
TEN += [
    ("_CT_NTT", ""),
    ("_GS_NTT", ""),
    ("LDE_distribute_powers", ""),
    ("coeff_wise_mult", ""),
    ("bit_rev_permutation_z", ""),
]
SMALL = [("sort", ""), ("breakdown", ""), ("coeff_wise_mult", ""), ("batch_addition", "4fp_tE")]
SMALL += [(f"generate_{kind}_twiddles", "") for kind in ("inner", "stage", "partial")]


@functools.cache
def trace() -> Trace:
    return load_trace(fixture_trace("p9_gw2"))


def kernel_time(kernels: list[tuple[str, str]]) -> tuple[int, int, int, int]:
    """(launches, ns) of some kernels and of all, by SQL."""
    with sqlite3.connect(f"file:{fixture_trace('p9_gw2')}?mode=ro&immutable=1", uri=True) as database:
        rows = database.execute(
            'SELECT s.value, m.value, count(*), sum(k."end" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k '
            "JOIN StringIds s ON s.id = k.shortName JOIN StringIds m ON m.id = k.mangledName GROUP BY 1, 2"
        ).fetchall()
    database.close()
    chosen = [(n, t) for name, symbol, n, t in rows if any(name == f and w in symbol for f, w in kernels)]
    whole = [(n, t) for _, _, n, t in rows]
    return sum(n for n, _ in chosen), sum(t for _, t in chosen), sum(n for n, _ in whole), sum(t for _, t in whole)


def unpacked(name: str, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(lzma.decompress((FOLDER / f"{name}.xz").read_bytes()))
    return path


def joined(paths: list[Path]) -> CounterJoin:
    rows = len(trace()["kernels"])
    return join_counters(trace(), read_counters(paths), np.zeros(rows, np.int64), ["all"])


@pytest.fixture
def ten(tmp_path: Path) -> list[Path]:
    text = unpacked("p9_ten_kernels.raw.csv", tmp_path).read_text()
    paths = []
    for i, page in enumerate(text.split('"ID",')[1:]):
        paths.append(tmp_path / f"{i}.csv")
        paths[-1].write_text(f'"ID",{page}')
    return paths


def test_ten_kernels_of_the_same_size_cover_three_quarters(ten: list[Path]) -> None:
    found = joined(ten)
    assert (found.matched_launches, found.matched_ns, found.launches, found.total_ns) == kernel_time(TEN)
    assert found.exact_launches == 0
    assert found.time_fraction is not None
    assert round(100 * found.time_fraction) == 74
    messages = {item.slug: item for item in found.quality}
    assert "cover 73.7 % of kernel time (1,670 of 1,798 launches" in messages["counters-coverage"].message
    missing = messages["counters-missing"]
    for name, share in (("accumulate<fp2_t>", "24.5"), ("integrate<fp2_t>", "1.1"), ("batch_addition<fp2_t>", "0.7")):
        assert f"{name} ({share} %)" in missing.message
        assert f"{name.split('<')[0]}<.*fp2_t" in missing.hint
    assert missing.hint.startswith("ncu --set full")


def test_what_accumulate_waits_for(ten: list[Path]) -> None:
    rows = {k.kernel: k for k in joined(ten).kernels}
    row = rows["accumulate<fp_t>"]
    # Means of the page's four launches: 67.117893, 66.744972, 68.386626 and 67.371359 %, and so on.
    assert row.sm_throughput_pct == pytest.approx(67.4052125, abs=1e-6)
    assert row.occupancy_pct == pytest.approx(18.74970025, abs=1e-6)
    assert row.theoretical_occupancy_pct == 18.75
    assert row.dram_throughput_pct == pytest.approx(0.66966475, abs=1e-6)
    assert row.issue_pct == pytest.approx(25.1130955, abs=1e-6)
    assert (row.bound, row.match, row.launches, row.matched_launches) == ("compute", "class", 60, 60)
    assert next(iter(row.stalls)) == "wait"
    assert {k: rows[k].bound for k in ("sort", "coeff_wise_mult", "LDE_distribute_powers", "integrate<fp_t>")} == {
        "sort": "latency",
        "coeff_wise_mult": "memory",
        "LDE_distribute_powers": "compute",
        "integrate<fp_t>": "latency",
    }
    assert rows["accumulate<fp2_t>"].sm_throughput_pct is None
    assert rows["accumulate<fp2_t>"].bound is None


def test_the_issue_rung_agrees_with_the_sampled_one(ten: list[Path]) -> None:
    """Two instruments, one quantity: kernel time × issue by counters; SM Issue by the sampler is 14.6 % of the wall."""
    rungs = {r.rung: r for r in counter_rungs(joined(ten), 0, 735_628_165, 1_157_000_000)}
    assert rungs["kernel_issue"].fraction == pytest.approx(0.146, abs=0.01)
    assert rungs["kernel_sm_throughput"].fraction == pytest.approx(0.3525, abs=0.001)


@pytest.mark.parametrize("name", ["p9_launches.raw.csv", "p9_launches.details.csv", "p9_launches.ncu-rep"])
def test_counters_of_another_size_cover_little_and_say_so(name: str, tmp_path: Path) -> None:
    if name.endswith("ncu-rep"):
        pytest.importorskip("ncu_report")
    found = joined([unpacked(name, tmp_path)])
    assert (found.matched_launches, found.matched_ns, found.launches, found.total_ns) == kernel_time(SMALL)
    assert found.exact_launches == 8  # the twiddle kernels run as often in either size
    messages = {item.slug: item.message for item in found.quality}
    assert "cover 15.0 % of kernel time" in messages["counters-coverage"]
    assert "accumulate<fp_t> (48.8 %)" in messages["counters-missing"]
    assert "_CT_NTT<1> (1.1 %)" in messages["counters-other-size"]
    assert "all (15.0 %)" in messages["counters-stage-below-half"]
    assert {k.bound for k in found.kernels if k.kernel is None} == {None}
    assert {r.fraction for r in counter_rungs(found, 0, 735_628_165, 1_157_000_000)} == {None}


def test_symbols_and_short_names_find_the_same_launches(ten: list[Path], tmp_path: Path) -> None:
    """The report has symbols, the page has `fr_t` for `bls12_381::fr_t`: the same 60 launches."""
    pytest.importorskip("ncu_report")
    report = joined([unpacked("p9_accumulate.ncu-rep", tmp_path)])
    page = joined([ten[3]])
    assert report.matched_launches == page.matched_launches == 60
    assert ((report.profile >= 0) == (page.profile >= 0)).all()
