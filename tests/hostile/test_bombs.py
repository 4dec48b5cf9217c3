"""Small files that unpack to very much: an error that names the limit, within 1 GiB, each in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.builders import to_columnar
from tests.unit.timeline.test_normalise import scenario

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from nvprof_tools.cli.main import run
from tests.hostile.peak import peak_bytes
import nvprof_tools.timeline.normalise, nvprof_tools.attribution.run
code = run(sys.argv[1:])
print(peak_bytes())
sys.exit(code)
"""


def long_line(folder: Path) -> list[str]:
    (folder / "a.log").write_bytes(b"TIMELINE,1,GPU_START,a,worker=0,partition=" + b"1" * (50 << 20))
    return ["log", str(folder / "a.log")]


def many_lines(folder: Path) -> list[str]:
    (folder / "a.log").write_bytes(b"\n" * (50 << 20))
    return ["log", str(folder / "a.log")]


def _kernels(folder: Path, kind: str) -> Path:
    return to_columnar(scenario("2025.3").write(folder / "t.sqlite"), folder / "x", kind)


def _blown_up(path: Path, rows: int) -> pa.Table:
    """The kernels' columns, every value nothing, very often."""
    schema = parquet.read_schema(path) if path.suffix == ".parquet" else pa.ipc.open_stream(path.read_bytes()).schema
    zeros = pa.array(np.zeros(rows, np.int64))
    return pa.table(dict.fromkeys(schema.names, zeros))


def parquet_rows(folder: Path) -> list[str]:
    """Two million rows of zeros in a few kilobytes."""
    place = _kernels(folder, "parquet")
    path = next(place.glob("*KIND_KERNEL*"))
    parquet.write_table(_blown_up(path, 2_000_000), path, compression="zstd", row_group_size=2_000_000)
    return ["attribute", str(place)]


def parquet_text(folder: Path) -> list[str]:
    """One text of 200 MiB."""
    place = _kernels(folder, "parquet")
    path = next(place.glob("StringIds*"))
    ids, long = pa.array([1, 2]), pa.array(["x", "y" * (200 << 20)])
    parquet.write_table(pa.table({"id": ids, "value": long}), path, compression="zstd")
    return ["attribute", str(place)]


def arrow_zstd(folder: Path) -> list[str]:
    """One batch that says it is 480 MiB and takes a few kilobytes."""
    place = _kernels(folder, "arrow")
    path = next(place.glob("*KIND_KERNEL*"))
    table = _blown_up(path, 3_000_000)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table)
    return ["attribute", str(place)]


def deep_manifest(folder: Path) -> list[str]:
    (folder / "manifest.json").write_bytes(b'{"format": "nvprof-tools-tables", "x": ' + b"[" * (8 << 20))
    return ["attribute", str(folder)]


def deep_pipeline(folder: Path) -> list[str]:
    (folder / "p.toml").write_bytes(b"x = " + b"[" * (200 << 10))
    return ["pipelines", str(folder / "p.toml")]


def large_golden(folder: Path) -> list[str]:
    (folder / "golden.toml").write_bytes(b"a = 1\n" * (4 << 20))
    return ["golden", "check", str(folder)]


def sparse(folder: Path) -> list[str]:
    """A file of a tebibyte that takes no room."""
    with (folder / "t.sqlite").open("wb") as out:
        out.write(b"SQLite format 3\0")
        out.truncate(1 << 40)
    return ["attribute", str(folder / "t.sqlite")]


BOMBS: dict[Callable[[Path], list[str]], set[str]] = {
    long_line: {"log-without-timeline"},
    many_lines: {"log-without-timeline"},
    parquet_rows: {"limit-memory", "limit-rows", ""},
    parquet_text: {"limit-memory", "limit-string"},
    arrow_zstd: {"limit-memory"},
    deep_manifest: {"import-damaged"},
    deep_pipeline: {"pipeline-file-not-toml"},
    large_golden: {"golden-damaged"},
    sparse: {"limit-file"},
}


def capped() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_bombs(bomb: Callable[[Path], list[str]], tmp_path: Path) -> None:
    arguments = bomb(tmp_path)
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT, env=environment, preexec_fn=capped, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    slug = (
        done.stderr.partition("error[")[2].partition("]")[0]
        or done.stdout.partition(": ")[0].rpartition(" ")[2].strip()
    )
    assert done.returncode in {0, 1, 3}, done.stderr[-1500:]
    assert "Traceback" not in done.stderr
    assert slug in BOMBS[bomb] or (done.returncode == 0 and "" in BOMBS[bomb]), (slug, json.dumps(done.stderr[-500:]))
    assert int(done.stdout.split()[-1]) < 1 << 30
