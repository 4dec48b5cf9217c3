from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvprof_tools.model.kernel_names import base_name, is_mangled, labels, spellings

NSYS_CT = "void _CT_NTT<(int)1, bls12_381::fr_t>(T2 *, unsigned int, const T2 (*)[16384], const T2 *, bool, T2)"
NCU_CT = "void _CT_NTT<1, fr_t>(T2 *, unsigned int, const T2 (*)[16384], const T2 *, bool, T2)"
_POINT = "bls12_381::fp_t, bls12_381::fp_t, (const bls12_381::fp_t *)0"
_ARGUMENTS = "(T3 *, const T2 *, vec2d_t<unsigned int, unsigned int>)"
NSYS_FP = f"void accumulate<xyzz_t<{_POINT}>, Affine_inf_t<{_POINT}>::mem_t>{_ARGUMENTS}"
NCU_FP = f"void accumulate<xyzz_t<fp_t, fp_t, 0>, Affine_inf_t<fp_t, fp_t, 0>::mem_t>{_ARGUMENTS}"
NSYS_FP2 = NSYS_FP.replace("fp_t", "fp2_t")


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        (NSYS_CT, NCU_CT, 1),
        (NSYS_FP, NCU_FP, 1),
        ("k<(bool)1, (unsigned long)8>()", "void k<true, 8ul>()", 0),
        ("k<(Mode)-1>(int)", "k<-1>(int)", 0),
        ("f<ns::T>(const float * __restrict__, int)", "void f<ns::T>(float const*, int)", 0),
        (
            "at::native::<unnamed>::k<4, at::F<float>>(int)",
            "void at::native::(anonymous namespace)::k<4, at::F<float> >(int)",
            0,
        ),
        ("at::native::<unnamed>::k<4, at::F<float>>(int)", "k<4, F<float>>(int)", 1),
        ("void f<[lambda(int) (instance 2)]>(T1)", "void f<{lambda(int)#2}>(T1)", 0),
        ("std::enable_if<true, void>::type ns::bar<(bool)1>(int)", "bar<1>(int)", 1),
        ("void g<float>(float*, int)", "void g<float>(T1 *, int)", 2),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn", 0),
    ],
)
def test_two_spellings_of_one_kernel(one: str, other: str, level: int) -> None:
    assert spellings(one)[level] == spellings(other)[level]
    assert level == 0 or spellings(one)[level - 1] != spellings(other)[level - 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NSYS_FP, NSYS_FP2),
        ("_CT_NTT<0, fr_t>(T2 *)", "_CT_NTT<1, fr_t>(T2 *)"),
        ("k<(int)1>(int)", "k<(int)-1>(int)"),
        ("k<true>(int)", "k<false>(int)"),
        ("k<unsigned int>(T1)", "k<int>(T1)"),
        ("k<T *>(T1)", "k<T>(T1)"),
        ("f<[lambda(int) (instance 1)]>(T1)", "f<[lambda(int) (instance 2)]>(T1)"),
        ("k<void (*)(int)>(T1)", "k<void (*)(float)>(T1)"),
        ("k<A<B>, C>(T1)", "k<A<B, C>>(T1)"),
    ],
)
def test_other_kernels_stay_apart_at_every_level(one: str, other: str) -> None:
    assert not set(spellings(one)) & set(spellings(other))


def test_overloads_are_told_apart_by_their_parameters_only() -> None:
    one, other = spellings("add(int *, int)"), spellings("add(float *, int)")
    assert one[1] != other[1]
    assert one[2] == other[2]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (NSYS_CT, "_CT_NTT"),
        (NSYS_FP, "accumulate"),
        ("sort(vec2d_t<unsigned int, unsigned int>, unsigned long)", "sort"),
        ("unsigned int ns::inner::count<4>(int)", "count"),
        ("at::native::<unnamed>::k<4>(int)", "k"),
        ("void cub::Kernel<cub::Policy<&(foo)>>(int)", "Kernel"),
        ("std::enable_if<true, void>::type ns::bar<(bool)1>(int)", "bar"),
        ("cutlass3x_sm100_tensorop_f8", "cutlass3x_sm100_tensorop_f8"),
        ("", ""),
        ("((((", "("),
    ],
)
def test_base_names(name: str, base: str) -> None:
    assert base_name(name) == base


def test_symbols() -> None:
    assert is_mangled("_Z4sort7vec2d_tIjjEmjS_I5uint2jES0_jjj")
    assert not is_mangled("_CT_NTT<1, fr_t>(T2 *)")
    assert not is_mangled("sort")


def test_labels_name_what_sets_instances_apart() -> None:
    names = [NSYS_FP, NSYS_FP2, "sort(unsigned int)", "_CT_NTT<(int)0, fr_t>(T2 *)", "_CT_NTT<(int)1, fr_t>(T2 *)"]
    assert labels(names) == ["accumulate<fp_t>", "accumulate<fp2_t>", "sort", "_CT_NTT<0>", "_CT_NTT<1>"]


def test_labels_of_overloads_fall_back_to_whole_names() -> None:
    names = ["add(int *)", "add(float *)", "add<int>(T1)"]
    assert len(set(labels(names))) == 3
    assert labels(names)[:2] == names[:2]


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_name_has_spellings_that_are_stable(name: str) -> None:
    """Spelling a spelling changes nothing further, and white space never matters."""
    for level, word in enumerate(spellings(name)):
        assert "\t" not in word
        if level == 0 and word:
            assert spellings(f"  {name}  ") == spellings(name)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab_<>(),:* 01", min_size=1, max_size=25), unique=True, max_size=12))
def test_labels_are_distinct(names: list[str]) -> None:
    found = labels(names)
    assert len(found) == len(names)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    "name", ["<" * 50_000, "(" * 50_000, "a::" * 30_000, "(int)" * 20_000 + "1", "k<" + "(a)1," * 19_000]
)
def test_long_names_take_linear_time(name: str) -> None:
    """Quadratic code would take minutes here; the result matters less than that there is one."""
    assert len(spellings(name)) == 3
    assert base_name(name)


def test_names_beyond_any_compiler_are_left_alone() -> None:
    name = "k<" + "x" * 200_000 + ">(int)"
    assert spellings(name) == (name, name, name)
