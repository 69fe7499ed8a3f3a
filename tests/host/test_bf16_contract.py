"""Calls of bf16_gemm_* that must be refused, by name and before any write; and the strides that must be accepted."""

import pytest
import torch

import deep_gemm
from bf16_bad_calls import BAD_CALLS, BF16, BUFFER, Call
from bf16_cases import Case, make_problem
from deep_gemm.testing import assert_bitwise_equal
from refusals import refused_in_words


@pytest.mark.parametrize("case", BAD_CALLS, ids=str)
def test_refused_by_name_and_untouched(case):
    call = Call()
    case.spoil(call)
    BUFFER.fill_(7.0)
    with refused_in_words(case.words):
        getattr(deep_gemm, f"bf16_gemm_{call.layout}")(call.a, call.b, call.d, call.c, call.compiled_dims)
    assert bool((call.d == 7.0).all())


def test_the_good_call_is_good():
    call = Call()
    deep_gemm.bf16_gemm_nt(call.a, call.b, call.d, call.c, call.compiled_dims)
    assert bool((call.d == 32.0).all())


@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
def test_layouts_are_views_of_nt(layout):
    problem = make_problem(Case(layout, 24, 16, 40))
    nt = torch.empty_like(problem.d)
    a = problem.a.t() if layout[0] == "t" else problem.a
    b = problem.b.t() if layout[1] == "n" else problem.b
    deep_gemm.bf16_gemm_nt(a, b, nt)
    assert_bitwise_equal(problem.run(), nt, layout)


@pytest.mark.parametrize("rows, k", [(1, 40), (1, 7), (9, 1), (1, 1), (7, 5)])
def test_strides_of_extents_of_one_mean_nothing(rows, k):
    torch.manual_seed(0)
    a, b = torch.randn(rows, k).to(BF16), torch.randn(3, k).to(BF16)
    expected = (a.double() @ b.double().t()).float()
    for strides in ((8 * k, 1), (1, 8 * rows)):
        seen = torch.empty(64 * rows * k, dtype=BF16).as_strided((rows, k), strides)
        seen.copy_(a)
        if rows == 1 and strides[1] == 1:
            seen = seen.as_strided((1, k), (3, 1))
        d = torch.full((rows, 4), float("nan"))[:, :3]
        deep_gemm.bf16_gemm_nt(seen, torch.nn.functional.pad(b, (0, -k % 8))[:, :k], d)
        torch.testing.assert_close(d, expected)
