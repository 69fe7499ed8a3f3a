"""The grouped BF16 GEMMs on CPU tensors against FP64, and no byte beside the rows they are to write."""

from __future__ import annotations

import math

import pytest
import torch

import deep_gemm
from grouped_bf16_cases import CASES, make_grouped_bf16
from grouped_cases import contiguous, masked, psum


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_fp64_and_writes_nothing_else(case):
    problem = make_grouped_bf16(case, exact=True)
    assert problem.run() is problem.d
    problem.check(exact=True)


@pytest.mark.parametrize("case", CASES[::5], ids=str)
def test_random_operands(case):
    problem = make_grouped_bf16(case)
    problem.run()
    problem.check_random()


@pytest.mark.parametrize("case", [CASES[0], masked((0, 5, 3), 64, 40, 128), psum((5, 300, 20), 40, 128, m=600)], ids=str)
def test_the_guard_would_notice(case):
    """Of the test itself: a wrong row is seen."""
    problem = make_grouped_bf16(case, exact=True)
    problem.run()
    matrix, rows, _ = [selection for selection in problem.selections() if selection[1].numel() > 0][-1]
    problem.d[matrix, rows[-1]] += 1
    with pytest.raises(AssertionError):
        problem.check(exact=True)


LIES = [
    (contiguous(2, ((0, 100), (1, 50)), 40, 128), 130, 2, "grouped_layout: expected groups from 0 to 1, or -1, got 2 in row 130"),
    (masked((0, 5, 3), 64, 40, 128), 1, 65, "masked_m: expected from 0 to 64 rows, got 65 for group 1"),
    (psum((5, 300, 20), 40, 128, m=512), 2, 1000, "grouped_layout: expected ends up to 512 rows .* got 1000 for group 2"),
]


@pytest.mark.parametrize("case, at, value, message", LIES, ids=["group", "count", "end"])
def test_values_that_no_layout_has_are_named_before_any_write(case, at, value, message):
    problem = make_grouped_bf16(case)
    problem.layout[at] = value
    before = problem.d.clone()
    with pytest.raises(RuntimeError, match=message):
        problem.run()
    assert torch.equal(problem.d.view(torch.int16), before.view(torch.int16))


def test_a_row_that_repeats_its_group_is_a_row():
    case = contiguous(2, ((0, 128), (1, 128)), 40, 256, nan_padding=False)
    problem, clean = make_grouped_bf16(case), make_grouped_bf16(case)
    problem.a[0, 100:128] = math.nan
    d, want = problem.run()[0], clean.run()[0]
    assert bool(d[100:128].isnan().all())
    keep = [row for row in range(256) if not 100 <= row < 128]
    assert torch.equal(d[keep], want[keep])


def test_older_keyword_and_alias():
    problem = make_grouped_bf16(contiguous(2, ((0, 128), (1, 128)), 40, 64, nan_padding=False))
    want = problem.run()[0].clone()
    d = torch.empty(256, 40, dtype=torch.bfloat16)
    deep_gemm.m_grouped_bf16_gemm_nt_contiguous(problem.a[0], problem.b, d, m_indices=problem.layout)
    assert torch.equal(d, want)
    deep_gemm.m_grouped_bf16_gemm_nn_contiguous(problem.a[0], problem.b.transpose(1, 2), d.zero_(), m_indices=problem.layout)
    assert torch.equal(d, want)
    assert deep_gemm.bf16_m_grouped_gemm_nt_masked is deep_gemm.m_grouped_bf16_gemm_nt_masked
    with pytest.raises(TypeError, match="older name"):
        deep_gemm.m_grouped_bf16_gemm_nt_contiguous(problem.a[0], problem.b, d, problem.layout[:0], m_indices=0, grouped_layout=0)


def test_masked_weights_may_be_n_major():
    problem = make_grouped_bf16(masked((3, 8), 8, 40, 64), exact=True)
    want = problem.run().clone()
    problem.b = problem.b.transpose(1, 2).contiguous().transpose(1, 2)
    assert problem.b.stride(1) == 1 and torch.equal(problem.run().view(torch.int16), want.view(torch.int16))
