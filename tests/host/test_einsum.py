"""einsum and fp8_einsum: refusals before any write, the reference, plans, ahead-of-time kernels, the operators."""

import pytest
import torch
from refusals import refused_in_words
from torch._subclasses.fake_tensor import FakeTensorMode

import deep_gemm
from deep_gemm import _C, torch_ops
from deep_gemm.testing import assert_bitwise_equal
from einsum_cases import (
    BAD_CALLS, BAD_FP8_CALLS, BF16, BHD, BHR, BMN, BUFFER, BUFFER32, CASES, EMPTY_CASES, F32, FP8_CASES, REFERENCE_CASES, Problem, case,
    good_call, good_fp8_call,
)  # fmt: skip


def refused(function, call, words):
    """Whether the call is refused in these words, and D as it was."""
    for buffer in (BUFFER, BUFFER32):
        buffer.fill_(7.0)
    with refused_in_words(words):
        function(**call)
    assert bool((call["d"] == 7.0).all())


@pytest.mark.parametrize("name, expr, spoiled, words", BAD_CALLS, ids=[bad[0] for bad in BAD_CALLS])
def test_refused_by_name_and_untouched(name, expr, spoiled, words):
    refused(deep_gemm.einsum, {**good_call(expr), **spoiled}, words)


@pytest.mark.parametrize("name, spoiled, words", BAD_FP8_CALLS, ids=[bad[0] for bad in BAD_FP8_CALLS])
def test_fp8_refused_by_name_and_untouched(name, spoiled, words):
    refused(deep_gemm.fp8_einsum, {**good_fp8_call(), **spoiled}, words)


def test_the_good_calls_are_good():
    for expr, value in ((BHD, 24.0), (BMN, 72.0)):
        call = good_call(expr)
        deep_gemm.einsum(**call)
        assert bool((call["d"] == value).all())
    call = good_fp8_call(" bhr, hdr -> bhd ")
    deep_gemm.fp8_einsum(**call)
    assert bool((call["d"] == 144.0).all())


@pytest.mark.parametrize("case", CASES + EMPTY_CASES, ids=str)
def test_the_reference_is_exact(case):
    Problem(case, exact=True).check(exact=True)
    Problem(case).check()


@pytest.mark.parametrize("case", FP8_CASES + REFERENCE_CASES, ids=str)
def test_the_fp8_reference(case):
    Problem(case, exact=True).check()
    Problem(case).check()


@pytest.mark.parametrize("case", [case for case in CASES + EMPTY_CASES if "->mn" not in case.expr], ids=str)
def test_the_vendors_products_are_exact(case):
    problem = Problem(case, exact=True)
    want = problem.reference().float().to(case.dtype)
    assert_bitwise_equal(problem.run(use_cublaslt=True).contiguous(), want.contiguous(), str(case))


def test_a_batch_is_the_dense_product():
    problem = Problem(case(BHD, 9, 3, 40, 24))
    problem.run()
    for h in range(3):
        d = torch.empty(9, 24, dtype=BF16)
        deep_gemm.bf16_gemm_nt(problem.a[:, h], problem.b[h], d)
        assert_bitwise_equal(problem.d[:, h].contiguous(), d, f"h {h}")


def test_plans_count_batches():
    one, many = _C.plan_fp8_gemm(128, 128, 512), _C.plan_fp8_gemm(128, 128, 512, grouping="batched", num_groups=128)
    assert many["config"]["grouping"] == "batched" and many["grid"] > one["grid"]
    one, many = _C.plan_bf16_gemm(128, 128, 512), _C.plan_bf16_gemm(128, 128, 512, grouping="batched", num_groups=128)
    assert many["config"]["grouping"] == "batched" and many["grid"] > one["grid"]
    total = _C.plan_bf16_gemm(128, 384, 128, grouping="batch_sum", num_groups=4096, d_dtype="f32", has_c=True)
    assert total["estimate_us"] > 8 * _C.plan_bf16_gemm(128, 384, 128 * 256, d_dtype="f32", has_c=True)["estimate_us"]


def test_the_sums_kernel_has_the_name_that_profiles_are_searched_for():
    plan = _C.plan_bf16_gemm(128, 384, 128, grouping="batch_sum", num_groups=129)
    assert "bmn_bnk_mn_gemm_impl" in _C.print_bf16_gemm_source(plan["config"])["entry"]
    plan = _C.plan_bf16_gemm(128, 384, 128, grouping="batched", num_groups=129)
    assert _C.print_bf16_gemm_source(plan["config"])["entry"] == "sm90_bf16_gemm_impl"


def test_kernels_are_compiled_ahead_of_time(monkeypatch, tmp_path):
    monkeypatch.setenv("DG_JIT_CACHE_DIR", str(tmp_path))
    _C.reload_settings()
    try:
        shape = {"m": 64, "n": 128, "k": 512, "num_groups": 16, "jobs": 1}
        kernels = deep_gemm.compile("fp8_einsum", expr=BHD, out="float32", accumulate=True, **shape)  # C apart, C that is D
        assert all(kernel.text.endswith("batched") for kernel in kernels) and any("+c" in kernel.text for kernel in kernels)
        (kernel,) = deep_gemm.compile("einsum", expr=BHR, **shape)
        assert kernel.text.endswith("batched") and "b=mn" in kernel.text
        kernels = deep_gemm.compile("einsum", expr=BMN, out="float32", accumulate=True, **shape)
        assert all(kernel.text.endswith("batch_sum") and "bmn_bnk_mn_gemm_impl" in kernel.entry for kernel in kernels)
        assert [("+c" in kernel.text, "+=" in kernel.text) for kernel in kernels] == [(True, False), (False, True)]
    finally:
        monkeypatch.undo()
        _C.reload_settings()


@pytest.mark.parametrize("op, expr", [("einsum", None), ("einsum", "ij,jk->ik"), ("fp8_einsum", BHR), ("fp8_gemm_nt", BHD)])
def test_expressions_that_have_no_kernel(op, expr):
    with pytest.raises(deep_gemm.DeepGemmError, match="^expr: "):
        deep_gemm.compile(op, m=8, n=8, k=64, expr=expr)


def test_opcheck():
    ops = getattr(torch.ops, torch_ops.NAMESPACE)
    for expr, d in ((BHD, torch.zeros(4, 2, 16, dtype=BF16)), (BMN, torch.zeros(8, 16))):
        call = good_call(expr)
        for c, accumulate in ((None, False), (torch.ones_like(d), False), (None, True)):
            arguments = (expr, call["a"], call["b"], d, c, accumulate, False)
            torch.library.opcheck(ops.einsum.default, arguments, test_utils=("test_schema", "test_faketensor"))
    call = good_fp8_call()
    arguments = (BHD, *call["a"], *call["b"], torch.zeros(4, 2, 16), None, False, [1, 128, 128])
    torch.library.opcheck(ops.fp8_einsum.default, arguments, test_utils=("test_faketensor",))


def test_compiled_is_eager():
    def layer(a, b):
        d = torch.empty(a.shape[0], 4, 16, dtype=BF16)
        deep_gemm.einsum(BHD, a, b, d)
        deep_gemm.einsum(BHD, a, b, d, c=d)
        total = torch.zeros(4, 4)
        deep_gemm.einsum(BMN, d, d, total, c=total)
        return d, total

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for b in (8, 40):
        problem = Problem(case(BHD, b, 4, 24, 16))
        for got, want in zip(compiled(problem.a, problem.b), layer(problem.a, problem.b)):
            assert_bitwise_equal(got, want, str(b))


def test_fp8_compiled_is_eager():
    def layer(a, sfa, b, sfb):
        d = torch.empty(a.shape[0], 3, 16, dtype=BF16)
        deep_gemm.fp8_einsum(BHD, (a, sfa), (b, sfb), d)
        return d

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for b in (8, 40):
        problem = Problem(case(BHD, b, 3, 128, 16, recipe=(1, 128, 128)))
        tensors = (problem.a, problem.factors[0], problem.b, problem.factors[1])
        assert_bitwise_equal(compiled(*tensors), layer(*tensors), str(b))


def test_fakes_refuse_as_the_contract_does():
    with FakeTensorMode():
        a, b, d = torch.empty(4, 2, 24, dtype=BF16), torch.empty(2, 16, 24, dtype=BF16), torch.empty(4, 2, 16)
        deep_gemm.einsum(BHD, a, b, d, c=d)
        for arguments, word in (
            (("ij,jk->ik", a, b, d), "expr: expected one of"),
            ((3, a, b, d), "expr: expected a string"),
            ((BHD, a.float(), b, d), "a: expected"),
            ((BHD, a, b[:1], d), "b: expected shape"),
            ((BHD, a, b, d[:1]), "d: expected shape"),
            ((BHD, a, b, d, d.to(BF16)), "c: expected"),
            ((BMN, a, a, torch.empty(2, 2), None, True), "use_cublaslt"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.einsum(*arguments)
        f8 = (a.to(torch.float8_e4m3fn), torch.empty(4, 2, 1)), (b.to(torch.float8_e4m3fn), torch.empty(2, 1, 1))
        deep_gemm.fp8_einsum(BHD, *f8, d)
        for arguments, word in (
            ((BMN, *f8, d), "expr"),
            ((BHD, (a, f8[0][1]), f8[1], d), "a: expected"),
            ((BHD, (f8[0][0], torch.empty(4, 2, 2)), f8[1], d), "sfa: expected shape"),
            ((BHD, *f8, d, None, (1, 64, 128)), "recipe"),
            ((BHR, f8[0], f8[1], d), "b: expected shape"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.fp8_einsum(*arguments)
