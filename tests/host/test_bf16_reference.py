"""The BF16 GEMM on CPU tensors against FP64: every layout, shape, output and form of C."""

import pytest
import torch

import deep_gemm
from bf16_cases import BF16, CASES, F32, LAYOUTS, Case, make_problem
from deep_gemm.testing import assert_bitwise_equal, calc_diff


@pytest.mark.parametrize("case", CASES, ids=str)
def test_exact_operands_give_exact_results(case):
    problem = make_problem(case, exact=True)
    expected = problem.reference()
    assert_bitwise_equal(problem.run().contiguous(), expected.float().to(case.dtype), str(case))


@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_random_operands(case):
    problem = make_problem(case)
    expected = problem.reference()
    assert float(calc_diff(problem.run(), expected)) < 1e-5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gaps_and_a_separate_c_stay_as_they_are(layout):
    problem = make_problem(Case(layout, 9, 20, 24, BF16, "apart", gap=16))
    before = problem.c.clone()
    problem.run()
    assert_bitwise_equal(problem.c, before, "C")
    storage = problem.d.as_strided((9, problem.d.stride(0)), (problem.d.stride(0), 1))
    assert bool(storage[:, 20:].isnan().all()) and not bool(storage[:, :20].isnan().any())


def test_one_rounding():
    # 256 + 1 + 2^-16 lies just above the middle of two BF16 values; FP32 on the way would lose the last term.
    a = torch.tensor([[256.0, 1.0, 2.0**-8, 0, 0, 0, 0, 0]], dtype=BF16)
    b = torch.tensor([[1.0, 1.0, 2.0**-20, 0, 0, 0, 0, 0]], dtype=BF16)
    d = torch.empty(1, 1, dtype=BF16)
    deep_gemm.bf16_gemm_nt(a, b, d)
    assert float(d) == 258.0


def test_nan_and_infinity_stay_in_their_rows():
    problem = make_problem(Case("nt", 4, 8, 16, F32))
    problem.a[1, 3], problem.a[2, 5] = float("nan"), float("inf")
    d = problem.run()
    assert bool(d[1].isnan().all()) and bool(d[2].isinf().all()) and bool(d[[0, 3]].isfinite().all())


@pytest.mark.parametrize("c", ["none", "same", "apart"])
@pytest.mark.parametrize("m, n, k", [(0, 8, 8), (8, 0, 8), (0, 0, 0), (8, 16, 0)])
def test_empty_problems(m, n, k, c):
    problem = make_problem(Case("nt", m, n, k, F32, c))
    expected = problem.reference()
    assert_bitwise_equal(problem.run().contiguous(), expected.float(), "D")
