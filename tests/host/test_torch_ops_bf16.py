"""The operators of the BF16 GEMMs: same bits as eager under tracing and fake tensors; declared mutation is the true one."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import deep_gemm
from bf16_cases import BF16, F32, LAYOUTS, Case, make_problem
from deep_gemm import torch_ops
from deep_gemm.testing import assert_bitwise_equal


@pytest.mark.parametrize("layout", LAYOUTS)
def test_opcheck(layout):
    problem = make_problem(Case(layout, 16, 24, 40, F32, "apart"))
    operator = getattr(getattr(torch.ops, torch_ops.NAMESPACE), f"bf16_gemm_{layout}").default
    for c, accumulate in ((None, False), (problem.c, False), (None, True)):
        arguments = (problem.a, problem.b, torch.zeros(16, 24), c, accumulate, "nk")
        torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_is_eager(layout):
    gemm = getattr(deep_gemm, f"bf16_gemm_{layout}")

    def layer(a, b):
        m, n = a.shape[1 if layout[0] == "t" else 0], b.shape[1 if layout[1] == "n" else 0]
        d = torch.empty(m, n, dtype=BF16)
        gemm(a, b, d)
        gemm(a, b, d, c=d)
        e = torch.empty_like(d)
        gemm(a, b, e, d)
        return d, e + d

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for m in (8, 40):
        problem = make_problem(Case(layout, m, 24, 40))
        for got, expected in zip(compiled(problem.a, problem.b), layer(problem.a, problem.b)):
            assert_bitwise_equal(got, expected, layout)


def test_fakes_refuse_as_the_contract_does():
    with FakeTensorMode():
        a, b, d = torch.empty(16, 40, dtype=BF16), torch.empty(24, 40, dtype=BF16), torch.empty(16, 24)
        deep_gemm.bf16_gemm_nt(a, b, d)
        deep_gemm.bf16_gemm_tt(a.t(), b, d, c=d)
        for arguments, word in (
            ((a.float(), b, d), "a: expected"),
            ((a, b[:, :8], d), "b: expected shape"),
            ((a, b, d[:1]), "d: expected shape"),
            ((a, b, d, d.to(BF16)), "c: expected"),
            ((a[0], b, d), "a: expected rank 2"),
            (((a, a), b, d), "a: expected a tensor"),
            ((a, b, d, None, "x"), "compiled_dims"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.bf16_gemm_nt(*arguments)
