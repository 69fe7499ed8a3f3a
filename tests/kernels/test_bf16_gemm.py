"""The BF16 GEMM on the GPU: against FP64, to the bit for exact operands, batch-invariant, the same bits on every run."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from bf16_cases import BF16, CASES, CONFIGS, F32, LAYOUTS, Case, config, make_problem
from cuda_graphs import captured
from deep_gemm import _C
from deep_gemm.testing import assert_bitwise_equal, calc_diff

pytestmark = pytest.mark.gpu
LARGE = (
    Case("nt", 4096, 4096, 7168),
    Case("nn", 4096, 7168, 2048),
    Case("tn", 2112, 4096, 4096, F32, "same"),
    Case("tt", 1000, 1032, 8192, F32),
    Case("nt", 128, 24576, 1536),
    Case("nt", 4096, 7168, 512, BF16, "same"),
    Case("nn", 4096, 7163, 512, BF16, "apart"),
)


@pytest.fixture(autouse=True)
def planned_afresh():
    """Undoes pins."""
    yield
    _C.forget_bf16_gemm_plans()


@pytest.mark.parametrize("case", CASES + LARGE, ids=str)
def test_against_fp64(case):
    exact = make_problem(case, "cuda", exact=True)
    expected = exact.reference().float().to(case.dtype)
    assert_bitwise_equal(exact.run().contiguous(), expected, str(case))
    random = make_problem(case, "cuda")
    expected = random.reference()
    assert float(calc_diff(random.run(), expected)) < 1e-5
    assert random.outside_is_untouched()


@pytest.mark.parametrize("case", CASES[::4] + LARGE[:2], ids=str)
def test_every_run_has_the_same_bits(case):
    first = make_problem(case, "cuda").run().clone()
    for _ in range(20):
        assert_bitwise_equal(make_problem(case, "cuda").run(), first, str(case))


@pytest.mark.parametrize("c", ["same", "apart"])
@pytest.mark.parametrize("n", [520, 523])
def test_c_of_tile_after_tile(restored_settings, n, c):
    """Few CTAs, so that C of many tiles comes into the same boxes, over a ragged edge or not."""
    case = Case("nt", 1000, n, 264, BF16, c)
    expected = make_problem(case, "cuda", exact=True).reference().float().to(BF16)
    kinds = {"d_dtype": "bf16", "has_c": True, "c_is_d": c == "same"}
    for sms in (2, 7):
        deep_gemm.set_num_sms(sms)
        for change in CONFIGS:
            _C.pin_bf16_gemm_config(case.m, n, case.k, 0, config=config(**{**kinds, "c_is_d": False}, **change), **kinds)
            problem = make_problem(case, "cuda", exact=True)
            assert_bitwise_equal(problem.run().contiguous(), expected, f"{sms} SMs, {change}")
            assert problem.outside_is_untouched()
        _C.forget_bf16_gemm_plans()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_does_not_depend_on_the_others(layout):
    whole = make_problem(Case(layout, 4100, 1032, 2048), "cuda")
    expected = whole.run()
    for m in (1, 7, 64, 65, 128, 300, 2048):
        part = make_problem(Case(layout, m, 1032, 2048), "cuda")
        left = whole.left[-m:].to(BF16)
        part.a.copy_(left.t() if layout[0] == "t" else left)
        part.b.copy_(whole.b)
        assert_bitwise_equal(part.run().contiguous(), expected[-m:].contiguous(), f"{layout} {m}")


def test_sm_count_and_pdl_do_not_matter(restored_settings):
    case = Case("nt", 700, 2112, 1024)
    expected = make_problem(case, "cuda").run().clone()
    for sms in (1, 33, deep_gemm.get_num_sms() - 1):
        deep_gemm.set_num_sms(sms)
        for pdl in (False, True):
            deep_gemm.set_pdl(pdl)
            assert_bitwise_equal(make_problem(case, "cuda").run(), expected, f"{sms} SMs, PDL {pdl}")


@pytest.mark.parametrize(("dtype", "c"), [(BF16, "none"), (BF16, "apart"), (BF16, "same"), (F32, "apart"), (F32, "same")])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_config_writes_the_same_bits(layout, dtype, c):
    case = Case(layout, 300, 520, 1032, dtype, c)
    kinds = {"a_major": "mn" if layout[0] == "t" else "k", "b_major": "mn" if layout[1] == "n" else "k"}
    kinds.update(d_dtype="bf16" if dtype == BF16 else "f32", has_c=c != "none", c_is_d=c == "same")
    expected = make_problem(case, "cuda").run().clone()
    for change in CONFIGS:
        _C.pin_bf16_gemm_config(case.m, case.n, case.k, 0, config=config(**{**kinds, "c_is_d": False}, **change), **kinds)
        assert_bitwise_equal(make_problem(case, "cuda").run(), expected, str(change))


def test_captured_in_a_graph():
    problem = make_problem(Case("nt", 64, 264, 512), "cuda")
    expected = problem.run().clone()
    graph = captured(problem.run)
    problem.d.fill_(float("nan"))
    graph.replay()
    assert_bitwise_equal(problem.d, expected, "replayed")
