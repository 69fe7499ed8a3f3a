"""Contractions on the GPU: against FP64, to the bit for exact operands, one launch, the same bits on every run."""

import pytest
import torch

import deep_gemm
from cuda_graphs import captured
from deep_gemm.cli.timing import device_trace
from deep_gemm.testing import assert_bitwise_equal, calc_diff
from einsum_cases import BHD, BMN, CASES, EMPTY_CASES, F32, FP8_CASES, LARGE_CASES, REFERENCE_CASES, WIDE_CASES, Problem, case

pytestmark = pytest.mark.gpu
LARGE_BF16 = tuple(case for case in LARGE_CASES if case.recipe is None)


@pytest.mark.parametrize("case", CASES + EMPTY_CASES + WIDE_CASES[:3], ids=str)
def test_bf16_against_fp64(case):
    Problem(case, "cuda", exact=True).check(exact=True)
    Problem(case, "cuda").check()


@pytest.mark.parametrize("case", FP8_CASES + WIDE_CASES[3:], ids=str)
def test_fp8_against_fp64(case):
    Problem(case, "cuda").check()


@pytest.mark.parametrize("case", LARGE_CASES, ids=str)
def test_large_against_torch(case):
    """FP64 on the device; sums of BF16 products are near what torch makes of them."""
    problem = Problem(case, "cuda")
    operands = [problem.a.double(), problem.b.double()]
    if case.recipe:
        for i, factors in enumerate(problem.factors):
            for dim, share in enumerate(problem.shares(i)):
                factors = factors.repeat_interleave(share, dim).narrow(dim, 0, operands[i].shape[dim])
            operands[i] *= factors
    want = torch.einsum(case.expr, *operands)
    want = want if problem.c_values is None else want + problem.c_values.double()
    assert float(calc_diff(problem.run(), want)) < 1e-5


@pytest.mark.parametrize("case", [case for case in CASES + LARGE_BF16[:3] if "->mn" not in case.expr], ids=str)
def test_the_vendors_products(case):
    ours, theirs = Problem(case, "cuda"), Problem(case, "cuda")
    assert float(calc_diff(ours.run(), theirs.run(use_cublaslt=True))) < (1e-10 if case.dtype == F32 else 1e-5)


@pytest.mark.parametrize("case", CASES[:12:3] + LARGE_CASES[:3] + LARGE_CASES[3:4] + LARGE_CASES[-2:], ids=str)
def test_every_run_has_the_same_bits(case):
    problem = Problem(case, "cuda")
    buffer = torch.empty(0, dtype=problem.d.dtype, device="cuda").set_(problem.d.untyped_storage())
    before = buffer.clone()  # poison, or C
    first = problem.run().clone()
    for _ in range(20):
        buffer.copy_(before)
        assert_bitwise_equal(problem.run(), first, str(case))


def test_sm_count_and_pdl_do_not_matter(restored_settings):
    for each in (WIDE_CASES[0], WIDE_CASES[1], WIDE_CASES[3]):
        expected = Problem(each, "cuda").run().clone()
        for sms in (1, 33, deep_gemm.get_num_sms() - 1):
            deep_gemm.set_num_sms(sms)
            for pdl in (False, True):
                deep_gemm.set_pdl(pdl)
                assert_bitwise_equal(Problem(each, "cuda").run(), expected, f"{sms} SMs, PDL {pdl}")
        deep_gemm.set_num_sms(0)


def test_a_row_of_a_batch_does_not_depend_on_the_others():
    whole = Problem(case(BHD, 513, 4, 520, 136), "cuda")
    expected = whole.run()
    for b in (1, 7, 64, 65, 300):
        d = torch.empty(b, 4, 136, dtype=torch.bfloat16, device="cuda")
        deep_gemm.einsum(BHD, whole.a[-b:], whole.b, d)
        assert_bitwise_equal(d, expected[-b:].contiguous(), f"b {b}")


@pytest.mark.parametrize("case", [LARGE_CASES[3], LARGE_CASES[2], LARGE_CASES[7]], ids=str)
def test_one_launch(case):
    problem = Problem(case, "cuda")
    problem.run()
    names = [name for name, _ in device_trace(problem.run)]
    assert len(names) == 1 and ("bmn_bnk_mn_gemm_impl" in names[0]) == (case.expr == BMN)


@pytest.mark.parametrize("case", REFERENCE_CASES, ids=str)
def test_what_has_no_kernel_is_refused(case):
    problem = Problem(case, "cuda")
    before = problem.d.clone()
    with pytest.raises(deep_gemm.DeepGemmError, match="bhr,hdr->bhd.*SM100"):
        problem.run()
    assert_bitwise_equal(problem.d.contiguous(), before.contiguous(), "D")


def test_captured_in_a_graph():
    problem = Problem(case(BHD, 64, 8, 512, 128), "cuda")
    expected = problem.run().clone()
    graph = captured(problem.run)
    problem.d.fill_(float("nan"))
    graph.replay()
    assert_bitwise_equal(problem.d, expected, "replayed")
