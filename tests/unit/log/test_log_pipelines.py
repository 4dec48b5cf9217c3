"""Pipeline files: what ships, what a file of one's own may say, and every way to get one wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from nvprof_tools.attribution.categories import CALLS
from nvprof_tools.errors import ToolError
from nvprof_tools.pipelines.load import MAX_FILE_BYTES, builtin_pipelines, builtin_source, load_pipeline

CUZK = load_pipeline("cuzk")
GENERIC = load_pipeline("generic")
STAGE = '[[stages]]\nstage = "a"\n'
BASE = 'name = "mine"\n[events]\ngpu_start = "GPU_START"\ngpu_end = "GPU_END"\n'

BITMAP = (
    "void batch_addition<xyzz_t<bls12_381::fp_t>, Affine_inf_t<bls12_381::fp_t>::mem_t>(T1 *, const T2 *, "
    "unsigned int, const unsigned int *, bool, unsigned int)"
)
DIGITS = (
    "void batch_addition<xyzz_t<bls12_381::fp_t>, Affine_inf_t<bls12_381::fp_t>::mem_t>(T1 *, const T2 *, "
    "unsigned long, const unsigned int *, const unsigned int &)"
)


def stages(name: str, signature: str | None, cooperative: bool | None) -> list[str]:
    """Stages whose rule fits, leaving the order aside."""
    return [rule.stage for rule in CUZK.stages if rule.matches(name, signature, cooperative)]


def test_what_ships() -> None:
    assert [pipeline.name for pipeline in builtin_pipelines()] == ["cuzk", "generic"]
    for pipeline in builtin_pipelines():
        assert pipeline.builtin
        assert pipeline.bracket_columns == ("gpu_start_ms", "gpu_end_ms")
        assert set(pipeline.api) == set(CALLS)
    assert CUZK.clock.calls_in_bracket
    assert not GENERIC.clock.calls_in_bracket
    assert (CUZK.in_lock.hold_to, GENERIC.in_lock.hold_to) == ("last_call", "section_end")
    assert CUZK.workers_per_device == 2


@pytest.mark.parametrize(
    ("call", "category"),
    [
        ("cudaDeviceSynchronize", "device_sync"),
        ("cuCtxSynchronize", "device_sync"),
        ("cudaMemPoolTrimTo", "pool_trim"),
        ("cudaDeviceGetDefaultMemPool", "pool_trim"),
        ("cudaMemPoolSetAttribute", "pool_trim"),
        ("cudaMemPoolGetAttribute", "pool_trim"),
        ("cudaMemGetInfo", "mem_info"),
        ("cudaMalloc", "alloc"),
        ("cudaMallocAsync", "alloc"),
        ("cudaMallocFromPoolAsync", "alloc"),
        ("cudaHostAlloc", "alloc"),
        ("cudaMallocHost", "alloc"),
        ("cudaHostRegister", "host_register"),
        ("cudaHostUnregister", "host_unregister"),
        ("cudaFreeHost", "host_unregister"),
        ("cudaFree", "free"),
        ("cudaFreeAsync", "free"),
        ("cudaEventDestroy", "free"),
        ("cudaStreamDestroy", "free"),
        ("cudaLaunchKernel", "launch"),
        ("cudaLaunchKernelExC", "launch"),
        ("cudaLaunchCooperativeKernel", "launch"),
        ("cudaLaunchCooperativeKernelMultiDevice", "launch"),
        ("cuLaunchKernelEx", "launch"),
        ("cudaGraphLaunch", "launch"),
        ("cudaStreamSynchronize", "sync_wait"),
        ("cudaEventSynchronize", "sync_wait"),
        ("cudaMemcpyAsync", "upload_issue"),
        ("cudaMemcpy2DAsync", "upload_issue"),
        ("cudaEventRecord", None),
        ("cudaStreamWaitEvent", None),
        ("cuLibraryLoadData", None),
        ("cudaMemsetAsync", None),
        ("", None),
    ],
)
def test_calls_have_their_category(call: str, category: str | None) -> None:
    assert CUZK.api_category(call) == category
    assert GENERIC.api_category(call) == category


def test_the_stages_of_cuzk() -> None:
    assert stages("_CT_NTT", None, False) == ["ntt"]
    assert stages("LDE_distribute_powers", None, False) == ["ntt"]
    assert stages("bit_rev_permutation_z", None, False) == ["ntt"]
    assert stages("sub_mult_with_constant", None, False) == ["pointwise"]
    assert stages("generate_inner_twiddles", None, False) == ["setup"]
    assert stages("generate_radix6_twiddles_6", None, False) == ["setup"]
    assert stages("breakdown", None, False) == ["msm_h", "msm_tail", "msm"]
    assert stages("something_else", None, False) == []


def test_two_kernels_of_one_name() -> None:
    assert stages("batch_addition", BITMAP, None)[0] == "batch_add"
    assert stages("batch_addition", None, True)[0] == "batch_add"
    assert stages("batch_addition", DIGITS, False)[0] == "msm_h"
    assert stages("batch_addition", None, None)[0] == "msm_h"
    h, tail, other = (rule for rule in CUZK.stages if rule.stage in {"msm_h", "msm_tail", "msm"})
    assert (h.before, tail.after, other.before, other.after) == ("batch_add", "batch_add", None, None)


@pytest.mark.parametrize(
    ("kernel", "stage"),
    [
        ("ntt_butterfly", "ntt"),
        ("msm_bucket_accumulate", "msm"),
        ("nvjet_sm90_hsh_128x128_64x6_2x1_v_bz_NNT", "gemm"),
        ("ampere_sgemm_128x64_tn", "gemm"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", "gemm"),
        ("flash_fwd_kernel", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64", "attention"),
        ("vectorized_layer_norm_kernel", "norm"),
        ("softmax_warp_forward", "softmax"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl"),
        ("ncclDevKernel_SendRecv", "nccl"),
        ("reduce_kernel", "reduce"),
        ("vectorized_elementwise_kernel", "elementwise"),
        ("multi_tensor_apply_kernel", "optimizer"),
        ("CatArrayBatchedCopy_vectorized", "gather"),
        ("implicit_convolve_sgemm", "conv"),
    ],
)
def test_the_stages_of_generic(kernel: str, stage: str) -> None:
    assert next(rule.stage for rule in GENERIC.stages if rule.matches(kernel, None, None)) == stage


def write(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_small_file_of_ones_own(tmp_path: Path) -> None:
    mine = load_pipeline(write(tmp_path, BASE))
    assert (mine.name, mine.builtin, mine.events.partition, mine.workers_per_device) == (
        "mine",
        False,
        ("partition",),
        1,
    )
    assert mine.api == CUZK.api
    assert mine.in_lock.hold_to == "section_end"


def test_a_built_in_file_is_a_start(tmp_path: Path) -> None:
    source = builtin_source("cuzk")
    assert source is not None
    mine = load_pipeline(write(tmp_path, source))
    assert (mine.events, mine.ranges, mine.in_lock, mine.stages) == (
        CUZK.events,
        CUZK.ranges,
        CUZK.in_lock,
        CUZK.stages,
    )
    assert builtin_source("nothing") is None


def test_overrides_move_names(tmp_path: Path) -> None:
    mine = load_pipeline(write(tmp_path, BASE + '[api_overrides]\nalloc = ["cudaMemcpy3D*", "cudaFreeAsync"]\n'))
    assert mine.api_category("cudaMemcpy3DAsync") == "alloc"
    assert mine.api_category("cudaMemcpyAsync") == "upload_issue"
    assert mine.api_category("cudaFreeAsync") == "alloc"
    assert mine.api_category("cudaMalloc") == "alloc"


@pytest.mark.parametrize(
    ("text", "slug", "says"),
    [
        ("name = \n", "pipeline-file-not-toml", "line 1"),
        (b"\xff\xfe", "pipeline-file-not-toml", "utf-8"),
        ("x=" + "[" * 30_000, "pipeline-file-not-toml", ""),
        ("#" * (MAX_FILE_BYTES + 1), "pipeline-file-too-large", "256 KiB"),
        ("", "pipeline-file-invalid", "`events` must be a table"),
        ('[events]\ngpu_start = "GPU_START"\ngpu_end = "GPU_END"\n', "pipeline-file-invalid", "`name`"),
        (BASE + 'gpu_stop = "X"\n', "pipeline-file-invalid", "`events.gpu_stop`"),
        (BASE + "[range]\n", "pipeline-file-invalid", "`range`"),
        (BASE + 'worker = 3\n', "pipeline-file-invalid", "`events.worker`"),
        (BASE + 'sent = "GPU_END"\n', "pipeline-file-invalid", "two meanings to 'GPU_END'"),
        (BASE + 'sent = "A B"\n', "pipeline-file-invalid", "cannot stand in a log line"),
        (BASE + '[extra_events]\nGPU_END = "x"\n', "pipeline-file-invalid", "two meanings"),
        (BASE + "[in_lock]\nhold_to = \"last_call\"\n", "pipeline-file-invalid", "needs `first` and `last`"),
        (BASE + "[in_lock]\nhold_to = \"never\"\n", "pipeline-file-invalid", "one of last_call, section_end"),
        (BASE + "[clock]\ncalls_in_bracket = 1\n", "pipeline-file-invalid", "true or false"),
        (BASE + '[api_overrides]\nkernel = "x"\n', "pipeline-file-invalid", "no category 'kernel'"),
        (BASE + STAGE, "pipeline-file-invalid", "`stages[0].kernels`"),
        (BASE + STAGE + 'kernels = "x"\nkernels_regex = "y"\n', "pipeline-file-invalid", "not both"),
        (BASE + STAGE + 'kernels_regex = "("\n', "pipeline-file-invalid", "not a regular expression"),
        (BASE + STAGE + 'kernels_regex = "a{99999999999}"\n', "pipeline-file-invalid", "not a regular"),
        (BASE + STAGE + f'kernels = "{"x" * 501}"\n', "pipeline-file-invalid", "name or a list"),
        (BASE + STAGE + 'kernels = "x"\nbefore = "b"\n', "pipeline-file-invalid", "ordered by 'b'"),
        (BASE + STAGE + 'kernels = "x"\nlaunch = "odd"\n', "pipeline-file-invalid", "one of cooperative"),
        ('workers_per_device = 0\n' + BASE, "pipeline-file-invalid", "from 1 to 1024"),
        ('bracket = ["GPU_END", "GPU_START"]\n' + BASE, "pipeline-file-invalid", "ends before it starts"),
        ('bracket = ["GPU_START", "NOPE"]\n' + BASE, "pipeline-file-invalid", "two names out of"),
        ('bracket = "GPU_START"\n' + BASE, "pipeline-file-invalid", "two names out of"),
        ("stages = 3\n" + BASE, "pipeline-file-invalid", "array"),
    ],
)  # fmt: skip
def test_every_way_to_get_one_wrong(tmp_path: Path, text: str | bytes, slug: str, says: str) -> None:
    with pytest.raises(ToolError) as error:
        load_pipeline(write(tmp_path, text))
    assert error.value.slug == slug
    assert says in error.value.message
    assert "\n" not in error.value.message
    assert len(error.value.message) < 400
    assert error.value.exit_code == 3


@pytest.mark.parametrize("name", ["nothing", "", "cuzk "])
def test_an_unknown_name(name: str) -> None:
    with pytest.raises(ToolError) as error:
        load_pipeline(name)
    assert (error.value.slug, error.value.exit_code) == ("unknown-pipeline", 3)
    assert "cuzk, generic" in error.value.hint


@pytest.mark.parametrize("path", ["no/such.toml", "absent.toml", "nul\0.toml"])
def test_a_file_that_is_not_there(path: str) -> None:
    with pytest.raises(ToolError) as error:
        load_pipeline(path)
    assert error.value.slug == "pipeline-file-unreadable"
