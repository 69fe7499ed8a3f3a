"""The dense FP8 GEMM against FP64: every case on the GPU, the small ones on the CPU reference, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import deep_gemm
from deep_gemm.cli.timing import device_trace
from deep_gemm.testing import assert_bitwise_equal, calc_diff, compare
from fp8_cases import BF16, FP32, LARGE, PER_ROW, SMALL, Case, make_problem, with_sf_form

gpu = pytest.mark.gpu
ON_GPU = pytest.param("cuda", marks=gpu)
EVERYWHERE = [pytest.param(case, "cpu", id=f"{case}-cpu") for case in SMALL]
EVERYWHERE += [pytest.param(case, "cuda", id=f"{case}-cuda", marks=gpu) for case in SMALL + LARGE]

MAX_DIFF_TO_QUANTISED = 1e-5
MAX_DIFF_TO_INPUTS = 1e-3


@pytest.mark.parametrize("case, device", EVERYWHERE)
def test_against_fp64(case, device):
    problem = make_problem(case, device)
    c_before = None if problem.c is None else problem.c.clone()
    d = problem.run()
    reference = problem.reference()
    compare(d, reference, max_relative_error=2e-2, max_cosine_gap=MAX_DIFF_TO_QUANTISED, label=str(case))
    assert float(calc_diff(d, reference)) < MAX_DIFF_TO_QUANTISED
    assert float(calc_diff(d, problem.unquantised())) < MAX_DIFF_TO_INPUTS
    assert bool(problem.buffer[problem.outside()].isnan().all()), "wrote outside of D"
    if c_before is not None:
        assert_bitwise_equal(problem.c, c_before, "C")


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("recipe", [(1, 128, 128), PER_ROW], ids=["1d2d", "1d1d"])
@pytest.mark.parametrize("m, n, k", [(1, 576, 512), (7, 264, 400), (33, 136, 1040)])
def test_every_factor_form_gives_the_same_bits(m, n, k, recipe, device):
    problem = make_problem(Case(m, n, k, recipe), device)
    forms_b = ("row", "transposed") if recipe[1] == 128 else ("row", "mn", "aligned")
    sfa, sfb, first = problem.a[1], problem.b[1], problem.run().clone()
    assert not bool(first.isnan().any())
    for form_a in ("aligned", "mn", "row"):
        for form_b in forms_b:
            problem.a = (problem.a[0], with_sf_form(sfa, form_a))
            problem.b = (problem.b[0], with_sf_form(sfb, form_b))
            problem.d.fill_(float("nan"))
            assert_bitwise_equal(problem.run(), first, f"{form_a}, {form_b}")


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
def test_layouts_and_hints_give_the_same_bits(layout, device):
    first = make_problem(Case(40, 256, 384), device).run()
    problem = make_problem(Case(40, 256, 384, layout=layout), device)
    for options in ({}, {"compiled_dims": ""}, {"compiled_dims": "mnk"}, {"disable_ue8m0_cast": True}):
        problem.d.fill_(float("nan"))
        assert_bitwise_equal(problem.run(**options), first, str(options))


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("out", [BF16, FP32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("c", ["none", "same", "separate"])
@pytest.mark.parametrize("m, n, k", [(0, 128, 256), (64, 0, 256), (64, 128, 0), (0, 0, 0)])
def test_empty_problems(m, n, k, c, out, device):
    problem = make_problem(Case(m, n, k, out=out, c=c), device)
    d = problem.run()
    assert_bitwise_equal(d, torch.zeros_like(d) if problem.c is None else problem.c, "K = 0 gives C, or zeros")
    assert bool(problem.buffer[problem.outside()].isnan().all())


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("recipe", [(1, 128, 128), PER_ROW], ids=["1d2d", "1d1d"])
@pytest.mark.parametrize("m, n, k", [(129, 264, 400), (300, 572, 512), (500, 576, 1024)])
def test_c_that_is_d_gives_the_bits_of_a_separate_c(m, n, k, recipe, device):
    separate = make_problem(Case(m, n, k, recipe, out=FP32, c="separate"), device)
    in_place = separate.c.clone()
    deep_gemm.fp8_gemm_nt(separate.a, separate.b, in_place, c=in_place, recipe=recipe)
    assert_bitwise_equal(in_place, separate.run(), "C is D")


BITS = [Case(7, 576, 512), Case(128, 2112, 7168), Case(500, 576, 1024, PER_ROW, out=FP32, c="same")]


@gpu
@pytest.mark.parametrize("case", BITS + [Case(4096, 4096, 1024)], ids=str)
def test_twenty_runs_give_the_same_bits(case):
    problem = make_problem(case, "cuda")
    start = problem.d.clone()
    first = problem.run().clone()
    for repetition in range(20):
        problem.d.copy_(start)
        assert_bitwise_equal(problem.run(), first, f"run {repetition}")


@gpu
@pytest.mark.parametrize("recipe, out", [((1, 128, 128), BF16), (PER_ROW, FP32)], ids=["1d2d", "1d1d"])
@pytest.mark.parametrize("n, k", [(576, 7168), (2112, 1024)])
def test_rows_do_not_depend_on_m(n, k, recipe, out):
    whole = make_problem(Case(2500, n, k, recipe, out=out, sfa="row"), "cuda")
    expected = whole.run().clone()
    for m in (1, 2, 7, 16, 33, 64, 65, 100, 128, 129, 200, 256, 300, 500, 513, 700, 1000, 1100, 1600, 2048):
        part = replace(whole.case, m=m)
        a = (whole.a[0][:m], whole.a[1][:m])
        d = torch.full((m, n), float("nan"), dtype=out, device="cuda")
        deep_gemm.fp8_gemm_nt(a, whole.b, d, recipe=recipe)
        assert_bitwise_equal(d, expected[:m], str(part))


@gpu
@pytest.mark.usefixtures("restored_settings")
@pytest.mark.parametrize("case", BITS, ids=str)
def test_settings_do_not_change_bits(case):
    problem = make_problem(case, "cuda")
    start = problem.d.clone()
    first = problem.run().clone()
    total = deep_gemm.get_num_sms()
    for num_sms, pdl in [(total - 1, False), (total // 2, True), (20, False), (1, False), (0, True)]:
        deep_gemm.set_num_sms(num_sms)
        deep_gemm.set_pdl(pdl)
        problem.d.copy_(start)
        assert_bitwise_equal(problem.run(), first, f"{num_sms=} {pdl=}")


@gpu
@pytest.mark.usefixtures("restored_settings")
def test_pdl_waits_for_the_kernel_before_it():
    problem = make_problem(Case(128, 2112, 1024), "cuda")
    first = problem.run().clone()
    data, factors = problem.a[0].clone(), problem.a[1].clone()
    deep_gemm.set_pdl(True)
    for repetition in range(50):
        problem.a[0].view(torch.uint8).zero_()
        problem.a[1].fill_(float("nan"))
        problem.d.fill_(float("nan"))
        problem.a[0].copy_(data)
        problem.a[1].copy_(factors)
        assert_bitwise_equal(problem.run().clone(), first, f"repetition {repetition}")


@gpu
@pytest.mark.parametrize("form_a", ["aligned", "mn", "row"])
@pytest.mark.parametrize("c", ["none", "same", "separate"])
@pytest.mark.parametrize("recipe", [(1, 128, 128), PER_ROW], ids=["1d2d", "1d1d"])
def test_a_call_launches_one_kernel(recipe, c, form_a):
    problem = make_problem(Case(77, 264, 1040, recipe, c=c, sfa=form_a), "cuda")
    problem.run()
    trace = device_trace(problem.run)
    assert len(trace) == 1, trace
    assert "gemm_" in trace[0][0][:97], trace


@gpu
def test_an_empty_call_launches_nothing():
    problem = make_problem(Case(0, 264, 1040), "cuda")
    assert device_trace(problem.run) == []


@gpu
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_rows_past_the_end_are_not_read(poison):
    """Views of a bigger buffer whose other rows and factors are poisoned."""
    problem = make_problem(Case(70, 264, 512, sfa="row"), "cuda")
    expected = problem.run().clone()
    data = torch.full((200, 512), poison, device="cuda").to(torch.float8_e4m3fn)
    factors = torch.full((200, 4), poison, device="cuda")
    data[:70].copy_(problem.a[0])
    factors[:70].copy_(problem.a[1])
    d = torch.full((200, 264), float("nan"), dtype=BF16, device="cuda")
    deep_gemm.fp8_gemm_nt((data[:70], factors[:70]), problem.b, d[:70])
    assert_bitwise_equal(d[:70].clone(), expected)
    assert bool(d[70:].isnan().all())


@gpu
def test_nan_and_infinite_factors_stay_in_their_rows():
    problem = make_problem(Case(70, 264, 512, sfa="row"), "cuda")
    clean = problem.run().clone()
    problem.a[1][3] = float("nan")
    problem.a[1][5] = float("inf")
    d = problem.run()
    assert bool(d[3].isnan().all()) and not bool(d[5].isfinite().any())
    keep = [row for row in range(70) if row not in (3, 5)]
    assert_bitwise_equal(d[keep], clean[keep])
