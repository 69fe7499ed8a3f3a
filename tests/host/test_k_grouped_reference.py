"""The GEMMs grouped along K on CPU tensors: the reference against FP64, its bits, and the layouts it must refuse."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from deep_gemm.testing import assert_bitwise_equal
from k_grouped_cases import BF16_CASES, BF16_TN, CASES, FP8_NT, FP8_TN, KGroupedCase, make_k_grouped, nt, tn, without_sizes


@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_fp64(case):
    make_k_grouped(case).run_and_check()


@pytest.mark.parametrize("case", [case for case in BF16_CASES if case.c == "none"], ids=str)
def test_exact_products_come_out_exact(case):
    make_k_grouped(case, exact=True).run_and_check(exact=True)


def groups_are_dense_gemms(case: KGroupedCase) -> None:
    """Each group's D is that of the dense GEMM of its part of K."""
    problem = make_k_grouped(case)
    problem.run()
    for g, (start, size) in enumerate(case.spans()):
        part = slice(start, start + size)
        d = torch.zeros(case.m, -(-case.n // 4) * 4)[:, : case.n]
        if case.kind == BF16_TN:
            deep_gemm.bf16_gemm_tn(problem.a[part], problem.b[part], d)
        else:
            blocks = slice(start // 128, (start + size) // 128)
            operands = []
            for (data, factors), rows in ((problem.a, case.m), (problem.b, case.n)):
                matrix = data.view(torch.uint8)[rows * start : rows * (start + size)].view(rows, size).view(data.dtype)
                operands.append((matrix, factors[:, blocks]))
            deep_gemm.fp8_gemm_nt(*operands, d, recipe=(1, 1, 128))
        assert_bitwise_equal(problem.d[g], d, f"{case}: group {g}")


@pytest.mark.parametrize("case", [nt(40, 24, (256, 0, 128)), tn(40, 24, (128, 0, 256)), tn(24, 40, (128, 256), gap=8)], ids=str)
def test_groups_are_dense_gemms(case):
    groups_are_dense_gemms(case)


@pytest.mark.parametrize("case", [CASES[0], BF16_CASES[8]], ids=str)
def test_sizes_of_the_host_change_no_bit(case):
    known, unknown = make_k_grouped(case), make_k_grouped(without_sizes(case))
    for problem in (known, unknown):
        problem.d.fill_(0)
        problem.run()
    assert_bitwise_equal(known.d, unknown.d)


@pytest.mark.parametrize("case, layout", [
    (nt(8, 8, (128, 256)), (128, 384)),
    (nt(8, 8, (128, 256)), (-128, 256)),
    (nt(8, 8, (128, 256)), (100, 256)),
    (tn(8, 8, (128, 256)), (384, 128)),
    (tn(8, 8, (100, 256), psum=True), (100, 512)),
    (tn(8, 8, (100, 256), psum=True), (-1, 384)),
    (KGroupedCase(FP8_TN, 16, 16, (128, 256)), (128, 257)),
], ids=str)  # fmt: skip
def test_layouts_that_do_not_fit_are_refused(case, layout):
    problem = make_k_grouped(case)
    problem.layout.copy_(torch.tensor(layout))
    before = problem.d.clone()
    with pytest.raises(deep_gemm.DeepGemmError, match="grouped_layout: expected .* check the layout"):
        problem.run()
    assert_bitwise_equal(problem.d, before)


def test_kinds_agree():
    """The K-major and the K-first FP8 functions see the same numbers."""
    ks = (128, 0, 384)
    d = []
    for kind in (FP8_NT, FP8_TN):
        problem = make_k_grouped(KGroupedCase(kind, 32, 48, ks))
        d.append(problem.run())
    assert_bitwise_equal(*d)
