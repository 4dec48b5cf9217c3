"""Every kind of input: small sound examples of it, what the package makes of one: the table of outcomes."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.attribution.log_summary import summarise
from nvprof_tools.cli.golden_forms import forms
from nvprof_tools.golden import manifest
from nvprof_tools.golden.check import check
from nvprof_tools.limits import DEFAULT_LIMITS
from nvprof_tools.pipelines.load import builtin_pipelines, builtin_source, load_pipeline
from nvprof_tools.report.json_doc import document, dumps
from nvprof_tools.report.log_formats import renderer
from nvprof_tools.report.pipeline_page import page
from nvprof_tools.sources.arrow_dir import write_tables
from nvprof_tools.sources.ncu import read_counters
from nvprof_tools.sources.timeline_log import read_log
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import GENERATIONS, to_columnar
from tests.capture_from_nsys import Converter
from tests.capture_writer import resealed
from tests.hostile.edits import Files
from tests.hostile.mutants import digest
from tests.unit.ncu import ncu_files
from tests.unit.timeline.test_normalise import scenario

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TABLE = frozenset({"table-corrupt", "column-storage-type", "limit-memory", "limit-rows", "limit-identifiers",
    "limit-string", "not-a-trace", "not-an-nsys-export", "file-unreadable"})  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """``seeds``: sound inputs. ``outcome``: a digest of what the package says of one, or a ToolError with
    one of ``slugs``. ``share``: mutants in the tests. ``directory``: an input is a folder. ``resealed``: damage
    whose own digests are made to agree, which is what an attacker would do."""

    name: str
    seeds: Callable[[], tuple[Files, ...]]
    outcome: Callable[[Path], str]
    slugs: frozenset[str]
    share: int
    directory: bool = False
    resealed: Callable[[Files], Files] | None = None


def files_of(path: Path) -> Files:
    """A file or a directory in memory."""
    if path.is_file():
        return {"input" + path.suffix: path.read_bytes()}
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def lay_down(files: Mapping[str, bytes], folder: Path, directory: bool) -> Path:
    """The input on disk again; gives the path a user would name."""
    if not directory:
        name, data = next(iter(files.items()), ("input", b""))
        (folder / name).write_bytes(data)
        return folder / name
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def text_digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _trace(path: Path) -> str:
    """The tables; and where they can be attributed, that is done too: damage must not surface later as a crash."""
    trace = load_trace(path)
    found = digest(trace)
    dumps(document(attribute(trace, None, builtin_pipelines(), Options("trace"))))
    return found


def _log(path: Path) -> str:
    pipeline = load_pipeline("cuzk")
    out = io.BytesIO()
    read = read_log(path, pipeline)
    summary = summarise(replace(read, source=replace(read.source, sha256="")), pipeline, None)
    for form in ("json", "table", "markdown", "csv"):
        renderer(form).render(summary, out)
    return text_digest(out.getvalue())


def _counters(path: Path) -> str:
    table = read_counters([path])
    for part in (table.launches, table.values):
        part.validate(full=True)
    return text_digest(repr(table.launches.to_pydict()).encode(), repr(table.values.to_pydict()).encode())


def _pipeline(path: Path) -> str:
    pipeline = load_pipeline(str(path))
    return text_digest(repr(pipeline).encode(), "\n".join(page(pipeline)).encode())


def _golden(path: Path) -> str:
    """A golden that is not as recorded never passes: silent change is what its digests are for."""
    found = check(path, forms())
    if found.error is not None:
        raise found.error
    return "passed" if found.passed else "deviates"


def _sqlite_seeds() -> tuple[Files, ...]:
    return tuple(_built(lambda place, v=v: scenario(v).write(place / "t.sqlite")) for v in sorted(GENERATIONS)[-2:])


def _built(make: Callable[[Path], Path]) -> Files:
    with tempfile.TemporaryDirectory() as place:
        return files_of(make(Path(place)))


def _columnar(kind: str) -> Callable[[], tuple[Files, ...]]:
    return lambda: (_built(lambda p: to_columnar(scenario("2025.3").write(p / "t.sqlite"), p / "x", kind)),)


def _imported(storage: str) -> Callable[[], tuple[Files, ...]]:
    def make(place: Path) -> Path:
        write_tables(load_trace(scenario("2025.3").write(place / "t.sqlite")), place / "x", storage)  # type: ignore[arg-type]
        return place / "x"

    return lambda: (_built(make),)


def _capture_seeds() -> tuple[Files, ...]:
    export = scenario("2025.3")
    export.process(200, "/opt/app/helper")
    export.call(50, 60, "cudaMalloc_v3020", thread=201, pid=200)
    export.kernel(600, 700, "k", mangledName=export.string("_Z1kIiEvPT_"))
    export.metric(40, 7)
    return (_built(lambda place: Converter(export.write(place / "t.sqlite")).write(place / "x")),)


def _resealed_capture(files: Files) -> Files:
    """Every sum of every file made to agree with what it covers."""
    return {name: resealed(data) for name, data in files.items()}


def _log_seeds() -> tuple[Files, ...]:
    return tuple(files_of(FIXTURES / name) for name in ("logs/three_jobs.log", "traces/sim_w2/app.log"))


def _page_seeds() -> tuple[Files, ...]:
    details = b"\n".join(ncu_files.content("p9_launches.details.csv").split(b"\n")[:60])
    return ({"page.csv": ncu_files.ten_pages()[5].encode()}, {"page.csv": details})


def _resealed_tables(files: Files, folder: str = "") -> Files:
    """The manifest's digests as the files now are."""
    out, name = dict(files), f"{folder}manifest.json"
    try:
        said = json.loads(out[name])
        for entry in said["tables"].values():
            if f"{folder}{entry['file']}" in out:
                entry["sha256"] = hashlib.sha256(out[f"{folder}{entry['file']}"]).hexdigest()
        out[name] = json.dumps(said, indent=1, sort_keys=True).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return out


def _resealed_golden(files: Files) -> Files:
    """Tables, then the golden's own digests, then the digest over those."""
    out = _resealed_tables(files, f"{manifest.TABLES}/")
    with tempfile.TemporaryDirectory() as place:
        folder = lay_down(out, Path(place), True)
        try:
            known = manifest.read(folder)
        except Exception:
            return out
        digests = {name: manifest.digest_of(folder / name) for name in manifest.file_names(folder)}
    resealed = manifest.Manifest(known.recorded, known.options, known.tolerances, digests)
    return out | {manifest.FILE: resealed.text()}


ATTRIBUTION = frozenset({"nothing-captured", "window-empty", "window-outside-capture", "walls-too-long",
    "log-trace-mismatch"})  # fmt: skip
KINDS: tuple[Kind, ...] = (
    Kind("sqlite", _sqlite_seeds, _trace, TABLE | {"database-corrupt", "database-truncated", "database-hostile",
        "limit-time", "not-a-database"} | ATTRIBUTION, 80),
    Kind("parquet", _columnar("parquet"), _trace, TABLE | ATTRIBUTION, 60, True),
    Kind("arrow", _columnar("arrow"), _trace, TABLE | ATTRIBUTION, 60, True),
    Kind("arrow-streams", _columnar("streams"), _trace, TABLE | ATTRIBUTION, 50),
    Kind("import-parquet", _imported("parquet"), _trace,
        TABLE | {"import-damaged", "import-version"} | ATTRIBUTION, 60, True, _resealed_tables),
    Kind("import-arrow", _imported("arrow"), _trace,
        TABLE | {"import-damaged", "import-version"} | ATTRIBUTION, 60, True, _resealed_tables),
    Kind("capture", _capture_seeds, _trace, TABLE | {"capture-damaged", "capture-version", "limit-strings"}
        | ATTRIBUTION, 60, True, _resealed_capture),
    Kind("golden", lambda: (files_of(FIXTURES / "golden" / "sim_w2"),), _golden,
        TABLE | {"import-damaged", "import-version", "golden-damaged", "golden-changed", "golden-version",
            "golden-missing", "golden-tolerance", "log-without-timeline", "log-runs-mixed", "log-too-damaged"}
        | ATTRIBUTION, 40, True, _resealed_golden),
    Kind("log", _log_seeds, _log, frozenset({"log-without-timeline", "log-runs-mixed", "log-too-damaged",
        "limit-log-bytes", "unknown-run"}), 120),
    Kind("ncu-page", _page_seeds, _counters, frozenset({"not-a-counter-report", "counters-empty", "limit-string",
        "limit-columns", "ncu-summary-page"}), 100),
    Kind("ncu-report", lambda: ({"r.ncu-rep": ncu_files.content("p9_accumulate.ncu-rep")},), _counters,
        frozenset({"ncu-report-damaged", "ncu-report-missing", "not-a-counter-report", "counters-empty", "limit-time"}),
        5),
    Kind("pipeline", lambda: ({"p.toml": (builtin_source("cuzk") or "").encode()},), _pipeline,
        frozenset({"pipeline-file-not-toml", "pipeline-file-invalid", "pipeline-file-too-large",
            "pipeline-file-unreadable"}), 200),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}


@functools.cache
def seeds_of(name: str) -> tuple[Files, ...]:
    """Built once a process."""
    return BY_NAME[name].seeds()


def source_of(kind: str, seed: int, number: int) -> random.Random:
    """The same mutant from the same three, on every machine."""
    return random.Random(f"{kind}/{seed}/{number}")


__all__ = ["BY_NAME", "DEFAULT_LIMITS", "KINDS", "Kind", "files_of", "lay_down", "seeds_of", "source_of"]
