"""What text may stand in a repository."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvprof_tools.golden.words import digest_of, is_plain, plain, plain_text, reworded

NAMES = [
    "cudaLaunchKernel",
    "void pipeline::ntt<float, (int)256>(pipeline::Params<float>, int, const float *__restrict__)",
    "batch_addition",
    "prep_join",
    "HtoD",
    "GR Active [Throughput %]",
    "section job=6cdff066-dc7f-41aa-ae5a-ccbb439bd9a3 partition=3 worker=1",
    "TIMELINE,401,GPU_START,a31d6701,worker=0,partition=3|wall_ns=1|mono_ns=2|late_ns=0",
    "step 12",
    "NVIDIA H200",
    "std::io::fft",
]
TELLING = [
    "/home/alice/prover/main.cu",
    "C:\\Users\\alice\\x",
    "~/secret",
    "build-host-7.corp",
    "gpu01.cluster.local",
    "10.0.12.7",
    "alice@example",
    "LD_LIBRARY_PATH=x",
    "my_password",
    "lambda at src/ntt.cu:12",
    "a\nb",
    "bidi\u202eabc",
    "x" * 400,
]


@pytest.mark.parametrize("word", NAMES)
def test_names_stay(word: str) -> None:
    assert plain(word) == word


@pytest.mark.parametrize("word", TELLING)
def test_what_could_tell_more_than_a_name_goes_and_stays_apart(word: str) -> None:
    shown = plain(word)
    assert shown.startswith("hidden_")
    assert shown == plain(word)
    assert shown != plain(word + "2")
    assert len(word) > 200 or word not in plain_text(f"said of {word} here")


@given(st.text())
def test_what_comes_out_is_plain_and_comes_out_the_same_again(word: str) -> None:
    once = plain(word)
    assert once == "" or is_plain(once)
    assert plain(once) == once


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kernels: 1,798 rows read, 1,798 kept, 0 set aside", None),
        ("give the log of the run and/or another --window", None),
        ("reading /data/x.sqlite failed", "reading <path> failed"),
        ("see C:\\temp\\a.txt, then", "see <path>, then"),
    ],
)
def test_sentences_lose_their_paths_only(text: str, shown: str | None) -> None:
    assert plain_text(text) == (text if shown is None else shown)


def test_rewording_keeps_nulls_merges_equals_and_sorts() -> None:
    column = pa.array(["b", None, "/x", "a", "/y", "b"]).dictionary_encode()
    out = reworded(column, lambda word: "hidden" if word.startswith("/") else word)
    assert out.to_pylist() == ["b", None, "hidden", "a", "hidden", "b"]
    assert out.dictionary.to_pylist() == ["a", "b", "hidden"]


def test_digests_are_those_of_sha256() -> None:
    assert digest_of("abc", "kernel") == "kernel_ba7816bf8f01"  # sha256("abc") begins so
