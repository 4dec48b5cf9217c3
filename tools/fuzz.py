"""Damaged inputs of every kind for some minutes, reproducible: a mutant follows from (kind, seed, number) alone.

    python tools/fuzz.py --minutes 20 [--seed N] [--jobs 2] [--kinds log,ncu-page]

A failing mutant is cut down and kept in ``tests/hostile/regressions``, where the tests replay it. With atheris
installed, a part of the time goes to coverage-guided fuzzing of log parser, ncu page reader and page decoder.
Exit code 1 when anything failed. Says how many inputs it tried.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
KEPT = ROOT / "tests" / "hostile" / "regressions"
GUIDED = {"log": "log", "ncu-page": "ncu-page", "pages": "sqlite"}
"""Target of ``fuzz_guided.py`` → the kind of input it reads."""
BATCH = 200
SLOW = {"golden": 40, "ncu-report": 10}
"""Mutants a process, where one takes long: no kind may eat the time of the others."""


def batch(kind: str, seed: int, first: int, seconds: float) -> tuple[str, Counter[str], list[str], int, int]:
    """One process's share: kind, outcomes, failures, peak bytes, mutants asked for."""
    from tests.hostile.damage import finished, keep, mutant
    from tests.hostile.kinds import BY_NAME

    count = SLOW.get(kind, BATCH)
    with tempfile.TemporaryDirectory() as place:
        progress = Path(place) / "progress"
        command = [sys.executable, "-m", "tests.hostile.damage", kind, "--seed", str(seed), "--first", str(first)]
        command += ["--count", str(count), "--until", str(max(seconds, 1)), "--keep", str(KEPT)]
        command += ["--progress", str(progress)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            said = json.loads(done.stdout)
            return kind, Counter(said["outcomes"]), said["failed"], said["peak_bytes"], count
        number = int(progress.read_text()) if progress.exists() else first
        files, edits, seal, _ = mutant(BY_NAME[kind], seed, number)
        keep(BY_NAME[kind], finished(BY_NAME[kind], files, edits, seal), KEPT)
        how = f"{kind} seed {seed} mutant {number}: exit code {done.returncode}: {done.stderr[-300:]}"
        return kind, Counter({"killed": number - first + 1}), [how], 0, count


def guided(target: str, seed: int, seconds: float) -> tuple[str, int, list[str]]:
    """Coverage-guided: target, inputs tried, failures."""
    from tests.hostile.damage import keep
    from tests.hostile.kinds import BY_NAME

    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, str(ROOT / "tools" / "fuzz_guided.py"), target, f"-max_total_time={int(seconds)}"]
        command += [
            f"-seed={seed}",
            "-rss_limit_mb=2048",
            "-timeout=30",
            f"-artifact_prefix={place}/",
            "-print_final_stats=1",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        tried = int(lines[-1].split()[-1]) if lines else 0
        wrong = []
        for path in sorted(Path(place).iterdir()):
            kept = keep(BY_NAME[GUIDED[target]], {f"input-{path.name[:8]}": path.read_bytes()}, KEPT)
            wrong.append(f"{target}, guided: {kept.relative_to(ROOT)}: {done.stderr[-600:]}")
        if done.returncode != 0 and not wrong:
            wrong.append(f"{target}, guided: exit code {done.returncode}: {done.stderr[-600:]}")
        return target, tried, wrong


def main() -> int:
    from tests.hostile.kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(kind.name for kind in KINDS))
    parser.add_argument("--guided-share", type=float, default=0.25, help="of the time, where atheris is installed")
    options = parser.parse_args()
    kinds = [name for name in options.kinds.split(",") if name]
    if "ncu-report" in kinds and importlib.util.find_spec("ncu_report") is None:
        kinds.remove("ncu-report")
    atheris = importlib.util.find_spec("atheris") is not None and options.guided_share > 0
    share = options.guided_share if atheris else 0.0
    end = time.monotonic() + options.minutes * 60 * (1 - share)
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    failures: list[str] = []
    peak = 0
    following = dict.fromkeys(kinds, 0)
    with ThreadPoolExecutor(options.jobs) as pool:
        while time.monotonic() < end:
            running = []
            for kind in kinds:
                running.append(pool.submit(batch, kind, options.seed, following[kind], end - time.monotonic()))
                following[kind] += SLOW.get(kind, BATCH)
            for done in running:
                kind, found, wrong, bytes_used, _ = done.result()
                outcomes[kind] += found
                failures += wrong
                peak = max(peak, bytes_used)
    tried = 0
    for kind, found in outcomes.items():
        tried += found.total()
        print(f"{kind:<16}{found.total():>8,}  " + ", ".join(f"{n} {c:,}" for n, c in found.most_common()))
    if atheris:
        seconds = options.minutes * 60 * share * min(options.jobs, len(GUIDED)) / len(GUIDED)
        with ThreadPoolExecutor(options.jobs) as pool:
            for target, count, wrong in pool.map(lambda t: guided(t, options.seed, seconds), GUIDED):
                print(f"{target + ', guided':<16}{count:>8,}")
                tried += count
                failures += wrong
    else:
        print("atheris is not installed or not wanted: no coverage-guided part")
    for line in failures:
        print(f"FAILED {line}")
    print(f"seed {options.seed}: {tried:,} inputs tried, {len(failures)} failed, peak {peak >> 20:,} MiB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
