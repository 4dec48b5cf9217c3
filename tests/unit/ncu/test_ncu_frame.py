"""The outer frame of a report, without the vendor's package."""

from __future__ import annotations

import tempfile
from pathlib import Path

import ncu_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.errors import SourceError
from nvprof_tools.sources import ncu_blocks, ncu_report
from nvprof_tools.sources.ncu import read_counters


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def block(sources: list[bytes], results: list[bytes], process: int = 0) -> bytes:
    payload = b"".join(len(e).to_bytes(4, "little") + e for e in [*sources, *results])
    inner = b"\x08" + varint(process)
    header = b"\x08" + varint(len(sources)) + b"\x10" + varint(len(results)) + b"\x28" + varint(len(payload))
    header += b"\x32" + varint(len(inner)) + inner if process else b""
    return len(header).to_bytes(4, "little") + header + payload


def report(*blocks: bytes) -> bytes:
    return b"NVR\0\x02\0\0\0\x08\x07" + b"".join(blocks)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def frame_of(tmp_path: Path, content: bytes) -> ncu_blocks.Frame:
    path = tmp_path / "r"
    path.write_bytes(content)
    return ncu_blocks.read_frame(path)


def test_blocks_are_counted(tmp_path: Path) -> None:
    content = report(block([b"\x08\x01"], []), block([], [b"\x08\x01", b"\x08\x02"], 7), block([], [b""], 7))
    assert frame_of(tmp_path, content) == ncu_blocks.Frame(True, 3, 7)


def test_two_processes_are_none(tmp_path: Path) -> None:
    assert frame_of(tmp_path, report(block([], [b""], 7), block([], [b""], 8))).process is None


def test_the_real_report(tmp_path: Path) -> None:
    path = ncu_files.unpack("p9_launches.ncu-rep", tmp_path)
    assert ncu_blocks.read_frame(path) == ncu_blocks.Frame(True, 49, 1393)


@settings(deadline=None)
@given(st.data())
def test_any_cut_is_seen(data: st.DataObject) -> None:
    """A cut inside a block is seen; one between blocks cannot be, but shows fewer results."""
    blocks = [block([], [bytes(n)], 7) for n in (0, 5, 200)]
    content = report(*blocks)
    at = data.draw(st.integers(4, len(content) - 1))
    ends = {10 + sum(len(b) for b in blocks[:i]) for i in range(4)}
    with tempfile.NamedTemporaryFile() as file:
        file.write(content[:at])
        file.flush()
        assert ncu_blocks.read_frame(Path(file.name)).whole == (at in ends)


def test_a_smaller_copy_lacks_the_sections_only(tmp_path: Path) -> None:
    result = field(13, b"metric") + field(17, b"x" * 500) + b"\x08\x05" + field(19, b"rule") + field(17, b"y" * 300)
    path = tmp_path / "r"
    path.write_bytes(report(block([b"source"], []), block([], [result, result], 7)))
    copy = tmp_path / "copy"
    with copy.open("wb", buffering=0) as file:
        assert ncu_blocks.write_slim(path, file.fileno())
    slim = field(13, b"metric") + b"\x08\x05" + field(19, b"rule")
    assert slim + len(slim).to_bytes(4, "little") + slim in copy.read_bytes()
    assert b"xx" not in copy.read_bytes()
    assert ncu_blocks.read_frame(copy) == ncu_blocks.Frame(True, 2, 7)


@pytest.mark.parametrize(
    "broken",
    [
        report(block([], [b"\x0f"])),
        report(block([], [b"\x6a\x7f"])),
        report(block([], [b"\xff" * 12])),
        report(block([], [b"\x08\x01"]))[:-1],
        report(block([], [b"\x08\x01"])[:-3] + b"\xff\xff\xff\x7f"),
        b"NVR\0\xff\xff\xff\xff",
        b"NVR\0",
    ],
)
def test_a_form_that_is_not_known_is_left_whole(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / "r"
    path.write_bytes(broken)
    with (tmp_path / "copy").open("wb", buffering=0) as file:
        assert not ncu_blocks.write_slim(path, file.fileno())


def test_the_package_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu_report, "PACKAGE", "no_package_of_that_name")
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(report(block([], [b""])))
    with pytest.raises(SourceError) as caught:
        read_counters([path])
    assert caught.value.slug == "ncu-report-missing"
    assert "pip install" in caught.value.hint
    assert "--page raw" in caught.value.hint


def test_the_package_missing_but_a_page_beside_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu_report, "PACKAGE", "no_package_of_that_name")
    (tmp_path / "a.ncu-rep").write_bytes(report(block([], [b""])))
    ncu_files.write(tmp_path, ncu_files.ten_pages()[3], "a.raw.csv")
    table = read_counters([tmp_path])
    assert len(table) == 4
    assert {item.slug: item.count for item in table.quality}["ncu-report-skipped"] == 1
