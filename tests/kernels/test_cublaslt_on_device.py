"""The vendor's products on the GPU, in every layout, dtype and form of C: exact sums to the bit where D is FP32. On its way to a
BF16 D the vendor may round more than once (seen: partial sums, and the product before C is added)."""

import pytest
import torch

from cublaslt_cases import CASES, F32, FP8_CASES, make_vendor_problem
from deep_gemm.testing import assert_bitwise_equal, calc_diff

pytestmark = pytest.mark.gpu


def check(problem):
    """Runs a problem of exact sums; its D against FP64."""
    left, right = problem.a.double(), problem.b.double()
    left, right = (left if problem.case.layout[0] == "n" else left.t()), (right if problem.case.layout[1] == "n" else right.t())
    partial = 4 * (left.abs() @ right.abs()) / max(problem.case.k, 1) ** 0.5  # as large as a sum of some of the products gets
    if problem.c is not None:
        partial = partial.maximum(problem.c.double().abs())
    got, want = problem.run().contiguous(), problem.expected.to("cuda")
    if problem.case.dtype == F32:
        return assert_bitwise_equal(got, want.float(), str(problem.case))
    error = (got.double() - want).abs()
    assert bool((error <= partial.maximum(want.abs()) * 2.0**-7).all()), f"{problem.case}: {float(error.max())}"
    assert want.numel() == 0 or not want.any() or float(calc_diff(got, want)) < 1e-5, str(problem.case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bf16_operands(case):
    check(make_vendor_problem(case, "cuda"))


@pytest.mark.parametrize("case", FP8_CASES, ids=str)
def test_fp8_operands(case):
    check(make_vendor_problem(case, "cuda", fp8=True))
