"""The vendor's products on the GPU: exact operands to the bit, in every layout, dtype and form of C."""

import pytest

from cublaslt_cases import CASES, FP8_CASES, make_vendor_problem
from deep_gemm.testing import assert_bitwise_equal

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bf16_operands(case):
    problem = make_vendor_problem(case, "cuda")
    assert_bitwise_equal(problem.run().contiguous(), problem.expected.float().to(case.dtype), str(case))


@pytest.mark.parametrize("case", FP8_CASES, ids=str)
def test_fp8_operands(case):
    problem = make_vendor_problem(case, "cuda", fp8=True)
    assert_bitwise_equal(problem.run().contiguous(), problem.expected.float().to(case.dtype), str(case))
