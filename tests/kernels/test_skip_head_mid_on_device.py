"""fp8_gemm_nt_skip_head_mid on the GPU: against FP64, its middles untouched, the dense GEMM's bits, the same on every run."""

import pytest
import torch

import deep_gemm
from deep_gemm.testing import assert_bitwise_equal
from skip_head_mid_cases import CASES, LARGE_CASES, WIDE_CASES, HeadProblem

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", CASES + WIDE_CASES + LARGE_CASES, ids=str)
def test_against_fp64(case):
    HeadProblem(case, "cuda").check(exact=False)


@pytest.mark.parametrize("case", WIDE_CASES + LARGE_CASES, ids=str)
def test_the_bits_are_those_of_the_dense_gemm_on_every_run(case):
    problem = HeadProblem(case, "cuda")
    dense = torch.empty(case.m, problem.b[0].shape[0], dtype=case.dtype, device="cuda")
    deep_gemm.fp8_gemm_nt(problem.a, problem.b, dense, recipe=case.recipe)
    for repetition in range(20):
        problem.d.fill_(float("nan"))
        assert_bitwise_equal(problem.run().contiguous(), dense, f"run {repetition}")
