"""The grouped FP8 GEMMs on CPU tensors against FP64: bit for bit, and no byte beside the rows they are to write."""

import math

import pytest
import torch

from grouped_cases import CASES, PER_BLOCK, contiguous, make_grouped, masked, psum


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_fp64_and_writes_nothing_else(case):
    problem = make_grouped(case)
    assert problem.run() is problem.d
    problem.check(exact=True)


def test_the_guard_would_notice():
    """Of the test itself: a written guard, and a wrong row, are seen."""
    for spoil in (lambda d: d[1, 5].zero_(), lambda d: d[0, 63].fill_(1), lambda d: d[2, 2].neg_()):
        problem = make_grouped(masked((0, 5, 3), 64, 40, 128))
        problem.run()
        spoil(problem.d)
        with pytest.raises(AssertionError):
            problem.check(exact=True)


@pytest.mark.parametrize("group", [2, 3, 2**31 - 1])
def test_a_group_that_does_not_exist_is_named(group):
    problem = make_grouped(contiguous(2, ((0, 100), (1, 50)), 40, 128))
    problem.layout[130] = group
    before = problem.d.clone()
    with pytest.raises(RuntimeError, match=f"grouped_layout: expected groups from 0 to 1, or -1, got {group} in row 130"):
        problem.run()
    assert torch.equal(problem.d.view(torch.int16), before.view(torch.int16))


@pytest.mark.parametrize("count", [-1, 65])
def test_a_count_beyond_the_capacity_is_named(count):
    problem = make_grouped(masked((0, 5, 3), 64, 40, 128))
    problem.layout[1] = count
    before = problem.d.clone()
    with pytest.raises(RuntimeError, match=f"masked_m: expected from 0 to 64 rows, got {count} for group 1"):
        problem.run()
    assert torch.equal(problem.d.view(torch.int16), before.view(torch.int16))


@pytest.mark.parametrize("at, end", [(0, -1), (2, 513), (2, 2**31 - 1), (1, 0), (2, 256)])
def test_an_end_that_no_group_can_have_is_named(at, end):
    problem = make_grouped(psum((5, 300, 20), 40, 128, m=512))
    problem.layout[at] = end
    before = problem.d.clone()
    start = (0, 128, 512)[at]
    if at == 2 and end == 513:
        problem.layout[1], start = 127, 128
    message = f"grouped_layout: expected ends up to 512 rows .* got {end} for group {at}, which starts at row {start}"
    with pytest.raises(RuntimeError, match=message):
        problem.run()
    assert torch.equal(problem.d.view(torch.int16), before.view(torch.int16))


def test_an_empty_group_may_end_past_the_last_row():
    """Where M ends before the last aligned row, an entry of a group without rows may be that aligned row."""
    problem = make_grouped(psum((5, 300, 0), 40, 128, m=450))
    assert problem.layout.tolist() == [5, 428, 512]
    problem.run()
    problem.check(exact=True)


def test_a_row_that_repeats_its_group_is_a_row():
    """Padding with the id again: the rows are computed, NaN included, and touch no other row."""
    case = contiguous(2, ((0, 128), (1, 128)), 40, 256, nan_padding=False)
    problem, clean = make_grouped(case), make_grouped(case)
    problem.sfa[0, 100:128] = math.nan
    d, want = problem.run()[0], clean.run()[0]
    assert bool(d[100:128].isnan().all())
    keep = [row for row in range(256) if not 100 <= row < 128]
    assert torch.equal(d[keep], want[keep])


def test_recipes_by_default():
    problem = make_grouped(masked((3, 4), 16, 136, 256))
    assert problem.case.recipe == PER_BLOCK
    want = problem.run().clone()
    from deep_gemm import _C

    _C.m_grouped_fp8_gemm_nt_masked(
        (problem.a, problem.sfa), [problem.b, problem.sfb], problem.d, problem.layout, 4, None, None, None, "", True
    )
    assert torch.equal(problem.d.view(torch.int16), want.view(torch.int16))
