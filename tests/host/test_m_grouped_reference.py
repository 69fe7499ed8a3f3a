"""The m-grouped FP8 GEMMs on CPU tensors: FP64 bit for bit, zeros in padding, nothing outside."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import deep_gemm
from deep_gemm.testing import assert_bitwise_equal
from fp8_operands import fp64_gemm
from m_grouped_cases import (
    CONTIGUOUS,
    FP8,
    MASKED,
    POISON_BITS,
    ContiguousCase,
    MaskedCase,
    Problem,
    make_problem,
    with_form,
)

CASES = CONTIGUOUS + MASKED


def exact(problem: Problem) -> torch.Tensor:
    """What D must be bit for bit, poison where it is not written."""
    want = problem.d.clone()
    bf16 = torch.bfloat16
    (a, sfa), (b, sfb) = problem.a, problem.b
    for expert in range(b.shape[0]):
        if isinstance(problem.case, MaskedCase):
            rows = (expert, slice(0, int(problem.layout[expert])))
        else:
            rows = (problem.layout == expert).nonzero().flatten()
        spread = sfb[expert].repeat_interleave(problem.case.recipe[1], 0)[: problem.case.n]
        want[rows] = fp64_gemm(a[rows], sfa[rows], b[expert], spread, bf16)
    if isinstance(problem.case, ContiguousCase):
        want[problem.layout < 0] = 0
    return want


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_fp64_bit_for_bit(case):
    problem = make_problem(case, "cpu")
    want = exact(problem)
    assert_bitwise_equal(problem.run(), want, str(case))
    assert bool(want[problem.written()].isfinite().all())
    assert problem.untouched()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_inputs_are_only_read(case):
    problem = make_problem(case, "cpu")
    inputs = (*problem.a, *problem.b, problem.layout)
    before = [tensor.clone() for tensor in inputs]
    problem.run()
    for tensor, old in zip(inputs, before):
        assert_bitwise_equal(tensor, old)


@pytest.mark.parametrize("case", [CONTIGUOUS[2], CONTIGUOUS[4], MASKED[0], MASKED[4], MASKED[7]], ids=str)
def test_factor_forms_and_hints_give_the_same_bits(case):
    first = make_problem(case, "cpu").run()
    hints = [{"compiled_dims": ""}, {"disable_ue8m0_cast": True}, {"recipe": (1, 128, 128)}]
    hints += [{"recipe_a": (1, 128), "recipe_b": [128, 128]}]
    hints += [{"expected_m": hint} for hint in (0, 1, 10**6)] if isinstance(case, MaskedCase) else []
    for form in ("row", "mn", "aligned"):
        problem = with_form(make_problem(case, "cpu"), form)
        assert_bitwise_equal(problem.run(), first, form)
    for options in hints:
        assert_bitwise_equal(make_problem(case, "cpu").run(**options), first, str(options))


def test_nan_weights_stay_in_their_expert():
    for case in (CONTIGUOUS[2], MASKED[0]):
        clean, spoiled = make_problem(case, "cpu"), make_problem(case, "cpu")
        spoiled.b[1][1] = float("nan")
        clean.run(), spoiled.run()
        expert = torch.tensor(1, dtype=torch.int32)
        if isinstance(case, MaskedCase):
            others = torch.arange(len(case.counts)) != 1
        else:
            others = spoiled.layout != expert
        assert_bitwise_equal(spoiled.d[others], clean.d[others])


@pytest.mark.parametrize("size", ["m", "n", "k", "g"])
def test_empty_problems(size):
    m, n, k, g = (0 if letter == size else value for letter, value in (("m", 128), ("n", 64), ("k", 256), ("g", 2)))
    data = lambda *shape: torch.zeros(shape).to(FP8)  # noqa: E731
    blocks = lambda x: -(-x // 128)  # noqa: E731
    b = (data(g, n, k), torch.ones(g, blocks(n), blocks(k)))
    d = torch.full((m, n), 7.0, dtype=torch.bfloat16)
    layout = torch.full((m,), 0 if g else -1, dtype=torch.int32)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous((data(m, k), torch.ones(m, blocks(k))), b, d, layout)
    assert bool((d == 0).all())
    d = torch.full((g, m, n), 7.0, dtype=torch.bfloat16)
    counts = torch.full((g,), min(m, 3), dtype=torch.int32)
    deep_gemm.m_grouped_fp8_gemm_nt_masked((data(g, m, k), torch.ones(g, m, blocks(k))), b, d, counts, 3)
    assert bool((d[:, :3] == 0).all()) and bool((d[:, 3:] == 7).all())


def test_every_name_is_the_same_function():
    contiguous, masked = make_problem(CONTIGUOUS[2], "cpu"), make_problem(MASKED[0], "cpu")
    want, want_masked = contiguous.run().clone(), masked.run().clone()
    for call in (
        lambda p: deep_gemm.m_grouped_fp8_fp4_gemm_nt_contiguous(p.a, p.b, p.d, p.layout),
        lambda p: deep_gemm.m_grouped_fp8_gemm_nt_contiguous(list(p.a), list(p.b), p.d, m_indices=p.layout),
        lambda p: deep_gemm.m_grouped_gemm_fp8_fp8_bf16_nt_contiguous(p.a, p.b, p.d, p.layout),
        lambda p: deep_gemm.m_grouped_gemm_fp8_fp8_bf16_nt_contiguous(lhs=p.a, rhs=p.b, out=p.d, m_indices=p.layout),
    ):
        contiguous.poison()
        call(contiguous)
        assert_bitwise_equal(contiguous.d, want)
    for call in (
        lambda p: deep_gemm.m_grouped_fp8_fp4_gemm_nt_masked(p.a, p.b, p.d, p.layout, 16),
        lambda p: deep_gemm.fp8_m_grouped_gemm_nt_masked(p.a, p.b, p.d, masked_m=p.layout, expected_m=16),
        lambda p: deep_gemm.m_grouped_gemm_fp8_fp8_bf16_nt_masked(p.a, p.b, p.d, p.layout, 16),
    ):
        masked.poison()
        call(masked)
        assert_bitwise_equal(masked.d, want_masked)


def test_both_generations_of_a_keyword_are_refused():
    p = make_problem(CONTIGUOUS[0], "cpu")
    with pytest.raises(TypeError, match="m_indices.*grouped_layout"):
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(p.a, p.b, p.d, grouped_layout=p.layout, m_indices=p.layout)
    with pytest.raises(TypeError, match="no_such"):
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(p.a, p.b, p.d, p.layout, no_such=1)


def changed(problem: Problem, field: str, change) -> Problem:
    """The problem with one tensor replaced by `change(tensor)`."""
    if field in ("sfa", "sfb"):
        data, factors = getattr(problem, field[-1])
        return replace(problem, **{field[-1]: (data, change(factors))})
    if field in ("a", "b"):
        data, factors = getattr(problem, field)
        return replace(problem, **{field: (change(data), factors)})
    return replace(problem, **{field: change(getattr(problem, field))})


longer = lambda t: torch.zeros((*t.shape[:-1], t.shape[-1] + 16)).to(t.dtype)  # noqa: E731
REFUSALS = {
    "a dtype": ("a", lambda t: t.float()),
    "a rank": ("a", lambda t: t[None]),
    "a depth": ("a", longer),
    "b dtype": ("b", lambda t: t.float()),
    "b rank": ("b", lambda t: t[0]),
    "b groups": ("b", lambda t: t[:1]),
    "sfa shape": ("sfa", longer),
    "sfa dtype": ("sfa", lambda t: t.double()),
    "sfb shape": ("sfb", longer),
    "sfb rank": ("sfb", lambda t: t[0]),
    "d dtype": ("d", lambda t: torch.zeros(t.shape)),
    "d shape": ("d", longer),
    "layout dtype": ("layout", lambda t: t.long()),
    "layout length": ("layout", lambda t: t[:-1]),
    "layout rank": ("layout", lambda t: t[None]),
    "layout device": ("layout", lambda t: t.to("meta")),
}


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("case", [CONTIGUOUS[2], MASKED[0]], ids=["contiguous", "masked"])
def test_refused_by_name_and_untouched(case, kind):
    problem = make_problem(case, "cpu")
    spoiled = changed(problem, *REFUSALS[kind])
    spoiled.d.view(torch.uint8).fill_(0x5A)
    field = REFUSALS[kind][0]
    name = {"layout": "masked_m" if isinstance(case, MaskedCase) else "grouped_layout"}.get(field, field)
    # Of two arguments that disagree, either may be the one that is named.
    names = {"a": "a|b|sfa", "b": "a|b|sfb"}.get(name, name)
    with pytest.raises(deep_gemm.DeepGemmError, match=rf"^({names})\b"):
        spoiled.run()
    assert bool((spoiled.d.view(torch.uint8) == 0x5A).all())


@pytest.mark.parametrize("options", [{}, {"expected_m_for_psum_layout": 16}, {"ensure_zero_padding": True}], ids=str)
def test_ends_of_groups_give_what_ids_of_rows_give(options):
    assert CONTIGUOUS[2].blocks == ((0, 100), (1, 128), (2, 1), (3, 129))
    problem = make_problem(CONTIGUOUS[2], "cpu")
    want = problem.run().clone()
    problem.poison()
    ends = torch.tensor([100, 256, 257, 513], dtype=torch.int32)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(problem.a, problem.b, problem.d, ends, use_psum_layout=True, **options)
    assert_bitwise_equal(problem.d, want)
    problem.poison()
    b = tuple(part.transpose(1, 2) for part in problem.b)
    deep_gemm.m_grouped_fp8_gemm_nn_contiguous(problem.a, b, problem.d, ends, use_psum_layout=True)
    assert_bitwise_equal(problem.d, want)
    assert problem.untouched()


def test_a_hint_for_ends_needs_them():
    problem = make_problem(CONTIGUOUS[2], "cpu")
    with pytest.raises(deep_gemm.DeepGemmError, match="^expected_m_for_psum_layout: "):
        problem.run(expected_m_for_psum_layout=16)
    assert bool((problem.buffer.view(torch.int16) == POISON_BITS).all())


def test_the_alignment_that_is_set_reaches_the_contract():
    problem = make_problem(replace(CONTIGUOUS[2], alignment=16), "cpu")
    with pytest.raises(deep_gemm.DeepGemmError, match="^alignment: .*64.*16"):
        problem.run()
    with pytest.raises(deep_gemm.DeepGemmError, match="^alignment: .*64.*16"), FlopCounterMode(display=False):
        problem.run()  # through the operator
    assert bool((problem.buffer.view(torch.int16) == POISON_BITS).all())


WRONG_VALUES = [
    (MASKED[0], 1, 129, "^masked_m: .*129.*group 1"),
    (MASKED[0], 0, -1, "^masked_m: .*-1.*group 0"),
    (CONTIGUOUS[2], 128, 4, "^grouped_layout: .*4.*row 128"),
]


@pytest.mark.parametrize("case, at, value, message", WRONG_VALUES)
def test_wrong_values_in_the_layout_are_refused_where_the_host_can_see_them(case, at, value, message):
    problem = make_problem(case, "cpu")
    problem.layout[at] = value
    with pytest.raises(deep_gemm.DeepGemmError, match=message):
        problem.run()
    assert bool((problem.buffer.view(torch.int16) == POISON_BITS).all())
