"""Coverage-guided fuzzing of one reader with atheris: ``log``, ``ncu-page``, or ``pages`` (the native page decoder).

    python tools/fuzz_guided.py TARGET [libFuzzer options]

Any exception but a ToolError is a finding, and so is a crash of the native decoder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

with atheris.instrument_imports(include=["nvprof_tools"]):
    from nvprof_tools.errors import ToolError
    from nvprof_tools.limits import DEFAULT_LIMITS
    from nvprof_tools.model.trace import SourceInfo
    from nvprof_tools.pipelines.load import load_pipeline
    from nvprof_tools.sources.ncu import read_counters
    from nvprof_tools.sources.timeline_log import parse_log
    from nvprof_tools.timeline.normalise import load_trace

PIPELINE = load_pipeline("cuzk")
PLACE = Path(tempfile.mkdtemp(prefix="nvprof-tools-fuzz-"))


def log(data: bytes) -> None:
    parse_log(data, PIPELINE, source=SourceInfo("timeline-log", None, ""), limits=DEFAULT_LIMITS)


def ncu_page(data: bytes) -> None:
    path = PLACE / "page.csv"
    path.write_bytes(data)
    read_counters([path])


def pages(data: bytes) -> None:
    path = PLACE / "t.sqlite"
    path.write_bytes(data)
    load_trace(path)


TARGETS = {"log": (log, "log"), "ncu-page": (ncu_page, "ncu-page"), "pages": (pages, "sqlite")}


def main() -> None:
    from tests.hostile.kinds import seeds_of

    target, kind = TARGETS[sys.argv[1]]

    def one(data: bytes) -> None:
        try:
            target(data)
        except ToolError:
            return

    corpus = PLACE / "corpus"
    corpus.mkdir()
    longest = 0
    for number, files in enumerate(seeds_of(kind)):
        data = next(iter(files.values()))
        longest = max(longest, len(data))
        (corpus / str(number)).write_bytes(data)
    atheris.Setup([sys.argv[0], str(corpus), f"-max_len={longest * 2}", *sys.argv[2:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
