"""Runs damaged inputs of one kind in a process of its own with capped memory, and says what became of each.

    python -m tests.hostile.damage KIND --seed 1 --first 0 --count 100 [--until SECONDS] [--keep FOLDER]

One line of JSON at the end. A mutant that kills the process is the one whose number stands in ``--progress``.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import hashlib
import io
import json
import resource
import sys
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path

from nvprof_tools.cli.process import prepare
from nvprof_tools.errors import EXIT_INTERNAL, ToolError
from tests.hostile.edits import Edit, Files, applied, draw
from tests.hostile.kinds import BY_NAME, Kind, lay_down, seeds_of, source_of
from tests.hostile.peak import peak_bytes

MOST_SECONDS = 5.0
"""Processor time of one damaged input: a busy machine is no fault of the reader's."""
HANGS_AFTER = 120
MEMORY = 2 << 30


def mutant(kind: Kind, seed: int, number: int) -> tuple[Files, list[Edit], bool, Files]:
    """The sound files, the edits, whether digests are made to agree, and the damaged files."""
    source = source_of(kind.name, seed, number)
    files = source.choice(seeds_of(kind.name))
    edits = draw(files, source)
    seal = kind.resealed is not None and source.random() < 0.7
    return files, edits, seal, finished(kind, files, edits, seal)


def finished(kind: Kind, files: Files, edits: list[Edit], seal: bool) -> Files:
    damaged = applied(files, edits)
    return kind.resealed(damaged) if seal and kind.resealed is not None else damaged


def outcome(kind: Kind, files: Files) -> str:
    """A digest, ``error[slug]``, or ``failed: …`` for what must not happen."""
    with tempfile.TemporaryDirectory() as place:
        path = lay_down(files, Path(place), kind.directory)
        began = time.process_time()
        try:
            said = kind.outcome(path)
        except ToolError as error:
            one_line = "\n" not in error.message and "\n" not in error.hint and error.message and error.hint
            known = error.slug in kind.slugs and error.exit_code != EXIT_INTERNAL and one_line
            said = f"error[{error.slug}]" if known else f"failed: {error.slug}: {error.message}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            said = f"failed: {type(error).__name__}: {error}"
        spent = time.process_time() - began
        return said if spent < MOST_SECONDS else f"failed: took {spent:.1f} s of processor time"


def shrunk(kind: Kind, files: Files, edits: list[Edit], seal: bool) -> list[Edit]:
    """Fewer edits that still fail."""
    at = 0
    while at < len(edits) and len(edits) > 1:
        fewer = edits[:at] + edits[at + 1 :]
        if outcome(kind, finished(kind, files, fewer, seal)).startswith("failed"):
            edits = fewer
        else:
            at += 1
    return edits


def packed(files: Files) -> bytes:
    """The input as one small file, the same bytes every time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def unpacked(data: bytes) -> Files:
    """What :func:`packed` packed."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:xz") as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]


def keep(kind: Kind, files: Files, folder: Path) -> Path:
    """A failing input becomes a regression file, replayed by the tests from then on."""
    data = packed(files)
    path = folder / f"{kind.name}-{hashlib.sha256(data).hexdigest()[:10]}.tar.xz"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(BY_NAME))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds after which no further one begins")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--progress", type=Path)
    options = parser.parse_args(arguments)
    kind = BY_NAME[options.kind]
    prepare()  # as a command does: each thread would otherwise reserve room for a heap of its own
    gc.enable()  # but this process makes many reports
    plain = [outcome(kind, files) for files in seeds_of(kind.name)]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcomes: Counter[str] = Counter()
    failed: list[str] = []
    began = time.monotonic()
    for number in range(options.first, options.first + options.count):
        if time.monotonic() - began > options.until:
            break
        if options.progress is not None:
            options.progress.write_text(str(number))
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        files, edits, seal, damaged = mutant(kind, options.seed, number)
        said = outcome(kind, damaged)
        if said.startswith("failed"):
            failed.append(f"{kind.name} seed {options.seed} mutant {number}: {said}"[:400])
            if options.keep is not None:
                keep(kind, finished(kind, files, shrunk(kind, files, edits, seal), seal), options.keep)
        else:
            outcomes[said if said.startswith("error[") else "same" if said in plain else "differs"] += 1
            if kind.name == "golden" and said == "passed" and not _covered_unchanged(files, damaged, seal):
                failed.append(f"golden seed {options.seed} mutant {number}: changed, and passed")
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"plain": plain, "outcomes": outcomes, "failed": failed, "peak_bytes": peak_bytes()}))
    return 0


def _covered_unchanged(before: Files, after: Files, seal: bool) -> bool:
    """Whether no file that digests cover is another one; one sealed again may say the same in other bytes."""
    from nvprof_tools.golden.manifest import FREE

    kept = {n: d for n, d in before.items() if n not in FREE}
    return seal or kept == {n: d for n, d in after.items() if n not in FREE}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
