"""Problems of the grouped BF16 GEMMs: the cases of the FP8 ones that differ by more than their recipe, with BF16 operands."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import grouped_cases
from bf16_cases import EXACT
from deep_gemm import _C
from deep_gemm.testing import calc_diff
from grouped_cases import BF16, PER_BLOCK, GroupedCase, GroupedProblem, arranged, contiguous, psum, rows_of

NOTHING = torch.empty(0)


@dataclass
class GroupedBf16Problem(GroupedProblem):
    """As the FP8 problem of a case, without factors; `b` is [G, N, K], of letters nn a transposed view of [G, K, N]."""

    def run(self, expected_m: int | None = None) -> torch.Tensor:
        """The call; returns D."""
        case = self.case
        one = (lambda t: t) if case.kind == "masked" else (lambda t: t[0])
        shared = (one(self.a), self.b if case.letters == "nt" else self.b.transpose(1, 2), one(self.d), self.layout)
        hint = case.expected_m if expected_m is None else expected_m
        if case.kind == "masked":
            _C.m_grouped_bf16_gemm_nt_masked(*shared, hint, "nk")
        else:
            psum_options = (True, case.zero_padding, hint) if case.kind == "psum" else (False, True, None)
            getattr(_C, f"m_grouped_bf16_gemm_{case.letters}_contiguous")(*shared, "nk", *psum_options, case.alignment)
        return self.d

    def product(self, matrix: int, rows: torch.Tensor, group: int, dtype: torch.dtype) -> torch.Tensor:
        """What rows of a matrix of D must hold, from FP64 on the device of the operands."""
        want = self.a[matrix][rows.to(self.a.device)].double() @ self.b[group].double().t()
        return want.float().to(dtype).cpu()

    def check_random(self) -> None:
        """`check` of a problem of random operands, and the closeness that one FP32 chain has."""
        self.check(exact=False)
        for matrix, rows, group in self.selections():
            if group >= 0 and self.case.k > 0 and self.case.n > 0 and rows.numel() > 0:
                assert float(calc_diff(self.d[matrix, rows.to(self.d.device)].cpu(), self.product(matrix, rows, group, torch.float32))) < 1e-5


def values(rows: int, columns: int, seed: int, exact: bool) -> torch.Tensor:
    """Normal noise, or small integers whose products and sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    if exact:
        return torch.randint(1 - EXACT, EXACT, (rows, columns), generator=generator).to(BF16)
    return torch.randn(rows, columns, generator=generator).to(BF16)


def make_grouped_bf16(case: GroupedCase, exact: bool = False) -> GroupedBf16Problem:
    """The problem of a case on the CPU; padding rows of A are NaN, as clients may leave them."""
    matrices, m, layout, unwanted = rows_of(case)
    a = arranged(matrices, m, case.k, BF16, case.arrangement)
    for i in range(matrices):
        a[i].copy_(values(m, case.k, i, exact))
    if case.nan_padding:
        a[unwanted] = float("nan")
    arrangement = "gaps" if case.arrangement == "gaps" else "packed"
    if case.letters == "nn":
        b = arranged(case.groups, case.k, case.n, BF16, arrangement).transpose(1, 2)
    else:
        b = arranged(case.groups, case.n, case.k, BF16, arrangement)
    for i in range(case.groups):
        b[i].copy_(values(case.n, case.k, 2000 + i, exact))
    d = arranged(matrices, m, case.n, BF16, case.arrangement)
    return GroupedBf16Problem(case, a, NOTHING, b, NOTHING, layout, d)


# N-major weights, in every shape of padding, too.
N_MAJOR = [
    contiguous(4, grouped_cases.RAGGED, 136, 400, cut=100, letters="nn", arrangement="gaps"),
    contiguous(3, ((2, 250), (0, 1), (1, 300)), 200, 144, letters="nn"),
    contiguous(2, ((0, 100), (1, 7)), 72, 0, letters="nn"),
    psum(grouped_cases.ENDS, 264, 200, letters="nn"),
    psum((64, 1, 65, 0, 63), 104, 272, alignment=64, letters="nn", m=400),
]
CASES = [case for case in grouped_cases.CASES if case.recipe == PER_BLOCK] + N_MAJOR
WIDE_CASES = grouped_cases.WIDE_CASES + [
    contiguous(4, ((0, 500), (1, 1), (3, 640), (-1, 100), (2, 400)), 1032, 200, cut=20, letters="nn"),
    psum((300, 120, 257), 776, 136, letters="nn", alignment=64),
]
