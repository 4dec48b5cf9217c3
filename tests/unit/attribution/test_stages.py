"""Stages of a cuzk partition: kernels of one name told apart by signature, by launch and by order."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.attribution.attribute import Options, attribute
from nvprof_tools.pipelines.load import load_pipeline
from nvprof_tools.timeline.normalise import load_trace
from tests.builders import Export

DIGITS = (
    "void batch_addition<bucket_t>(bucket_t *, affine_t *, unsigned long, const unsigned int *, const unsigned int &)"
)
BITMAP = "void batch_addition<bucket_t>(bucket_t *, affine_t *, unsigned int, const unsigned int *, bool, unsigned int)"

# One partition: (kernel, signature, cooperative) in launch order, and the stage each must get.
ORDER = [
    ("generate_partial_twiddles", None, False, "setup"),
    ("_GS_NTT", None, False, "ntt"),
    ("coeff_wise_mult", None, False, "pointwise"),
    ("_CT_NTT", None, False, "ntt"),
    ("breakdown", None, False, "msm_h"),
    ("sort", None, True, "msm_h"),
    ("batch_addition", DIGITS, False, "msm_h"),
    ("accumulate", None, True, "msm_h"),
    ("integrate", None, False, "msm_h"),
    ("batch_addition", BITMAP, True, "batch_add"),
    ("batch_addition", BITMAP, True, "batch_add"),
    ("breakdown", None, False, "msm_tail"),
    ("batch_addition", DIGITS, False, "msm_tail"),
    ("integrate", None, False, "msm_tail"),
]


def stages(tmp_path: Path, *, signatures: bool, pooled: bool) -> dict[str, int]:
    """Two partitions in turn; ``pooled``: one thread launches for both, else a fresh one each."""
    export = Export("2025.3", duration=1_000_000)
    export.board(0, ordinal=0)
    correlation = 0
    for part in range(2):
        begin, thread = part * 10_000, 50 if pooled else 50 + part
        export.nvtx(begin, begin + 9_000, "gpu_prove", thread=10)
        export.nvtx(begin + 10, begin + 8_000, "gpu_mutex_held", thread=10)
        for step, (name, signature, cooperative, _) in enumerate(ORDER):
            correlation += 1
            at = begin + 100 + step * 100
            call = "cudaLaunchCooperativeKernel_v9000" if cooperative else "cudaLaunchKernel_v7000"
            export.call(at, at + 10, call, thread=thread, correlation=correlation)
            text = signature if signatures and signature else f"void {name}()"
            export.kernel(
                at + 20, at + 30, name, correlation=correlation, demangledName=export.string(text),
                launchType=2 if cooperative else 1,
            )  # fmt: skip
    trace = load_trace(export.write(tmp_path / "trace.sqlite"))
    found = attribute(trace, None, [load_pipeline("cuzk")], Options(window="0:20000"))
    return dict(found.devices[0].stages)


@pytest.mark.parametrize("signatures", [True, False])
@pytest.mark.parametrize("pooled", [True, False])
def test_a_partition_goes_through_its_stages(tmp_path: Path, signatures: bool, pooled: bool) -> None:
    expected: dict[str, int] = {}
    for *_, stage in ORDER * 2:
        expected[stage] = expected.get(stage, 0) + 10
    assert stages(tmp_path, signatures=signatures, pooled=pooled) == expected


def test_the_letters_of_a_matrix_product_are_no_transform(tmp_path: Path) -> None:
    """cuBLAS names its kernels by which operands are transposed: N, T, T."""
    export = Export("2025.3", duration=1_000)
    export.board(0, ordinal=0)
    export.kernel(10, 40, "nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NTT")
    export.kernel(50, 60, "_GS_NTT")
    trace = load_trace(export.write(tmp_path / "t.sqlite"))
    assert attribute(trace, None, [load_pipeline("generic")], Options()).devices[0].stages == {"gemm": 30, "ntt": 10}
