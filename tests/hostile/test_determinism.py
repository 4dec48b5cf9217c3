"""Same input, same bytes: again, with another hash seed, time zone, locale and directory, and with rows shuffled."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_files import fixture_log, fixture_trace

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("a.html", "a.md", "a.json", "a.csv", "a.txt", "a.pftrace", "a.svg")
SHUFFLED = ("a.md", "a.json", "a.csv", "a.txt")
"""Reports of figures: those that draw every event keep the order of rows that begin at one instant."""
PROGRAM = """
import sys
from nvprof_tools.cli.main import run
given = sys.argv[1:]
at = given.index("+")
sys.exit(run(given[:at]) or run(given[at + 1 :]))
"""


def made(trace: Path, log: Path, folder: Path, **environment: str) -> dict[str, str]:
    """File → digest, of every report and of the imported tables."""
    folder.mkdir()
    outputs = [part for name in NAMES for part in ("-o", name)]
    arguments = ["report", str(trace), "--log", str(log), *outputs, "+", "import", str(trace), "-o", "tables"]
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=folder, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("plain")
    return made(fixture_trace("sim_w2"), fixture_log("sim_w2"), place / "x", PYTHONHASHSEED="0", TZ="UTC", LC_ALL="C")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
        {
            "PYTHONHASHSEED": "4711",
            "TZ": "Pacific/Chatham",
            "LC_ALL": "de_DE.UTF-8",
            "LANG": "tr_TR.UTF-8",
            "COLUMNS": "60",
        },
    ],
    ids=["again", "elsewhere"],
)
def test_same_bytes(environment: dict[str, str], plain: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "where ü is"
    place.mkdir()
    trace = shutil.copy(fixture_trace("sim_w2"), place / fixture_trace("sim_w2").name)
    log = shutil.copy(fixture_log("sim_w2"), place / "app.log")
    assert made(Path(trace), Path(log), tmp_path / "x", **environment) == plain


def test_rows_in_any_order(plain: dict[str, str], tmp_path: Path) -> None:
    """Figures do not depend on the order of rows. The input's digest does, and is set aside."""
    path = tmp_path / fixture_trace("sim_w2").name
    path.write_bytes(fixture_trace("sim_w2").read_bytes())
    database = sqlite3.connect(path)
    source = random.Random(7)
    for (name,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%start%'"
    ).fetchall():
        rows = database.execute(f'SELECT * FROM "{name}"').fetchall()
        if len(rows) > 1:
            source.shuffle(rows)
            database.execute(f'DELETE FROM "{name}"')
            database.executemany(f'INSERT INTO "{name}" VALUES ({",".join("?" * len(rows[0]))})', rows)
    database.commit()
    database.close()
    folder = tmp_path / "x"
    before = hashlib.sha256(fixture_trace("sim_w2").read_bytes()).hexdigest()
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    assert before != after
    made(path, fixture_log("sim_w2"), folder)
    for name in SHUFFLED:
        data = (folder / name).read_bytes().replace(after.encode(), before.encode())
        data = data.replace(after[:12].encode(), before[:12].encode())
        assert hashlib.sha256(data).hexdigest() == plain[name], name
