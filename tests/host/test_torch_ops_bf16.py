"""The operators of the BF16 GEMMs: same bits as eager under tracing and fake tensors; declared mutation is the true one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import deep_gemm
from bf16_cases import BF16, F32, LAYOUTS, Case, make_problem
from deep_gemm import torch_ops
from deep_gemm.testing import assert_bitwise_equal
from grouped_bf16_cases import make_grouped_bf16
from grouped_cases import contiguous, masked, psum


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


CONTIGUOUS = contiguous(3, ((0, 100), (2, 128), (1, 1)), 136, 64, nan_padding=False)
MASKED = masked((8, 0, 5), 24, 136, 64, nan_padding=False)
ENDS = psum((100, 0, 30), 136, 64, nan_padding=False)
OPERATORS = getattr(torch.ops, torch_ops.NAMESPACE)


def grouped_arguments(case):
    """(operator, its arguments) of a grouped case; no bit pattern of NaN around D."""
    problem = make_grouped_bf16(case)
    d = torch.zeros(problem.d.shape, dtype=BF16)
    if case.kind == "masked":
        return OPERATORS.m_grouped_bf16_gemm_nt_masked.default, (problem.a, problem.b, d, problem.layout, 5, "nk")
    options = ("nk", True, True, 40, 128) if case.kind == "psum" else ("nk", False, True, None, 128)
    b = problem.b if case.letters == "nt" else problem.b.transpose(1, 2)
    operator = getattr(OPERATORS, f"m_grouped_bf16_gemm_{case.letters}_contiguous").default
    return operator, (problem.a[0], b, d[0], problem.layout, *options)


@pytest.mark.parametrize("case", [CONTIGUOUS, MASKED, ENDS, replace(CONTIGUOUS, letters="nn")], ids=str)
def test_opcheck_of_groups(case):
    operator, arguments = grouped_arguments(case)
    torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))


def grouped_layer(a, b, layout, counts, ends):
    """Every grouped function; results are used."""
    d, e, f = (torch.zeros(a.shape[0], b.shape[1], dtype=BF16) for _ in range(3))
    deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, d, m_indices=layout)
    deep_gemm.m_grouped_bf16_gemm_nn_contiguous(a, b.transpose(1, 2), e, layout)
    deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, f, ends, use_psum_layout=True, expected_m_for_psum_layout=30)
    g = torch.zeros(3, a.shape[0], b.shape[1], dtype=BF16)
    deep_gemm.bf16_m_grouped_gemm_nt_masked(a.expand(3, -1, -1).contiguous(), b, g, counts, expected_m=3)
    return d, e + d, f, g


def test_compiled_groups_are_eager():
    torch._dynamo.reset()
    compiled = torch.compile(grouped_layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (100, 300):
        problem = make_grouped_bf16(contiguous(3, ((0, rows), (1, 128), (2, 1)), 136, 64, nan_padding=False))
        starts = [int((problem.layout == group).nonzero()[0]) for group in range(3)]
        ends = torch.tensor([start + count for start, count in zip(starts, (rows, 128, 1))], dtype=torch.int32)
        inputs = (problem.a[0], problem.b, problem.layout, torch.tensor([3, 0, 7], dtype=torch.int32), ends)
        for got, expected in zip(compiled(*inputs), grouped_layer(*inputs)):
            assert_bitwise_equal(got, expected, str(rows))


def test_fakes_of_groups_refuse_as_the_contract_does():
    with FakeTensorMode():
        a, b, d = torch.empty(256, 40, dtype=BF16), torch.empty(3, 24, 40, dtype=BF16), torch.empty(256, 24, dtype=BF16)
        ids, ends = torch.empty(256, dtype=torch.int32), torch.empty(3, dtype=torch.int32)
        deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, d, ids)
        deep_gemm.m_grouped_bf16_gemm_nn_contiguous(a, b.transpose(1, 2), d, ends, use_psum_layout=True)
        deep_gemm.m_grouped_bf16_gemm_nt_masked(a.expand(3, -1, -1), b, d.expand(3, -1, -1), ends, 7)
        for arguments, options, word in (
            ((a.float(), b, d, ids), {}, "a: expected"),
            ((a, b[:, :, :8], d, ids), {}, "a: expected shape"),
            ((a, b, d.float(), ids), {}, "d: expected"),
            ((a, b[0], d, ids), {}, "b: expected rank 3"),
            ((a, b, d, ends), {}, "grouped_layout: expected shape"),
            ((a, b, d, ids.long()), {}, "grouped_layout: expected"),
            ((a, b, d, None), {}, "grouped_layout: expected a tensor"),
            ((a, b, d, ids), {"expected_m_for_psum_layout": 3}, "^expected_m_for_psum_layout: "),
            ((a, b, d, ids), {"compiled_dims": "x"}, "compiled_dims"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.m_grouped_bf16_gemm_nt_contiguous(*arguments, **options)
        for arguments, word in (
            ((a, b, d, ends, 7), "a: expected rank 3"),
            ((a.expand(3, -1, -1), b, d.expand(3, -1, -1), ids, 7), "masked_m: expected shape"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.m_grouped_bf16_gemm_nt_masked(*arguments)
