"""The operators of the GEMMs grouped along K: same bits as eager under tracing and fake tensors; declared mutation is the true one."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import deep_gemm
from deep_gemm import torch_ops
from deep_gemm.testing import assert_bitwise_equal
from k_grouped_bad_calls import good_bf16, good_nt, good_tn
from k_grouped_cases import BF16_TN, FP8_NT, FP8_TN, KGroupedCase, make_k_grouped

KINDS = (FP8_NT, FP8_TN, BF16_TN)


def operands(problem) -> tuple:
    """(a, sfa, b, sfb) or (a, b): the operator's leading arguments."""
    return (*problem.a, *problem.b) if isinstance(problem.a, tuple) else (problem.a, problem.b)


@pytest.mark.parametrize("kind", KINDS)
def test_opcheck(kind):
    problem = make_k_grouped(KGroupedCase(kind, 32, 48, (128, 0, 256)))
    operator = getattr(getattr(torch.ops, torch_ops.NAMESPACE), problem.case.name).default
    recipe = () if kind == BF16_TN else ([1, 1, 128],)
    for sizes, c, accumulate in (([128, 0, 256], None, False), (None, torch.ones(3, 32, 48), False), ([], None, True)):
        arguments = (*operands(problem), torch.zeros(3, 32, 48), sizes, problem.layout, c, accumulate, *recipe, "mn", False, 128)
        utilities = ("test_schema", "test_faketensor") if kind == BF16_TN else ("test_faketensor",)  # FP8 knows no product
        torch.library.opcheck(operator, arguments, test_utils=utilities)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_is_eager(kind):
    case = KGroupedCase(kind, 32, 48, (128, 0, 256))
    gemm = getattr(deep_gemm, case.name)

    def layer(a, b, layout):
        d = torch.ones(3, 32, 48)
        gemm(a, b, d, None, layout)
        gemm(a, b, d, [128, 0, 256], layout, c=d)
        e = torch.empty_like(d)
        gemm(a, b, e, None, layout, d)
        return d, e + d

    problem = make_k_grouped(case)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    arguments = problem.a, problem.b, problem.layout
    for got, expected in zip(compiled(*arguments), layer(*arguments)):
        assert_bitwise_equal(got, expected, kind)


BAD = (
    (lambda call: setattr(call, "d", call.d.bfloat16()), "d: expected torch.float32"),
    (lambda call: setattr(call, "d", call.d[:1]), "grouped_layout: expected shape"),
    (lambda call: setattr(call, "c", call.d[:, :1]), "c: expected shape"),
    (lambda call: setattr(call, "c", call.d[0]), "c: expected rank 3"),
    (lambda call: setattr(call, "layout", call.layout.long()), "grouped_layout: expected torch.int32"),
    (lambda call: setattr(call, "a", call.a.float()), "a: expected torch"),
    (lambda call: setattr(call, "b", call.b[:128]), "b: expected shape"),
    (lambda call: setattr(call, "ks", 7), "ks_cpu: expected None or a list"),
    (lambda call: call.options.update(compiled_dims="x"), "compiled_dims"),
)


@pytest.mark.parametrize("make", (good_nt, good_tn, good_bf16))
def test_fakes_refuse_as_the_contract_does(make):
    with FakeTensorMode():
        make().run()
        for spoil, words in BAD:
            call = make()
            spoil(call)
            with pytest.raises(deep_gemm.DeepGemmError, match=words):
                call.run()


def test_fakes_of_k_major_groups_know_no_ends():
    with FakeTensorMode():
        call = good_nt()
        call.options["use_psum_layout"] = True
        with pytest.raises(deep_gemm.DeepGemmError, match="use_psum_layout: expected False"):
            call.run()
        call = good_bf16()
        call.options["use_psum_layout"] = True
        call.run()
