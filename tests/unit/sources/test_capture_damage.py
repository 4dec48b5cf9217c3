"""Captures that were cut anywhere, damaged anywhere, or made to hurt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nvprof_tools.errors import SourceError
from nvprof_tools.limits import DEFAULT_LIMITS, parse_limits
from nvprof_tools.model.quality import QualityItem, Severity
from nvprof_tools.sources import registry
from nvprof_tools.sources.base import RawTables
from nvprof_tools.timeline.normalise import load_trace
from tests.capture_writer import Capture, block

BOOT, UTC = 10**15, 17 * 10**17
_FIELDS = {
    "runtime": ("start", "end", "tid", "correlationId", "name"),
    "kernel": ("start", "end", "correlationId", "name"),
    "nvtx_range": ("start", "end", "tid", "text"),
    "clock": ("realtime", "monotonic"),
}


def small() -> Capture:
    """Two blocks of each of a few tables; the schema knows no other."""
    capture = Capture(enabled=["RUNTIME"])
    capture.layouts = {table: [f for f in capture.layouts[table] if f[0] in names] for table, names in _FIELDS.items()}
    capture.info = {"pid": 100, "clock": "monotonic"}
    for i in range(2):
        capture.clock(BOOT + i * 2000, UTC + i * 2000)
        for j in range(3):
            at = BOOT + i * 500 + j * 100
            name = capture.word("cudaLaunchKernel_v7000")
            capture.row("runtime", start=at + 1, end=at + 20, tid=101, name=name, correlationId=i * 3 + j + 1)
            name = capture.word(f"kernel{i}")
            capture.row("kernel", start=at + 30, end=at + 60, name=name, correlationId=i * 3 + j + 1)
        capture.row(
            "nvtx_range", start=BOOT + i * 500, end=BOOT + i * 500 + 90, tid=101, text=capture.word(f"range{i}")
        )
        capture.flush()
    return capture


def boundaries(data: bytes) -> list[tuple[int, int, int]]:
    """(kind, rows, end without padding) of each block, walked by its own sizes."""
    found, at = [], 64
    while at < len(data):
        kind, rows = int.from_bytes(data[at + 4 : at + 6], "little"), int.from_bytes(data[at + 8 : at + 12], "little")
        size = int.from_bytes(data[at + 12 : at + 16], "little")
        found.append((kind, rows, at + 32 + size))
        at += 32 + size + -size % 8
    return found


def read(path: Path) -> tuple[dict[str, int], list[QualityItem]]:
    """Rows of each event table, every one read, and what was said."""
    with registry.read(path, DEFAULT_LIMITS) as raw:  # type: ignore[union-attr]
        assert isinstance(raw, RawTables)
        rows = {}
        for name in raw.names:
            table = raw.read(name)
            assert table is not None, name
            table.validate(full=True)
            rows[name] = table.num_rows
        return rows, list(raw.quality)


def slugs(items: list[QualityItem]) -> dict[str, int]:
    return {item.slug: item.count for item in items}


def test_cut_at_every_byte_it_says_what_was_lost(tmp_path: Path) -> None:
    whole = small().bytes()
    blocks = boundaries(whole)
    assert blocks[-1][0] == 4
    path = tmp_path / "cut.nvcap"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = [b for b in blocks if b[2] <= cut]
        if not kept:
            with pytest.raises(SourceError) as caught:
                read(path)
            assert caught.value.slug == ("not-a-trace" if cut < 8 else "capture-damaged"), cut
            continue
        rows, said = read(path)
        assert rows.get("CUPTI_ACTIVITY_KIND_RUNTIME", 0) == sum(r for kind, r, _ in kept if kind == 19), cut
        assert rows.get("CUPTI_ACTIVITY_KIND_KERNEL", 0) == sum(r for kind, r, _ in kept if kind == 16), cut
        lost = cut - (kept[-1][2] + -kept[-1][2] % 8)
        told = slugs(said)
        assert told.get("capture-truncated", 0) == max(lost, 0), cut
        assert ("capture-unfinished" in told) == (kept[-1][0] != 4), cut


def test_a_capture_that_was_cut_is_a_trace_up_to_there(tmp_path: Path) -> None:
    whole = small().bytes()
    path = tmp_path / "cut.nvcap"
    ends = [end for _, _, end in boundaries(whole)][:-1]
    for cut in sorted({e + d for e in ends for d in (0, 1, 9) if e + d < len(whole)}):
        path.write_bytes(whole[:cut])
        trace = load_trace(path)
        assert any(item.severity == Severity.DATA_LOSS for item in trace.quality)
        for table in trace.tables.values():
            table.validate(full=True)


def test_a_wrong_byte_is_said_or_changes_nothing(tmp_path: Path) -> None:
    whole = small().bytes()
    path = tmp_path / "wrong.nvcap"
    path.write_bytes(whole)
    expected = read(path)
    for at in range(0, len(whole), 3):
        data = bytearray(whole)
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        try:
            rows, said = read(path)
        except SourceError as error:
            assert error.slug in {"not-a-trace", "capture-damaged", "capture-version"}
            continue
        if (rows, said) != expected:
            assert any(item.severity == Severity.DATA_LOSS for item in said), at


def test_a_block_with_a_wrong_sum_is_set_aside_and_counted(tmp_path: Path) -> None:
    data = bytearray(small().bytes())
    kind, rows, end = next(b for b in boundaries(bytes(data)) if b[0] == 19)
    data[end - 1] ^= 1
    path = tmp_path / "wrong.nvcap"
    path.write_bytes(data)
    found, said = read(path)
    assert found["CUPTI_ACTIVITY_KIND_RUNTIME"] == 3
    item = next(item for item in said if item.slug == "capture-blocks-damaged")
    assert (item.count, "3 rows" in item.message, kind, rows) == (1, True, 19, 3)


def test_a_block_that_is_not_there_is_missed(tmp_path: Path) -> None:
    whole = small().bytes()
    blocks = boundaries(whole)
    begin = blocks[4][2] + -blocks[4][2] % 8
    end = blocks[5][2] + -blocks[5][2] % 8
    path = tmp_path / "hole.nvcap"
    path.write_bytes(whole[:begin] + whole[end:])
    _, said = read(path)
    assert slugs(said)["capture-blocks-missing"] == 1


def broken_schema(change: Callable[[dict], object]) -> bytes:
    capture = small()
    schema = capture.schema()
    change(schema)  # type: ignore[arg-type]
    data = capture.bytes()
    first = boundaries(data)[0][2]
    return data[:64] + block(1, 1, json.dumps(schema).encode(), 0) + data[first + -first % 8 :]


def _set(table: int, **values: object) -> Callable[[dict], object]:
    return lambda schema: schema["tables"][table].update(values)


def _field(**values: object) -> Callable[[dict], object]:
    return lambda schema: schema["tables"][0]["fields"][0].update(values)


BAD = {
    "no tables": lambda s: s.clear(),
    "tables are text": lambda s: s.update(tables="kernel"),
    "a kind twice": _set(1, kind=19),
    "a kind of no events": _set(0, kind=3),
    "a kind that is true": _set(0, kind=True),
    "no size": _set(0, row_bytes=0),
    "a size that is none": _set(0, row_bytes=-8),
    "a vast size": _set(0, row_bytes=1 << 40),
    "no fields": _set(0, fields=[]),
    "very many fields": _set(0, fields=[{"name": f"f{i}", "type": "u1", "offset": 0} for i in range(300)], row_bytes=8),
    "a field beyond the row": _field(offset=4096),
    "a field across the end": lambda s: s["tables"][0]["fields"][0].update(offset=s["tables"][0]["row_bytes"] - 4),
    "a field before the row": _field(offset=-1),
    "an object as type": _field(type="O"),
    "a text as type": _field(type="U8"),
    "a field twice": _field(name="end"),
    "a name that is none": _field(name="__class__ x"),
    "a fraction as offset": _field(offset=0.5),
    "a table that is a list": lambda s: s["tables"].append([]),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_schema_that_cannot_be_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.nvcap"
    path.write_bytes(broken_schema(BAD[what]))
    with pytest.raises(SourceError) as caught:
        read(path)
    assert caught.value.slug == "capture-damaged"


def test_the_schema_counts_not_a_layout_of_the_reader(tmp_path: Path) -> None:
    capture = small()
    capture.layouts["runtime"] = [("mystery", "u4"), *reversed(capture.layouts["runtime"])]
    for i in range(4):
        capture.row("runtime", start=BOOT + 700 + i, end=BOOT + 710, tid=102, name=capture.word("cudaFree"), mystery=9)
    data = capture.bytes()
    path = tmp_path / "other.nvcap"
    path.write_bytes(data)
    # The first two blocks were written by the old layout: they do not fit the one that is stated.
    rows, said = read(path)
    assert rows["CUPTI_ACTIVITY_KIND_RUNTIME"] == 4
    assert slugs(said)["capture-blocks-malformed"] == 2


def test_a_table_without_a_field_it_needs_is_left_out(tmp_path: Path) -> None:
    data = broken_schema(lambda s: s["tables"][0]["fields"][0].update(name="begin"))
    path = tmp_path / "less.nvcap"
    path.write_bytes(data)
    trace = load_trace(path)
    assert trace["api_calls"].num_rows == 0
    assert "table-unusable" in slugs(list(trace.quality))


def test_strings_that_run_over_their_block(tmp_path: Path) -> None:
    capture = small()
    capture.blocks.append((3, 2, b"\x00\x01\x00\x00\xff\xff\xff\x7fabc"))
    capture.blocks.append((3, 5, b"\x01\x01\x00"))
    path = capture.write(tmp_path / "strings.nvcap")
    _, said = read(path)
    assert slugs(said)["capture-blocks-malformed"] == 2


@pytest.mark.parametrize(
    "said", [b"[", b"[]", b"null", b"{" * 5000, b'{"pid": 1e999}', b'{"pid": "x", "clock": 3}', b"\xff"]
)
def test_facts_that_are_none(said: bytes, tmp_path: Path) -> None:
    capture = small()
    capture.blocks += [(kind, 1, said) for kind in (5, 2)]
    path = capture.write(tmp_path / "facts.nvcap")
    try:
        trace = load_trace(path)
    except SourceError as error:
        assert error.slug == "capture-version"
    else:
        assert trace["api_calls"].num_rows == 6


def test_absurd_times_are_set_aside(tmp_path: Path) -> None:
    capture = small()
    name = capture.word("cudaFree")
    for start, end in ((0, 5), ((1 << 64) - 1, (1 << 64) - 1), (1 << 63, 1 << 63), (BOOT + 9, BOOT + 3), (0, 0)):
        capture.row("runtime", start=start, end=end, tid=101, name=name)
    trace = load_trace(capture.write(tmp_path / "times.nvcap"))
    assert trace["api_calls"].num_rows == 6
    told = slugs(list(trace.quality))
    assert told["rows-time-out-of-range"] == 2
    assert told["rows-reversed"] == 1
    assert told["rows-without-time"] == 2


@pytest.mark.parametrize(
    ("limit", "slug"), [("rows=5", "limit-rows"), ("file=1000", "limit-file"), ("strings=2", "limit-strings")]
)
def test_limits(limit: str, slug: str, tmp_path: Path) -> None:
    path = small().write(tmp_path / "p.nvcap")
    with pytest.raises(SourceError) as caught:
        load_trace(path, parse_limits(limit))
    assert caught.value.slug == slug


def test_another_version_and_another_header(tmp_path: Path) -> None:
    data = bytearray(small().bytes())
    path = tmp_path / "p.nvcap"
    for at, value, slug in ((8, 2, "capture-version"), (12, 65, "capture-damaged"), (12, 8, "capture-damaged")):
        changed = bytearray(data)
        changed[at] = value
        path.write_bytes(changed)
        with pytest.raises(SourceError) as caught:
            read(path)
        assert caught.value.slug == slug


def test_of_a_folder_the_files_that_can_be_used_are(tmp_path: Path) -> None:
    whole = small().bytes()
    (tmp_path / "a.nvcap").write_bytes(whole)
    (tmp_path / "b.nvcap").write_bytes(whole[:80])
    (tmp_path / "c.nvcap").write_bytes(b"")
    (tmp_path / "d.nvcap").write_bytes(b"something else")
    (tmp_path / "notes.txt").write_text("not ours")
    rows, said = read(tmp_path)
    assert rows["CUPTI_ACTIVITY_KIND_RUNTIME"] == 6
    assert slugs(said)["capture-file-unusable"] == 3
    (tmp_path / "a.nvcap").unlink()
    with pytest.raises(SourceError) as caught:
        read(tmp_path)
    assert caught.value.slug == "capture-damaged"


def test_blocks_are_limited_over_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        Capture(pid=100 + number).write(tmp_path / f"{number}.nvcap")
    monkeypatch.setattr("nvprof_tools.sources.capture_file.MOST_BLOCKS", 6)
    with pytest.raises(SourceError) as caught:
        load_trace(tmp_path)
    assert caught.value.slug == "limit-blocks"
