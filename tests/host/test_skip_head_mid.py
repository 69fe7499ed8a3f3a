"""fp8_gemm_nt_skip_head_mid: refusals before any write, the reference, plans, ahead-of-time kernels, the operator."""

import pytest
import torch
from refusals import refused_in_words
from torch._subclasses.fake_tensor import FakeTensorMode

import deep_gemm
from deep_gemm import _C, torch_ops
from deep_gemm.testing import assert_bitwise_equal
from skip_head_mid_cases import BAD_CALLS, CASES, SPLITS, HeadCase, HeadProblem, good_call


@pytest.mark.parametrize("name, spoiled, words", BAD_CALLS, ids=[bad[0] for bad in BAD_CALLS])
def test_refused_by_name_and_untouched(name, spoiled, words):
    call = {**good_call(), **spoiled}
    with refused_in_words(words):
        deep_gemm.fp8_gemm_nt_skip_head_mid(**call)
    assert bool(call["d"].isnan().all())


def test_overlaps_behind_the_products_columns_are_seen():
    """The last columns of D lie past its first N ones."""
    call = good_call()
    storage = torch.zeros(16 * 192, dtype=torch.uint8)
    call["d"] = storage.view(torch.bfloat16).view(16, 96)
    call["b"] = (storage.view(torch.float8_e4m3fn)[16 * 192 - 80 * 32 :].view(80, 32), torch.ones(1, 1))
    call["a"] = (torch.zeros(16, 32).to(torch.float8_e4m3fn), torch.ones(16, 1))
    with pytest.raises(deep_gemm.DeepGemmError, match="overlap with b"):
        deep_gemm.fp8_gemm_nt_skip_head_mid(**call)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_is_exact(case):
    HeadProblem(case).check(exact=True)


@pytest.mark.parametrize("splits, unit", [((128, 64, 64), 64), ((96, 8, 64), 32), ((8, 0, 0), 8), ((0, 8, 48), 16), ((512, 64, 128), 64)])
def test_boxes_stay_within_parts(splits, unit):
    plan = _C.plan_fp8_gemm(300, 9 * (splits[0] + splits[2]), 512, head_splits=splits)
    assert plan["config"]["head_unit"] == unit and f"heads={unit}" in plan["text"]


def test_plans_are_those_of_the_dense_gemm_but_for_the_boxes():
    dense, heads = _C.plan_fp8_gemm(4096, 24576, 1536), _C.plan_fp8_gemm(4096, 24576, 1536, head_splits=(128, 64, 64))
    assert heads["config"] == {**dense["config"], "head_unit": 64} and heads["grid"] == dense["grid"]


def test_planning_refuses_heads_as_the_contract_does():
    with pytest.raises(deep_gemm.DeepGemmError, match="head_splits: expected"):
        _C.plan_fp8_gemm(8, 64, 64, head_splits=(4, 0, 4))


def test_compiled_ahead_of_time(monkeypatch, tmp_path):
    monkeypatch.setenv("DG_JIT_CACHE_DIR", str(tmp_path))
    _C.reload_settings()
    try:
        options = {"m": 64, "n": 384, "k": 256, "head_splits": (128, 64, 64), "jobs": 1}
        (kernel,) = deep_gemm.compile("fp8_gemm_nt_skip_head_mid", **options)
        assert "heads=64" in kernel.text
        for op, splits in (("fp8_gemm_nt_skip_head_mid", None), ("fp8_gemm_nt", (128, 64, 64))):
            with pytest.raises(deep_gemm.DeepGemmError, match="head_splits"):
                deep_gemm.compile(op, m=64, n=384, k=256, head_splits=splits)
    finally:
        monkeypatch.undo()
        _C.reload_settings()


def test_opcheck():
    call = good_call()
    operator = getattr(torch.ops, torch_ops.NAMESPACE).fp8_gemm_nt_skip_head_mid.default
    d = torch.zeros(16, 96, dtype=torch.bfloat16)
    torch.library.opcheck(operator, (*call["a"], *call["b"], d, SPLITS, None, "nk", False), test_utils=("test_faketensor",))


def test_compiled_is_eager():
    def layer(a, sfa, b, sfb):
        d = torch.zeros(a.shape[0], 96, dtype=torch.bfloat16)
        deep_gemm.fp8_gemm_nt_skip_head_mid((a, sfa), (b, sfb), d, SPLITS)
        return d

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for m in (8, 40):
        problem = HeadProblem(HeadCase(m, 2, 128, SPLITS))
        assert_bitwise_equal(compiled(*problem.a, *problem.b), layer(*problem.a, *problem.b), str(m))


def test_fakes_refuse_as_the_contract_does():
    with FakeTensorMode():
        a = (torch.empty(16, 128, dtype=torch.float8_e4m3fn), torch.empty(16, 1))
        b = (torch.empty(80, 128, dtype=torch.float8_e4m3fn), torch.empty(1, 1))
        d = torch.empty(16, 96, dtype=torch.bfloat16)
        deep_gemm.fp8_gemm_nt_skip_head_mid(a, b, d, SPLITS)
        for arguments, word in (
            ((a, b, d, (16, 8)), "head_splits"),
            ((a, b, d, (32, 8, 24)), "b: expected N"),
            ((a, b, d[:, :80], SPLITS), "d: expected shape"),
            ((a, b, d, SPLITS, (1, 64, 128)), "recipe"),
            ((a[0], b, d, SPLITS), "a: expected a pair"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.fp8_gemm_nt_skip_head_mid(*arguments)
